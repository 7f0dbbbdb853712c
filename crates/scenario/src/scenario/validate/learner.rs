//! Whether rollouts, schedules and statistics of the learner fit the run.

use super::Findings;
use crate::scenario::{Algorithm, LEAST_ENTROPY_COEF, Scenario};

pub(super) fn check_learner(scenario: &Scenario, findings: &mut Findings) {
    let learner = &scenario.learner;
    if learner.episodes_per_update > scenario.run.rounds {
        let message = format!(
            "an update takes {} rounds, the run has {}: nothing is learnt",
            learner.episodes_per_update, scenario.run.rounds
        );
        findings.warning(["learner.episodes_per_update", "run.rounds"], message);
    } else {
        check_rollouts(scenario, findings);
    }
    if matches!(learner.algorithm, Algorithm::Clone(_)) && !learner.is_offline() {
        let message = "there is nothing to imitate; name recordings: learner.recordings.sets";
        findings.error(["learner.algorithm"], message);
    }
    let end = learner.last_entropy_coef();
    if end < LEAST_ENTROPY_COEF {
        let message = format!("the entropy bonus ends at {end}, but never falls below {LEAST_ENTROPY_COEF}");
        let paths = ["learner.entropy_coef_end", "learner.entropy_coef"];
        findings.warning(paths, message);
    }
}

/// A rollout of several rounds leaves nothing to learn from before its last round is over.
fn check_rollouts(scenario: &Scenario, findings: &mut Findings) {
    let (rollout, run) = (scenario.learner.episodes_per_update, &scenario.run);
    let left = run.rounds % rollout.max(1);
    if left > 0 {
        let message = format!(
            "{} rounds are no multiple of {rollout}: the last {left} complete no rollout, and nothing is learnt from them",
            run.rounds
        );
        findings.warning(["learner.episodes_per_update", "run.rounds"], message);
    }
}
