//! Meaning of each stage: which one may follow, the quality gate before it, what trains.
//!
//! None of this is stored: it follows from the record and the scenario. Permissive gates check structure and safety and leave
//! quality to the controller's reward; strict ones also ask for results. Every comparison is inclusive, and a missing measurement
//! fails.

use smallvec::{SmallVec, smallvec};

use super::{ALPHA_TOLERANCE, SeedRecord};
use crate::growth::{AlphaMode, GateCheck, GateLevel, GateResult, SeedStage, Topology};
use crate::scenario::{GateConfig, GateMode, OnCommit};

/// Gain in accuracy during training that strict gates require before blending, percentage points.
const MIN_TRAINING_IMPROVEMENT: f64 = 0.5;
/// Minimum ratio of the seed's gradient to the host's that strict gates require before blending.
const MIN_GRADIENT_RATIO: f64 = 0.10;
/// Contribution that a commit needs under strict gates, and with which a committed seed counts as contributing, percentage points.
pub const MIN_CONTRIBUTION: f64 = 1.0;
/// Greatest age of a contribution that a commit may rely on, steps: that of the step before.
const MAX_CONTRIBUTION_AGE: u32 = 1;

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
        Committed => matches!(from, Holding),
        Pruned => from.is_live(),
        Embargoed => matches!(from, Pruned),
        Resetting => matches!(from, Embargoed),
    }
}

/// The stage that `Advance` leads to and the gate before it. A commit isn't an advance: it has its own op.
pub const fn next_stage(stage: SeedStage) -> Option<(GateLevel, SeedStage)> {
    match stage {
        SeedStage::Germinated => Some((GateLevel::G1, SeedStage::Training)),
        SeedStage::Training => Some((GateLevel::G2, SeedStage::Blending)),
        SeedStage::Blending => Some((GateLevel::G3, SeedStage::Holding)),
        _ => None,
    }
}

/// A seed's optimizer exists from training to the end of its life.
pub const fn has_optimizer(stage: SeedStage) -> bool {
    stage.is_occupied() && !matches!(stage, SeedStage::Germinated)
}

/// The isolation of the host from the gradient of seeds that are blended in or held. A training seed's gradient never reaches
/// the host, a committed one's always does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The host does not feel the seed's gradient.
    Isolated,
    /// Host and seed train together.
    CoAdapt,
}

impl Isolation {
    /// Isolation by a host's features. A convolutional host must be as good without the seed until it is committed. A language
    /// model's residual stream is shared from the start.
    pub const fn of(topology: Topology) -> Self {
        match topology {
            Topology::Image => Self::Isolated,
            Topology::Tokens => Self::CoAdapt,
        }
    }
}

/// Returns whether the seed's optimizer is stepped. A fading seed must not fight the decay, so it isn't updated while alpha
/// moves down. Its momentum is kept.
pub const fn trains(stage: SeedStage, mode: AlphaMode, on_commit: OnCommit) -> bool {
    match stage {
        SeedStage::Training | SeedStage::Blending | SeedStage::Holding => !matches!(mode, AlphaMode::Down),
        SeedStage::Committed => !matches!(on_commit, OnCommit::Freeze),
        _ => false,
    }
}

/// Tries `level` on the current state of a seed; changes nothing.
pub fn evaluate_gate(level: GateLevel, seed: &SeedRecord, config: &GateConfig) -> GateResult {
    let strict = config.mode == GateMode::Strict;
    let checks = match level {
        GateLevel::G0 => germination(seed),
        GateLevel::G1 => training(seed),
        GateLevel::G2 if strict => strict_blending(seed, config),
        GateLevel::G2 => permissive_blending(seed, config),
        GateLevel::G3 => holding(seed, config, strict),
        GateLevel::G5 => commit_checks(seed, strict),
    };
    GateResult {
        level,
        passed: checks.iter().all(|check| check.passed),
        checks,
    }
}

