//! Whether contributions can be measured, and whether those are measured that the reward pays for.

use super::Findings;
use crate::scenario::{
    AttributionConfig, AttributionStrategy, Cadence, ContributionMode, FULL_FACTORIAL_LIMIT, RewardConfig, Scenario,
    TaskSpec,
};

/// How often a mode needs to know what the seeds contribute.
enum Need {
    Nothing,
    /// The accuracy of the committed seeds at the last step.
    AtTheEnd,
    /// Contributions at most so many steps old.
    Fresh {
        max_staleness: u32,
    },
}

fn need(reward: &RewardConfig) -> Need {
    let fresh = |max_staleness| Need::Fresh { max_staleness };
    match reward {
        RewardConfig::Loss(_) => Need::Nothing,
        RewardConfig::Contribution(ContributionMode::Sparse(_)) => Need::AtTheEnd,
        RewardConfig::Contribution(ContributionMode::Shaped(config)) => fresh(config.max_staleness),
        RewardConfig::Contribution(ContributionMode::Simplified(config)) => fresh(config.max_staleness),
        RewardConfig::Contribution(ContributionMode::Basic(config)) => fresh(config.max_staleness),
    }
}

pub(super) fn check_reward(scenario: &Scenario, findings: &mut Findings) {
    let (mode, attribution) = (scenario.reward.mode(), &scenario.attribution);
    let need = need(&scenario.reward);
    if !matches!(need, Need::Nothing) && attribution.strategy == AttributionStrategy::Off {
        let message = format!("reward {mode} pays for contributions, but none are measured");
        findings.error(["attribution.strategy", "reward"], message);
        findings.help("measure them with attribution.strategy: auto, or use reward: loss(())");
    }
    let paths = ["attribution.cadence", "reward.max_staleness", "reward"];
    match (need, attribution.cadence) {
        (Need::Nothing, _) | (_, Cadence::EveryStep) => {}
        (Need::AtTheEnd, Cadence::Off) => {
            let message = format!("reward {mode} needs the committed accuracy of the last step");
            findings.error(paths, message);
            findings.help("use attribution.cadence: terminal or more often");
        }
        (Need::AtTheEnd, _) => {}
        (Need::Fresh { max_staleness }, Cadence::EveryK(k)) if k <= max_staleness.saturating_add(1) => {}
        (Need::Fresh { max_staleness }, _) => {
            let message = format!("reward {mode} needs contributions at most {max_staleness} steps old");
            findings.error(paths, message);
            findings
                .help("use attribution.cadence: every_step, or every_k(k) with reward.max_staleness of k-1 or more");
        }
    }
    if let RewardConfig::Loss(config) = &scenario.reward {
        let scale = config.scale();
        let paths = ["reward.baseline_loss", "reward.target_loss", "reward.preset", "reward"];
        if scale.baseline <= scale.target {
            let message = format!(
                "baseline_loss {} must exceed target_loss {}",
                scale.baseline, scale.target
            );
            findings.error(paths, message);
        }
    }
}

pub(super) fn check_attribution(attribution: &AttributionConfig, task: &TaskSpec, findings: &mut Findings) {
    let slots = task.slots.len();
    if attribution.strategy == AttributionStrategy::FullFactorial && slots > FULL_FACTORIAL_LIMIT {
        let message = format!("all configurations of {slots} slots are 2^{slots} forward passes");
        findings.error(["attribution.strategy"], message);
        findings.help(format!(
            "at most {FULL_FACTORIAL_LIMIT} slots can be evaluated so; use auto"
        ));
    }
    if !attribution.shapley_permutations.is_multiple_of(2) {
        let message = format!(
            "{} is odd; every sampled order comes with its reverse",
            attribution.shapley_permutations
        );
        findings.error(["attribution.shapley_permutations"], message);
    }
}
