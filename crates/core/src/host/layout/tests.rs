use super::*;
use crate::host::{HostDesign, build};
use crate::network::HostRegistry;
use crate::random::{Domain, RunRng};
use crate::scenario::{CnnSpec, KnownHosts, task_presets};
use crate::torch::fixtures::test_backend;

fn slots(names: &[&str]) -> Vec<SlotId> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn injections() -> Vec<InjectionSpec> {
    CnnSpec::default().plan(10).injection_specs()
}

#[test]
fn policy_order_is_row_major_for_any_order_of_enabling() {
    let layout = SlotLayout::new(&injections(), &slots(&["r1c0", "r0c2", "r0c0"]));

    let order: Vec<SlotId> = layout.slots().iter().map(|spec| spec.slot).collect();
    assert_eq!(order, slots(&["r0c0", "r0c2", "r1c0"]));
    assert_eq!(layout.index_of(SlotId::new(1, 0)), Some(2));
    assert_eq!(layout.slots()[1].slot, SlotId::new(0, 2));
}

/// The scenario is checked against the slots of a host before there is one; both lists are the same.
#[test]
fn a_host_has_the_slots_that_its_outline_promises() {
    let hosts = HostRegistry::default();
    for preset in task_presets() {
        let task = preset.spec;
        let outline = hosts.outline(&task.host, task.classes, None).unwrap();
        // The large ones are of the same families, and take long to initialise.
        if outline.parameters > 500_000 {
            continue;
        }
        let design = hosts.of(&task.host, None).unwrap();
        let mut rng = RunRng::new(1, Domain::HostInit, &[0]);
        let host = build(&*design, task.classes, &mut rng, test_backend()).unwrap();

        let name = &task.name;
        assert_eq!(outline.problems, [], "{name}");
        assert_eq!(outline.injections, host.injection_specs(), "{name}");
        assert_eq!(outline.parameters, host.params().count(), "{name}");
        assert_eq!(
            SlotLayout::new(&outline.injections, &task.slots).len(),
            task.slots.len(),
            "{name}"
        );
    }
}