/// Share of the passed checks in the gate before the next stage or the commit; `None` if no gate follows.
pub(super) fn gate_readiness(seed: &SeedRecord, config: &GateConfig) -> Option<f64> {
    let level = match seed.stage {
        SeedStage::Holding => GateLevel::G5,
        stage => next_stage(stage)?.0,
    };
    let checks = evaluate_gate(level, seed, config).checks;
    let passed = checks.iter().filter(|check| check.passed).count();
    Some(passed as f64 / checks.len() as f64)
}

type Checks = SmallVec<[GateCheck; 4]>;

fn germination(seed: &SeedRecord) -> Checks {
    smallvec![
        holds("seed_id_present", !seed.identity.seed_id.is_empty()),
        holds("blueprint_present", !seed.identity.blueprint.is_empty()),
    ]
}

fn training(seed: &SeedRecord) -> Checks {
    smallvec![holds("is_germinated", seed.stage == SeedStage::Germinated)]
}

fn permissive_blending(seed: &SeedRecord, config: &GateConfig) -> Checks {
    smallvec![
        lasted(seed, config.min_training_steps),
        not_exploding(seed),
        at_least("gradient_health", seed.gradient.health, config.min_gradient_health),
    ]
}

fn strict_blending(seed: &SeedRecord, config: &GateConfig) -> Checks {
    let improvement = Some(seed.improvement_since_stage_start());
    smallvec![
        at_least("improvement", improvement, MIN_TRAINING_IMPROVEMENT),
        lasted(seed, config.min_training_steps),
        not_exploding(seed),
        at_least("gradient_ratio", seed.gradient.ratio, MIN_GRADIENT_RATIO),
    ]
}

fn holding(seed: &SeedRecord, config: &GateConfig, strict: bool) -> Checks {
    let alpha = &seed.alpha;
    let distance = (alpha.alpha() - alpha.target()).abs();
    let mut checks = smallvec![
        at_least("target_is_full", Some(alpha.target()), 1.0 - ALPHA_TOLERANCE),
        GateCheck {
            id: "target_reached",
            value: Some(alpha.alpha()),
            threshold: Some(alpha.target()),
            passed: alpha.is_holding() && distance <= ALPHA_TOLERANCE,
        },
    ];
    if strict {
        checks.push(lasted(seed, config.min_blending_steps));
    }
    checks
}

fn commit_checks(seed: &SeedRecord, strict: bool) -> Checks {
    let contribution = seed.contribution.value;
    let age = seed.contribution.age;
    let mut checks = smallvec![
        GateCheck {
            id: "contribution_age",
            value: age.map(f64::from),
            threshold: Some(f64::from(MAX_CONTRIBUTION_AGE)),
            passed: contribution.is_some() && age.is_some_and(|age| age <= MAX_CONTRIBUTION_AGE),
        },
        holds("healthy", seed.healthy()),
    ];
    if strict {
        checks.push(at_least("contribution", contribution, MIN_CONTRIBUTION));
    }
    checks
}

fn holds(id: &'static str, passed: bool) -> GateCheck {
    GateCheck {
        id,
        value: None,
        threshold: None,
        passed,
    }
}

fn at_least(id: &'static str, value: Option<f64>, threshold: f64) -> GateCheck {
    GateCheck {
        id,
        value,
        threshold: Some(threshold),
        passed: value.is_some_and(|value| value >= threshold),
    }
}

fn lasted(seed: &SeedRecord, epochs: u32) -> GateCheck {
    at_least(
        "steps_in_stage",
        Some(f64::from(seed.steps_in_stage)),
        f64::from(epochs),
    )
}

fn not_exploding(seed: &SeedRecord) -> GateCheck {
    GateCheck {
        id: "not_exploding",
        value: seed
            .gradient
            .has_exploding
            .map(|explodes| f64::from(u8::from(explodes))),
        threshold: Some(0.0),
        passed: seed.gradient.has_exploding == Some(false),
    }
}

#[cfg(test)]
mod gate_tests;
#[cfg(test)]
mod tests;
