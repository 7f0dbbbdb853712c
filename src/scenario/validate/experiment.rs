//! Whether arms can be compared in the way that is asked for.

use super::Findings;
use crate::scenario::{AbConfig, DecisionTest, Metric, Scenario, TaskSpec, TelemetryLevel};

const AB: &str = "experiment";

pub(super) fn check_experiment(scenario: &Scenario, task: &TaskSpec, findings: &mut Findings) {
    let Some(ab) = scenario.ab() else { return };
    check_arms(ab, findings);
    check_design(ab, scenario, findings);
    check_budget(scenario, findings);
    check_split(ab, task, findings);
}

fn check_arms(ab: &AbConfig, findings: &mut Findings) {
    if ab.arms.len() < 2 {
        let message = format!("{} arms: a comparison takes at least two", ab.arms.len());
        findings.error([format!("{AB}.arms"), AB.into()], message);
    }
    for (index, arm) in ab.arms.iter().enumerate() {
        // Folders of some file systems do not tell cases apart.
        let is_same = |other: &crate::scenario::ArmConfig| other.id.eq_ignore_ascii_case(&arm.id);
        if ab.arms[..index].iter().any(is_same) {
            let message = format!("two arms are called \"{}\"; give each an id of its own", arm.id);
            findings.error([format!("{AB}.arms[{index}].id")], message);
        }
    }
    if let Some(control) = &ab.control
        && ab.arms.iter().all(|arm| arm.id != *control)
    {
        let ids: Vec<&str> = ab.arms.iter().map(|arm| arm.id.as_str()).collect();
        let message = format!("no arm is called \"{control}\"; there are: {}", ids.join(", "));
        findings.error([format!("{AB}.control")], message);
    }
}

fn check_design(ab: &AbConfig, scenario: &Scenario, findings: &mut Findings) {
    if ab.decision_test == DecisionTest::PairedSignFlip && !ab.common_random_numbers {
        let message = "arms without common random numbers are no pairs; write decision_test: mann_whitney";
        findings.error(
            [format!("{AB}.decision_test"), format!("{AB}.common_random_numbers")],
            message.into(),
        );
    }
    if ab.eval_seeds.is_empty() {
        findings.error([format!("{AB}.eval_seeds")], "there must be at least one".into());
    }
    for (index, seed) in ab.eval_seeds.iter().enumerate() {
        let place = format!("{AB}.eval_seeds[{index}]");
        if ab.eval_seeds[..index].contains(seed) {
            findings.error([place], format!("{seed} is listed twice"));
        } else if seed.wrapping_sub(scenario.run.seed) < u64::from(ab.replicates) {
            let message = format!("a replicate trains under the seed {seed}; take one that no arm has seen");
            findings.error([place, "run.seed".into()], message);
        }
    }
}

/// Whatever ends an arm's training or episodes by its results gives arms unequal budgets.
fn check_budget(scenario: &Scenario, findings: &mut Findings) {
    let run = &scenario.run;
    let rules = [
        ("run.early_stop", run.early_stop.is_some()),
        ("run.run_early_stop", run.run_early_stop.is_some()),
    ];
    for (path, is_given) in rules {
        if is_given {
            let message = format!("arms have equal budgets; leave {path} out of an experiment");
            findings.error([path.into(), AB.to_owned()], message);
        }
    }
    if scenario.telemetry.level < TelemetryLevel::Lifecycle {
        let message = "an experiment is read back from the record of its runs; write at least lifecycle";
        findings.error(["telemetry.level", AB], message.into());
    }
}

/// Rewards are made of the validation part: who is scored by it is scored by what it was trained for.
fn check_split(ab: &AbConfig, task: &TaskSpec, findings: &mut Findings) {
    let sizes = task.data.part_sizes(&task.split);
    let has_test_part = sizes.is_none_or(|sizes| sizes.test > 0);
    let metric = ab.primary_metric;
    let place = format!("{AB}.primary_metric");
    if matches!(metric, Metric::TestAccuracy | Metric::TestLoss) && !has_test_part {
        findings.error([place, "task".into()], "the task has no test part".into());
    } else if metric.reads_validation_part(has_test_part) && !ab.allow_same_split {
        let message = format!(
            "`{}` reads the validation part, which rewards are made of; compare by test_accuracy, or allow it",
            metric.name()
        );
        findings.error([place, AB.into()], message);
        findings.help("allow_same_split: true lets it stand, and the report says so");
    }
}
