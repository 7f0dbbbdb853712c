//! Whether contributions can be measured, and whether those are measured that the reward pays for.

use super::Findings;
use crate::scenario::{AttributionStrategy, Cadence, MeasurementNeed, RewardConfig, RewardProfile, Scenario};

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
