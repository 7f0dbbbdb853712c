//! Data sets of an application: scenarios name them, runs train on them and are resumed with them.

use std::path::Path;

use simic_engine::checkpoint::CheckpointName;
use simic_engine::data::Part;
use simic_engine::engine::RunReport;
use simic_engine::prelude::*;
use simic_engine::run::StopRequest;
use simic_engine::scenario::{self, Input, Report, data_forms};

use crate::recorded::resumed;
use crate::support::assert_same_run;

/// Images of one brightness, which is the class; `params` is added to all of them.
fn shades(request: &DataRequest) -> Result<CustomImages, std::num::ParseIntError> {
    let offset: u8 = request.params.parse()?;
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
    sets.register("shades", "ten shades of gray", Arc::new(shades));
}

const SCENARIO: &str = r#"(
    name: "shades",
    task: preset("digits_minimal", (batches_per_step: count(2), data: custom(name: "Shades", params: "3"))),
    run: (rounds: 3, n_envs: 2, max_steps: 4),
    policy: (controller: "actor_critic", preset: "lstm_small"),
)"#;

fn check(text: &str) -> Result<scenario::Loaded, Report> {
    let input = Input {
        label: "shades.ron",
        text,
        overrides: &[],
    };
    scenario::load(
        &input,
        &Extension::new(register)
            .names()
            .expect("the name is free")
            .catalog
            .clone(),
    )
}

#[test]
fn a_registered_data_set_is_valid_and_listed() {
    let forms = data_forms(
        &Extension::new(register)
            .names()
            .expect("the name is free")
            .catalog
            .clone(),
    );

    let form = forms.last().expect("forms");
    assert_eq!(
        (form.form.as_str(), form.summary.as_str()),
        (r#"custom(name: "shades", params?)"#, "ten shades of gray")
    );
    assert!(check(SCENARIO).is_ok());
}

#[test]
fn a_slip_in_the_name_is_recognised() {
    let report = check(&SCENARIO.replace("Shades", "shade")).expect_err("no such set");

    insta::assert_snapshot!(report);
}

#[test]
fn what_the_set_fails_with_ends_the_run_before_it_begins() {
    let folder = tempfile::tempdir().expect("a temporary folder");

    let report = crate::recorded::play(&SCENARIO.replace("\"3\"", "\"three\""), folder.path(), register);

    insta::assert_snapshot!(report.failure.expect("it cannot be made").failure);
    assert!(report.record.is_none());
}

fn stop_in_the_second_round(app: &mut App) {
    let stop = |clock: Res<RunClock>, stop: Res<StopSignal>| {
        if (clock.round(), clock.step()) == (1, 2) {
            stop.request(StopRequest::Interrupt);
        }
    };
    app.add_systems(StepEnd, stop.before(EngineSet::Record));
    register(app)
}

fn directory(report: &RunReport) -> &Path {
    &report.record.as_ref().expect("the run was recorded").directory
}

#[test]
fn a_run_on_it_that_is_resumed_ends_with_the_bits_of_one_that_was_not_stopped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = crate::recorded::play(SCENARIO, &folder.path().join("whole"), register);
    let root = folder.path().join("stopped");
    let stopped = crate::recorded::play(SCENARIO, &root, stop_in_the_second_round);

    let mut resumed = resumed(directory(&stopped), CheckpointName::Last, register, 2).expect("the run can go on");
    let report = resumed.play();

    assert!(report.failure.is_none(), "{:?}", report.failure);
    assert_same_run(directory(&whole), directory(&report));
}
