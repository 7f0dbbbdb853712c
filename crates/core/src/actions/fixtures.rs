//! Reports, limits, masks and commands for tests.

use proptest::prelude::*;

use super::{Choices, DecisionPoint, MaskSet};
use crate::growth::{
    AlphaCurveAction, AlphaMode, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleCommand, SeedStage, SlotId, Tempo,
};
use crate::seed::{Limits, SeedReport};

pub const AT: DecisionPoint = DecisionPoint {
    env: 3,
    episode: 11,
    step: 7,
};

/// Names in index order, as a registry of convolutional blueprints has them.
pub const BLUEPRINT_NAMES: [&str; 8] = [
    "noop",
    "conv_light",
    "attention",
    "norm",
    "depthwise",
    "bottleneck",
    "conv_small",
    "conv_heavy",
];

/// All blueprints but the one without parameters, for each of up to eight slots.
pub const CNN_BLUEPRINTS: [Choices; 8] = [Choices::first_n(8).without(0); 8];

pub fn empty(slots: usize) -> Vec<Option<SeedReport>> {
    vec![None; slots]
}

pub fn report(slot: usize, stage: SeedStage) -> SeedReport {
    SeedReport {
        seed_id: format!("e11.r0c{slot}.0"),
        seed_params: 592,
        ..SeedReport::at_rest(SlotId::new(0, slot as u16), stage)
    }
}

/// The default rules.
pub fn limits() -> Limits {
    Limits::new(
        &crate::scenario::fixtures::slow_lifecycle(),
        &crate::scenario::fixtures::all_choices(),
        0,
    )
}

pub fn masks(reports: &[Option<SeedReport>], limits: &Limits) -> MaskSet {
    MaskSet::build(AT, reports, &CNN_BLUEPRINTS[..reports.len()], limits).unwrap()
}

/// A germination with the placeholders of its other choices.
pub fn germination(slot: usize, blueprint: usize) -> LifecycleCommand {
    LifecycleCommand::Germinate {
        slot,
        blueprint,
        style: GerminationStyle::SigmoidAdd,
        tempo: Tempo::Standard,
        target: AlphaTarget::Full,
    }
}

/// One command of each op and slot.
pub fn commands(slots: usize) -> Vec<LifecycleCommand> {
    let (style, target) = (GerminationStyle::SigmoidAdd, AlphaTarget::Full);
    let (speed, curve) = (AlphaSpeed::Fast, AlphaCurveAction::Cosine);
    let mut commands = vec![LifecycleCommand::Wait];
    for slot in 0..slots {
        commands.extend([
            LifecycleCommand::Germinate {
                slot,
                blueprint: 3,
                style,
                tempo: Tempo::Fast,
                target,
            },
            LifecycleCommand::SetAlphaTarget {
                slot,
                style,
                target,
                speed,
                curve,
            },
            LifecycleCommand::Prune { slot, speed, curve },
            LifecycleCommand::Commit { slot },
            LifecycleCommand::Advance { slot },
        ]);
    }
    commands
}

/// Slots in any state, the impossible ones included.
pub fn any_reports(slots: usize) -> impl Strategy<Value = Vec<Option<SeedReport>>> {
    let seed = (
        0..SeedStage::ALL.len(),
        0u32..9,
        0..AlphaMode::ALL.len(),
        prop::option::of(-3.0..3.0f64),
        any::<bool>(),
    );
    prop::collection::vec(prop::option::of(seed), slots).prop_map(|seeds| {
        let reports = seeds.into_iter().enumerate().map(|(slot, seed)| {
            let (stage, age_steps, mode, contribution, half) = seed?;
            let mut report = report(slot, SeedStage::ALL[stage]);
            report.age_steps = age_steps;
            report.alpha_mode = AlphaMode::ALL[mode];
            report.contribution = contribution;
            report.alpha *= if half { 0.5 } else { 1.0 };
            Some(report)
        });
        reports.collect()
    })
}

/// Any rules.
pub fn any_limits() -> impl Strategy<Value = Limits> {
    (0u32..4, 0u32..7, any::<bool>(), any::<bool>()).prop_map(
        |(max_seeds, min_prune_age, auto_forward, sequential_germination)| Limits {
            max_seeds,
            min_prune_age,
            auto_forward,
            sequential_germination,
        },
    )
}
