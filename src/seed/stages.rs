//! What each stage means: which one may follow, which gate leads on, what trains and what is isolated (spec 01 §7, §10).
//!
//! None of this is stored: it follows from the stage, the alpha mode and the scenario.

use crate::growth::{AlphaMode, GateLevel, SeedStage};
use crate::scenario::{Isolation, OnFossilize, StageIsolation};

/// The transition table. Everything else is illegal; `Unknown` precedes a fresh seed.
pub const fn may_follow(from: SeedStage, to: SeedStage) -> bool {
    use SeedStage::*;
    match to {
        Unknown => false,
        Dormant => matches!(from, Resetting),
        Germinated => matches!(from, Unknown | Dormant),
        Training => matches!(from, Germinated),
        Blending => matches!(from, Training | Holding),
        Holding => matches!(from, Blending),
        Fossilized => matches!(from, Holding),
        Pruned => from.is_live(),
        Embargoed => matches!(from, Pruned),
        Resetting => matches!(from, Embargoed),
    }
}

/// Where `Advance` leads and the gate before it. Committing is no advance: it has an op of its own.
pub const fn next_stage(stage: SeedStage) -> Option<(GateLevel, SeedStage)> {
    match stage {
        SeedStage::Germinated => Some((GateLevel::G1, SeedStage::Training)),
        SeedStage::Training => Some((GateLevel::G2, SeedStage::Blending)),
        SeedStage::Blending => Some((GateLevel::G3, SeedStage::Holding)),
        _ => None,
    }
}

/// A seed's optimizer exists from training to the end of its life; only a seed with parameters has one.
pub const fn has_optimizer(stage: SeedStage, seed_params: u64) -> bool {
    seed_params > 0 && stage.is_occupied() && !matches!(stage, SeedStage::Germinated)
}

/// A seed that fades may not fight the decay: no update while alpha moves down, momentum kept.
pub const fn frozen(mode: AlphaMode) -> bool {
    matches!(mode, AlphaMode::Down)
}

/// Is the seed's optimizer stepped?
pub const fn trains(stage: SeedStage, mode: AlphaMode, on_fossilize: OnFossilize) -> bool {
    match stage {
        SeedStage::Training | SeedStage::Blending | SeedStage::Holding => !frozen(mode),
        SeedStage::Fossilized => !matches!(on_fossilize, OnFossilize::Freeze),
        _ => false,
    }
}

/// Do seed and gate read detached features, so that no gradient of theirs reaches the host?
pub const fn isolated(stage: SeedStage, isolation: &StageIsolation) -> bool {
    let choice = match stage {
        SeedStage::Blending => isolation.blending,
        SeedStage::Holding => isolation.holding,
        SeedStage::Fossilized => isolation.fossilized,
        _ => Isolation::Isolated,
    };
    matches!(choice, Isolation::Isolated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::*;
    use crate::scenario::IsolationConfig;

    #[test]
    fn exactly_the_transitions_of_the_table_are_legal() {
        use SeedStage::*;
        let table = [
            (Unknown, Germinated),
            (Dormant, Germinated),
            (Germinated, Training),
            (Training, Blending),
            (Blending, Holding),
            (Holding, Fossilized),
            (Holding, Blending),
            (Germinated, Pruned),
            (Training, Pruned),
            (Blending, Pruned),
            (Holding, Pruned),
            (Pruned, Embargoed),
            (Embargoed, Resetting),
            (Resetting, Dormant),
        ];
        for &from in SeedStage::ALL {
            for &to in SeedStage::ALL {
                assert_eq!(may_follow(from, to), table.contains(&(from, to)), "{from} → {to}");
            }
        }
    }

    #[test]
    fn advancing_never_commits_or_prunes() {
        for &stage in SeedStage::ALL {
            if let Some((_, to)) = next_stage(stage) {
                assert!(may_follow(stage, to) && to.is_live());
            }
        }
        assert_eq!(next_stage(SeedStage::Holding), None);
    }

    #[test]
    fn seeds_train_from_incubation_on_unless_they_fade_or_are_frozen_for_ever() {
        use AlphaMode::{Down, Hold, Up};
        use SeedStage::*;
        for stage in [Unknown, Dormant, Germinated, Pruned, Embargoed, Resetting] {
            assert!(!trains(stage, Hold, OnFossilize::Keep));
        }
        assert!(trains(Training, Hold, OnFossilize::Keep));
        assert!(trains(Blending, Up, OnFossilize::Keep));
        assert!(!trains(Blending, Down, OnFossilize::Keep));
        assert!(trains(Holding, Hold, OnFossilize::Freeze));
        assert!(trains(Fossilized, Hold, OnFossilize::ResetMomentum));
        assert!(!trains(Fossilized, Hold, OnFossilize::Freeze));
    }

    #[test]
    fn convolutional_seeds_are_isolated_until_they_are_committed() {
        use SeedStage::{Blending, Fossilized, Holding, Training};
        let cnn = IsolationConfig::default().cnn;
        assert_eq!(
            [Training, Blending, Holding, Fossilized].map(|stage| isolated(stage, &cnn)),
            [true, true, true, false]
        );
    }

    #[test]
    fn an_optimizer_needs_parameters_and_a_stage_that_has_begun_to_train() {
        assert!(!has_optimizer(SeedStage::Germinated, 10));
        assert!(has_optimizer(SeedStage::Training, 10));
        assert!(has_optimizer(SeedStage::Fossilized, 10));
        assert!(!has_optimizer(SeedStage::Training, 0));
        assert!(!has_optimizer(SeedStage::Pruned, 10));
    }
}
