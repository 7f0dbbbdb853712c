use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::prelude::HostPlan;

/// A plugin with state: the name of its host, and how often it was built.
#[derive(Clone)]
struct OwnHost {
    name: &'static str,
    built: Arc<AtomicUsize>,
}

impl OwnHost {
    fn called(name: &'static str) -> Self {
        let built = Arc::default();
        Self { name, built }
    }
}

impl Plugin for OwnHost {
    fn build(&self, app: &mut App) {
        self.built.fetch_add(1, Ordering::Relaxed);
        let mut hosts = app.world_mut().resource_mut::<HostRegistry>();
        let plan = |classes: i64| HostPlan::new(1, 8).head(classes);
        hosts.register(self.name, "a head alone", Arc::new(plan));
    }
}

#[test]
fn names_are_learnt_once_from_plugins_with_state() {
    let plugin = OwnHost::called("bare");
    let extension = Extension::new(plugin.clone());

    let knows_it = |extension: &Extension| {
        let hosts = extension.names().expect("the name is free").catalog.hosts.entries();
        hosts.into_iter().any(|host| host.name == "bare")
    };

    assert!(knows_it(&extension) && knows_it(&extension.clone()));
    assert_eq!(plugin.built.load(Ordering::Relaxed), 1);
    assert!(!knows_it(&Extension::default()));
}

#[test]
fn a_name_that_is_taken_keeps_the_engine_from_being_built() {
    let error = Extension::new(OwnHost::called("resnet20")).names().err();
    let error = error.map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(error, "the host name `resnet20` is taken; register yours under another");
}
