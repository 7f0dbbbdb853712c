//! Whether contributions can be measured, and whether those are measured that the reward pays for.

use super::Findings;
use crate::scenario::{AttributionStrategy, Cadence, MeasurementNeed, RewardConfig, RewardProfile, Scenario, TaskSpec};

pub(super) fn check_reward(scenario: &Scenario, profile: &RewardProfile, findings: &mut Findings) {
    let (mode, attribution) = (scenario.reward.mode(), &scenario.attribution);
    let need = profile.measurement;
    if need != MeasurementNeed::Unknown && attribution.strategy == AttributionStrategy::Off {
        let message = format!("reward {mode} pays for what seeds contribute, but none of it is measured");
        findings.error(["attribution.strategy", "reward"], message);
        findings.help("measure it with attribution.strategy: auto");
    }
    let paths = [
        "attribution.cadence",
        "reward.max_staleness",
        "reward.settings.max_staleness",
        "reward",
    ];
    match (need, attribution.cadence) {
        (MeasurementNeed::Unknown, _) | (_, Cadence::EveryStep) => {}
        (MeasurementNeed::AtTheEnd, _) => {}
        (
            MeasurementNeed::Fresh { max_staleness } | MeasurementNeed::AtCommit { max_staleness },
            Cadence::EveryK(k),
        ) if k <= max_staleness.saturating_add(1) => {}
        // Who can be committed is held, and held seeds are measured at every step.
        (MeasurementNeed::AtCommit { .. }, Cadence::OnChange) => {}
        (MeasurementNeed::EveryStep, _) => {
            let message = format!("reward {mode} needs every step measured with committed seeds alone");
            findings.error(paths, message);
            findings.help("use attribution.cadence: every_step");
        }
        (MeasurementNeed::Fresh { max_staleness } | MeasurementNeed::AtCommit { max_staleness }, _) => {
            let message = format!("reward {mode} needs contributions at most {max_staleness} steps old");
            findings.error(paths, message);
            findings
                .help("use attribution.cadence: every_step, or every_k(k) with reward.max_staleness of k-1 or more");
        }
    }
    if let RewardConfig::Loss(config) = &scenario.reward {
        let scale = config.scale();
        let paths = ["reward.baseline_loss", "reward.preset", "reward"];
        if scale.baseline <= scale.target {
            let message = format!(
                "baseline_loss {} must exceed {}, the preset's loss of a solved task",
                scale.baseline, scale.target
            );
            findings.error(paths, message);
        }
    }
}

pub(super) fn check_attribution(scenario: &Scenario, task: &TaskSpec, reward: &RewardProfile, findings: &mut Findings) {
    let attribution = &scenario.attribution;
    if !attribution.shapley_permutations.is_multiple_of(2) {
        let message = format!(
            "{} is odd; every sampled order comes with its reverse",
            attribution.shapley_permutations
        );
        findings.error(["attribution.shapley_permutations"], message);
    }
    if attribution.strategy == AttributionStrategy::Permutations && attribution.shapley_permutations == 0 {
        let message = "strategy permutations needs orders to sample; at least 2, e.g. 20";
        findings.error(["attribution.shapley_permutations", "attribution.strategy"], message);
    }
    check_limits(scenario, task, reward, findings);
}

/// Whether what the reward needs fits into the limits of a measurement.
fn check_limits(scenario: &Scenario, task: &TaskSpec, reward: &RewardProfile, findings: &mut Findings) {
    let attribution = &scenario.attribution;
    let players = match usize::try_from(task.max_seeds) {
        Ok(most @ 1..) => most.min(task.slots.len()),
        _ => task.slots.len(),
    };
    let is_measured = attribution.strategy != AttributionStrategy::Off;
    let required = reward.required_masks(true).most(players);
    if let Some(most) = attribution.max_configs.filter(|&most| is_measured && most < required) {
        let message = format!(
            "reward {} needs up to {required} configurations of {players} seeds, {most} are allowed",
            scenario.reward.mode()
        );
        findings.error(["attribution.max_configs", "reward"], message);
        findings.help(format!(
            "allow {required} or more, or grow fewer seeds with lifecycle.max_seeds"
        ));
    }
}
