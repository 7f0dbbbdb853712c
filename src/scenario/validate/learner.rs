//! Whether rollouts, schedules and statistics of the learner fit the run.

use super::Findings;
use crate::scenario::{LearnerConfig, LrSchedule, Scenario, TaskSpec};

pub(super) fn check_learner(scenario: &Scenario, task: &TaskSpec, findings: &mut Findings) {
    let learner = &scenario.learner;
    let max_steps = task.max_steps;
    if learner.chunk_length.is_some_and(|length| length > max_steps) {
        let message = format!("a chunk is longer than an episode of {max_steps} steps");
        let paths = ["learner.chunk_length", "run.max_steps", "task.max_steps"];
        findings.error(paths, message);
    }
    if learner.episodes_per_update > scenario.run.rounds {
        let message = format!(
            "an update takes {} rounds, the run has {}: nothing is learnt",
            learner.episodes_per_update, scenario.run.rounds
        );
        findings.warning(["learner.episodes_per_update", "run.rounds"], message);
    } else {
        check_rollouts(scenario, findings);
    }
    check_observation_norm(scenario, findings);
    check_learning_rate(learner, findings);
    let (_, end) = learner.entropy_coefs();
    if end < learner.entropy_coef_min {
        let message = format!(
            "the entropy bonus ends at {end}, but never falls below {}",
            learner.entropy_coef_min
        );
        let paths = [
            "learner.entropy_coef_end",
            "learner.entropy_coef",
            "learner.entropy_coef_min",
        ];
        findings.warning(paths, message);
    }
}

/// A rollout of several rounds leaves nothing to learn from and nothing to save before its last round is over.
fn check_rollouts(scenario: &Scenario, findings: &mut Findings) {
    let (rollout, run) = (scenario.learner.episodes_per_update, &scenario.run);
    let (left, every) = (run.rounds % rollout.max(1), run.checkpoint_every);
    if left > 0 {
        let message = format!(
            "{} rounds are no multiple of {rollout}: the last {left} complete no rollout, and nothing is learnt from them",
            run.rounds
        );
        findings.warning(["learner.episodes_per_update", "run.rounds"], message);
    }
    if every % rollout.max(1) > 0 {
        let message = format!(
            "run.checkpoint_every is {every}, but a rollout takes {rollout} rounds: a checkpoint waits for its end, and a \
             run that is stopped before plays the rollout's rounds again"
        );
        findings.warning(["learner.episodes_per_update", "run.checkpoint_every"], message);
    }
}

/// Whether a learning rate that follows the divergence knows which one to keep to, and starts within its bounds.
fn check_learning_rate(learner: &LearnerConfig, findings: &mut Findings) {
    if learner.lr_schedule != LrSchedule::KlAdaptive {
        return;
    }
    if learner.target_kl.is_none() {
        let message = "kl_adaptive follows the divergence from a target, and there is none".to_string();
        findings.error(["learner.lr_schedule", "learner.target_kl"], message);
        findings.help("valid: target_kl: Some(0.02), or another course of the learning rate");
    }
    let LearnerConfig { lr, lr_min, lr_max, .. } = *learner;
    if !(lr_min..=lr_max).contains(&lr) {
        let message = format!("a learning rate of {lr} lies outside its bounds {lr_min} and {lr_max}");
        findings.error(["learner.lr", "learner.lr_min", "learner.lr_max"], message);
    }
}

/// Whether statistics that are to be fitted or frozen move at all, and leave rollouts to learn from.
fn check_observation_norm(scenario: &Scenario, findings: &mut Findings) {
    let learner = &scenario.learner;
    let norm = &learner.obs_norm;
    if norm.warmup_rollouts > 0 {
        let last = scenario.run.rounds.saturating_sub(1);
        if !norm.fits() {
            let message = "warm-up rollouts fit statistics, and this mode has none that move".to_string();
            findings.error(["learner.obs_norm.warmup_rollouts", "learner.obs_norm.mode"], message);
            findings.help("valid: warmup_rollouts: 0, or mode running or running_all");
        } else if learner.is_warm_up(last) {
            let message = format!(
                "{} warm-up rollouts take all {} rounds of the run: nothing is learnt",
                norm.warmup_rollouts, scenario.run.rounds
            );
            findings.warning(["learner.obs_norm.warmup_rollouts", "run.rounds"], message);
        }
    }
    if norm.freeze_after_updates.is_some() && !norm.fits() {
        let message = "it has no effect: this mode has no statistics that move".to_string();
        let paths = ["learner.obs_norm.freeze_after_updates", "learner.obs_norm.mode"];
        findings.warning(paths, message);
    }
}
