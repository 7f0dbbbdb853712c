//! Data sets of an application: scenarios name them.

use simic_engine::internals::data::Part;
use simic_engine::internals::scenario::{Loaded, Report, Scenario, data_forms, explain, resolved_ron};
use simic_engine::prelude::*;

use crate::recorded::catalog;

section! {
    /// Settings of the shades.
    pub struct Shades {
        /// Added to every pixel.
        #[unit = "levels"]
        offset: u64, integer(0, 40);
        /// The images are all that there is.
        is_whole: bool = true;
    }
}

/// Images of one brightness, which is the class.
pub fn shades(offset: u8) -> CustomImages {
    let labels: Vec<i64> = (0..10).cycle().take(400).collect();
    let pixels = labels.iter().flat_map(|&label| [20 * label as u8 + offset; 64]);
    let images = pixels.collect::<Vec<u8>>().into();
    CustomImages {
        height: 8,
        width: 8,
        channels: 1,
        scale: 255.0,
        train: Part { images, labels },
        val: None,
        test: None,
    }
}

fn register(app: &mut App) {
    let mut sets = app.world_mut().resource_mut::<DataRegistry>();
    sets.register_with("shades", "ten shades of gray", |settings: Shades| {
        Arc::new(move |_: &DataRequest| {
            let images = shades(settings.offset as u8);
            settings
                .is_whole
                .then_some(images)
                .ok_or("half of the shades is missing")
        })
    });
}

const SCENARIO: &str = r#"(
    name: "shades",
    task: preset("digits_minimal", (batches_per_step: count(2), data: custom(name: "Shades", settings: (offset: 3)))),
    run: (rounds: 3, n_envs: 2, max_steps: 4),
    policy: (controller: "actor_critic"),
)"#;

fn check(text: &str) -> Result<Loaded, Report> {
    crate::recorded::load("shades.ron", text, &[], &catalog(register))
}

#[test]
fn a_registered_data_set_is_listed() {
    let form = data_forms(&catalog(register)).pop().expect("forms");
    assert_eq!(form.form, r#"custom(name: "shades", settings?)"#);
    assert_eq!(form.summary, "ten shades of gray");
}

#[test]
fn a_slip_in_the_name_is_recognised() {
    let report = check(&SCENARIO.replace("Shades", "shade")).expect_err("no such set");

    insta::assert_snapshot!(report);
}

#[test]
fn settings_are_checked_where_they_stand_and_explained() {
    let wrong = SCENARIO.replace("(offset: 3)", "(offset: 41, offst: 1, is_whole: \"yes\")");
    insta::assert_snapshot!(check(&wrong).expect_err("three mistakes"));

    let paths = ["shades", "shades.offset"].map(|part| format!("task.data.custom.settings.{part}"));
    let answers = paths.map(|path| explain::<Scenario>("", &path, &catalog(register)));
    let [section, field] = answers.map(|answer| answer.expect("it is declared").to_string());
    insta::assert_snapshot!(format!("{section}\n{field}"));

    let loaded = check(SCENARIO).expect("it is sound");
    let resolved = resolved_ron(&loaded.scenario).expect("prints");
    assert!(resolved.contains("settings: (offset: 3, is_whole: true)"), "{resolved}");
}

#[test]
fn what_the_set_fails_with_ends_the_run_before_it_begins() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let half = SCENARIO.replace("offset: 3", "is_whole: false");

    let report = crate::recorded::play(&half, folder.path(), register);

    insta::assert_snapshot!(report.failure.expect("it cannot be made").failure);
    assert!(report.record.is_none());
}
