//! Whether contributions can be measured, and whether those are measured that the reward pays for.

use super::Findings;
use crate::scenario::{
    AttributionConfig, AttributionStrategy, Cadence, ContributionMode, FULL_FACTORIAL_LIMIT, RewardConfig, Scenario,
    TaskSpec,
};

/// How often a mode needs to know what the seeds contribute.
enum Need {
    /// What a mode of an application needs is not known here.
    Unknown,
    /// The network with the committed seeds alone, at the last step.
    AtTheEnd,
    /// The same at every step.
    EveryStep,
    /// Contributions at most so many steps old.
    Fresh { max_staleness: u32 },
}

fn need(reward: &RewardConfig) -> Need {
    let fresh = |max_staleness| Need::Fresh { max_staleness };
    match reward {
        RewardConfig::Custom(_) => Need::Unknown,
        RewardConfig::Loss(_) => Need::AtTheEnd,
        RewardConfig::Contribution(mode) => match mode {
            ContributionMode::Sparse(_) | ContributionMode::Minimal(_) => Need::AtTheEnd,
            ContributionMode::Committed(_) => Need::EveryStep,
            ContributionMode::Shaped(config) => fresh(config.max_staleness),
            ContributionMode::Escrow(config) => fresh(config.shaped.max_staleness),
            ContributionMode::Simplified(config) => fresh(config.max_staleness),
            ContributionMode::Basic(config) => fresh(config.max_staleness),
            ContributionMode::BasicPlus(config) => fresh(config.basic.max_staleness),
        },
    }
}

pub(super) fn check_reward(scenario: &Scenario, findings: &mut Findings) {
    let (mode, attribution) = (scenario.reward.mode(), &scenario.attribution);
    let need = need(&scenario.reward);
    if !matches!(need, Need::Unknown) && attribution.strategy == AttributionStrategy::Off {
        let message = format!("reward {mode} pays for what seeds contribute, but none of it is measured");
        findings.error(["attribution.strategy", "reward"], message);
        findings.help("measure it with attribution.strategy: auto");
    }
    let paths = ["attribution.cadence", "reward.max_staleness", "reward"];
    match (need, attribution.cadence) {
        (Need::Unknown, _) | (_, Cadence::EveryStep) => {}
        (Need::AtTheEnd, Cadence::Off) => {
            let message = format!("reward {mode} needs the last step measured with committed seeds alone");
            findings.error(paths, message);
            findings.help("use attribution.cadence: terminal or more often");
        }
        (Need::AtTheEnd, _) => {}
        (Need::Fresh { max_staleness }, Cadence::EveryK(k)) if k <= max_staleness.saturating_add(1) => {}
        (Need::EveryStep, _) => {
            let message = format!("reward {mode} needs every step measured with committed seeds alone");
            findings.error(paths, message);
            findings.help("use attribution.cadence: every_step");
        }
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
