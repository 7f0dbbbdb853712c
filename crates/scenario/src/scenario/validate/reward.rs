//! Whether contributions can be measured, and whether those are measured that the reward pays for.

use super::Findings;
use crate::scenario::{AttributionStrategy, Cadence, MeasurementNeed, RewardProfile, Scenario};

pub(super) fn check_reward(scenario: &Scenario, profile: &RewardProfile, findings: &mut Findings) {
    let (mode, attribution) = (scenario.reward.mode(), &scenario.attribution);
    let need = profile.measurement;
    if need != MeasurementNeed::Unknown && attribution.strategy == AttributionStrategy::Off {
        let message = format!("reward {mode} pays for what seeds contribute, but none of it is measured");
        findings.error(["attribution.strategy", "reward"], message);
        findings.help("measure it with attribution.strategy: auto");
    }
    let is_met = match (need, attribution.cadence) {
        (MeasurementNeed::Unknown | MeasurementNeed::AtTheEnd, _) | (_, Cadence::EveryStep | Cadence::EveryK(1)) => {
            true
        }
        // Who can be committed is held, and held seeds are measured at every step.
        (MeasurementNeed::AtCommit, Cadence::OnChange) => true,
        _ => false,
    };
    if !is_met {
        let what = match need {
            MeasurementNeed::EveryStep => "every step measured with committed seeds alone",
            _ => "contributions of the same step",
        };
        findings.error(["attribution.cadence", "reward"], format!("reward {mode} needs {what}"));
        findings.help("use attribution.cadence: every_step");
    }
}
