//! Data sets of an application: scenarios name them.

use simic_engine::internals::data::Part;
use simic_engine::internals::scenario::{self, Catalog, Input, Report, Scenario, data_forms, explain, resolved_ron};
use simic_engine::prelude::*;
use simic_engine::section;

section! {
    /// What may be set of the shades.
    pub struct Shades {
        /// Added to every pixel.
        #[unit = "levels"]
        offset: u64, integer(0, 40);
        /// Whether the images are all that there is.
        is_whole: bool = true;
    }
}

/// Images of one brightness, which is the class.
fn shades(settings: &Shades) -> Result<CustomImages, &'static str> {
    if !settings.is_whole {
        return Err("half of the shades is missing");
    }
    let offset = settings.offset as u8;
    let labels: Vec<i64> = (0..10).cycle().take(400).collect();
    Ok(CustomImages {
        height: 8,
        width: 8,
        channels: 1,
        scale: 255.0,
        train: Part {
            images: labels
                .iter()
                .flat_map(|&label| [20 * label as u8 + offset; 64])
                .collect::<Vec<u8>>()
                .into(),
            labels,
        },
        val: None,
        test: None,
    })
}

fn register(app: &mut App) {
    let mut sets = app.world_mut().resource_mut::<DataRegistry>();
    sets.register_with("shades", "ten shades of gray", |settings: Shades| {
        Arc::new(move |_: &DataRequest| shades(&settings))
    });
}

const SCENARIO: &str = r#"(
    name: "shades",
    task: preset("digits_minimal", (batches_per_step: count(2), data: custom(name: "Shades", settings: (offset: 3)))),
    run: (rounds: 3, n_envs: 2, max_steps: 4),
    policy: (controller: "actor_critic", preset: "lstm_small"),
)"#;

fn catalog() -> Catalog {
    let extension = Extension::new(register);
    extension.names().expect("the name is free").catalog.clone()
}

fn check(text: &str) -> Result<scenario::Loaded, Report> {
    let input = Input {
        label: "shades.ron",
        text,
        overrides: &[],
    };
    scenario::load(&input, &catalog())
}

#[test]
fn a_registered_data_set_is_valid_and_listed() {
    let forms = data_forms(&catalog());

    let form = forms.last().expect("forms");
    assert_eq!(
        (form.form.as_str(), form.summary.as_str()),
        (r#"custom(name: "shades", settings?)"#, "ten shades of gray")
    );
    assert!(check(SCENARIO).is_ok());
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

    let section = explain::<Scenario>("", "task.data.custom.settings.shades", &catalog());
    let field = explain::<Scenario>("", "task.data.custom.settings.shades.offset", &catalog());
    let [section, field] = [section, field].map(|told| told.expect("it is declared").to_string());
    insta::assert_snapshot!(format!("{section}\n{field}"));

    let loaded = check(SCENARIO).expect("it is sound");
    assert!(
        resolved_ron(&loaded.scenario)
            .expect("prints")
            .contains("settings: (offset: 3, is_whole: true)")
    );
}

#[test]
fn what_the_set_fails_with_ends_the_run_before_it_begins() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = crate::recorded::play(
        &SCENARIO.replace("offset: 3", "is_whole: false"),
        folder.path(),
        register,
    );

    insta::assert_snapshot!(report.failure.expect("it cannot be made").failure);
    assert!(report.record.is_none());
}
