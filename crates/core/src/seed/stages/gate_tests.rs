use super::*;
use crate::scenario::fixtures::slow_gates;
use crate::seed::fixtures::fresh;
use crate::seed::{AlphaController, RampShape};

const PERMISSIVE: GateMode = GateMode::Permissive;
const STRICT: GateMode = GateMode::Strict;

/// A seed that has trained long and well enough for either mode.
fn trained() -> SeedRecord {
    let mut seed = fresh();
    seed.steps_in_stage = 10;
    seed.accuracy.current = seed.accuracy.at_stage_start + 0.5;
    seed.gradient.health = Some(0.7);
    seed.gradient.ratio = Some(0.10);
    seed.gradient.has_exploding = Some(false);
    seed
}

fn held(contribution: f64) -> SeedRecord {
    let mut seed = trained();
    seed.contribution.value = Some(contribution);
    seed.contribution.age = Some(1);
    seed
}

/// Does `level` pass for `seed` after `change`?
fn passes(level: GateLevel, mode: GateMode, mut seed: SeedRecord, change: fn(&mut SeedRecord)) -> bool {
    change(&mut seed);
    let config = GateConfig { mode, ..slow_gates() };
    evaluate_gate(level, &seed, &config).passed
}

#[test]
fn g1_asks_for_a_germinated_seed() {
    let passes = |change: fn(&mut SeedRecord)| passes(GateLevel::G1, PERMISSIVE, fresh(), change);
    assert!(passes(|_| {}));
    assert!(!passes(|seed| seed.stage = SeedStage::Training));
}

#[test]
fn permissive_g2_asks_for_time_and_measured_healthy_gradients() {
    let passes = |change: fn(&mut SeedRecord)| passes(GateLevel::G2, PERMISSIVE, trained(), change);
    assert!(passes(|_| {}));
    assert!(!passes(|seed| seed.gradient.health = Some(0.69)));
    assert!(!passes(|seed| seed.gradient.has_exploding = Some(true)));
    assert!(!passes(|seed| seed.steps_in_stage = 9));
    assert!(!passes(|seed| seed.gradient = Default::default()));
    assert!(passes(|seed| seed.accuracy.current = 0.0));
}

#[test]
fn strict_g2_also_asks_for_results() {
    let passes = |change: fn(&mut SeedRecord)| passes(GateLevel::G2, STRICT, trained(), change);
    assert!(passes(|_| {}));
    assert!(!passes(|seed| seed.accuracy.current -= 0.01));
    assert!(!passes(|seed| seed.steps_in_stage = 9));
    assert!(!passes(|seed| seed.gradient.ratio = Some(0.099)));
    assert!(!passes(|seed| seed.gradient.ratio = None));
    assert!(!passes(|seed| seed.gradient.has_exploding = Some(true)));
}

#[test]
fn g3_asks_for_full_alpha_reached_and_in_strict_mode_for_time() {
    let passes = |mode, target, ticks, change: fn(&mut SeedRecord)| {
        let mut seed = trained();
        seed.stage = SeedStage::Blending;
        seed.alpha = AlphaController::rising_to(target, ticks, RampShape::default());
        passes(GateLevel::G3, mode, seed, change)
    };
    assert!(passes(PERMISSIVE, 1.0, 0, |_| {}));
    assert!(!passes(PERMISSIVE, 0.7, 0, |_| {}));
    assert!(!passes(PERMISSIVE, 1.0, 3, |_| {}));
    assert!(passes(STRICT, 1.0, 0, |_| {}));
    assert!(!passes(STRICT, 1.0, 0, |seed| seed.steps_in_stage = 9));
}

#[test]
fn g5_asks_for_a_fresh_contribution_and_health_and_in_strict_mode_for_worth() {
    for (mode, seed, expected) in [
        (PERMISSIVE, held(-3.0), true),
        (STRICT, held(1.0), true),
        (STRICT, held(0.999), false),
        (PERMISSIVE, trained(), false),
    ] {
        assert_eq!(passes(GateLevel::G5, mode, seed, |_| {}), expected, "{mode:?}");
    }
    let passes = |change: fn(&mut SeedRecord)| passes(GateLevel::G5, PERMISSIVE, held(2.0), change);
    assert!(!passes(|seed| seed.contribution.age = Some(2)));
    assert!(!passes(|seed| seed.gradient.has_exploding = Some(true)));
    assert!(!passes(|seed| seed.gradient.has_exploding = None));
    assert!(!passes(|seed| seed.gradient.nonfinite_streak = 1));
}

#[test]
fn a_failed_check_carries_value_and_threshold() {
    let mut seed = trained();
    seed.gradient.health = Some(0.69);
    let result = evaluate_gate(GateLevel::G2, &seed, &slow_gates());
    let failed: Vec<_> = result.checks.iter().filter(|check| !check.passed).collect();
    let expected = GateCheck {
        id: "gradient_health",
        value: Some(0.69),
        threshold: Some(0.7),
        passed: false,
    };
    assert_eq!(failed, [&expected]);
}

#[test]
fn a_report_tells_how_much_of_the_next_gate_holds() {
    let gates = GateConfig {
        min_training_steps: 3,
        ..slow_gates()
    };
    let mut seed = fresh();
    let readiness = |seed: &SeedRecord| seed.report("conv_light", &gates).gate_readiness;
    assert_eq!(readiness(&seed), Some(1.0), "a germinated seed may train");

    seed.stage = SeedStage::Training;
    assert_eq!(readiness(&seed), Some(0.0), "too young, and no gradient yet");
    seed.steps_in_stage = 3;
    assert_eq!(readiness(&seed), Some(1.0 / 3.0));

    seed.stage = SeedStage::Committed;
    assert_eq!(readiness(&seed), None, "nothing follows");
}
