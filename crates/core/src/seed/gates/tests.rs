use super::*;
use crate::seed::fixtures::{germination, limits};
use crate::seed::{AlphaController, RampShape, Rules, germinate};

const PERMISSIVE: GateMode = GateMode::Permissive;
const STRICT: GateMode = GateMode::Strict;

fn seed() -> SeedRecord {
    let config = crate::scenario::fixtures::slow_lifecycle();
    let limits = limits(&config);
    let rules = Rules {
        config: &config,
        limits: &limits,
        step: 1,
    };
    let plan = germinate(germination(), &rules).expect("germination is legal");
    plan.next.expect("a record")
}

/// A seed that has trained long and well enough for either mode.
fn trained() -> SeedRecord {
    let mut seed = seed();
    seed.epochs_in_stage = 10;
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

fn passes(level: GateLevel, seed: &SeedRecord, mode: GateMode) -> bool {
    let config = GateConfig {
        mode,
        ..crate::scenario::fixtures::slow_gates()
    };
    evaluate_gate(level, seed, &config).passed
}

/// Does `level` pass for `seed` after `change`?
fn passes_after(level: GateLevel, mode: GateMode, mut seed: SeedRecord, change: impl FnOnce(&mut SeedRecord)) -> bool {
    change(&mut seed);
    passes(level, &seed, mode)
}

#[test]
fn g1_asks_for_a_germinated_seed() {
    assert!(passes(GateLevel::G1, &seed(), PERMISSIVE));
    assert!(!passes_after(GateLevel::G1, PERMISSIVE, seed(), |seed| {
        seed.stage = SeedStage::Training;
    }));
}

#[test]
fn permissive_g2_asks_for_time_and_measured_healthy_gradients() {
    let fails = |change: fn(&mut SeedRecord)| !passes_after(GateLevel::G2, PERMISSIVE, trained(), change);
    assert!(passes(GateLevel::G2, &trained(), PERMISSIVE));
    assert!(fails(|seed| seed.gradient.health = Some(0.69)));
    assert!(fails(|seed| seed.gradient.has_exploding = Some(true)));
    assert!(fails(|seed| seed.epochs_in_stage = 9));
    assert!(fails(|seed| seed.gradient = Default::default()));
    assert!(!fails(|seed| seed.accuracy.current = 0.0));
}

#[test]
fn strict_g2_also_asks_for_results() {
    let fails = |change: fn(&mut SeedRecord)| !passes_after(GateLevel::G2, STRICT, trained(), change);
    assert!(passes(GateLevel::G2, &trained(), STRICT));
    assert!(fails(|seed| seed.accuracy.current -= 0.01));
    assert!(fails(|seed| seed.epochs_in_stage = 9));
    assert!(fails(|seed| seed.gradient.ratio = Some(0.099)));
    assert!(fails(|seed| seed.gradient.ratio = None));
    assert!(fails(|seed| seed.gradient.has_exploding = Some(true)));
}

#[test]
fn g3_asks_for_full_alpha_reached_and_in_strict_mode_for_time() {
    let blended = |target: f64| {
        let mut seed = trained();
        seed.stage = SeedStage::Blending;
        seed.alpha = AlphaController::rising_to(target, 0, RampShape::default());
        seed
    };
    assert!(passes(GateLevel::G3, &blended(1.0), PERMISSIVE));
    assert!(!passes(GateLevel::G3, &blended(0.7), PERMISSIVE));
    assert!(passes(GateLevel::G3, &blended(1.0), STRICT));
    assert!(!passes_after(GateLevel::G3, STRICT, blended(1.0), |seed| {
        seed.epochs_in_stage = 9
    }));
    assert!(!passes_after(GateLevel::G3, PERMISSIVE, blended(1.0), |seed| {
        seed.alpha = AlphaController::rising_to(1.0, 3, RampShape::default());
    }));
}

#[test]
fn g5_asks_for_a_fresh_contribution_and_health_and_in_strict_mode_for_worth() {
    let level = GateLevel::G5;
    assert!(passes(level, &held(-3.0), PERMISSIVE));
    assert!(passes(level, &held(1.0), STRICT));
    assert!(!passes(level, &held(0.999), STRICT));
    assert!(!passes(level, &trained(), PERMISSIVE));
    let fails = |change: fn(&mut SeedRecord)| !passes_after(level, PERMISSIVE, held(2.0), change);
    assert!(fails(|seed| seed.contribution.age = Some(2)));
    assert!(fails(|seed| seed.gradient.has_exploding = Some(true)));
    assert!(fails(|seed| seed.gradient.has_exploding = None));
    assert!(fails(|seed| seed.gradient.nonfinite_streak = 1));
}

#[test]
fn a_failed_check_carries_value_and_threshold() {
    let mut seed = trained();
    seed.gradient.health = Some(0.69);
    let result = evaluate_gate(GateLevel::G2, &seed, &crate::scenario::fixtures::slow_gates());
    let failed: Vec<_> = result.checks.iter().filter(|check| !check.passed).collect();
    assert_eq!(
        failed,
        [&GateCheck {
            id: "gradient_health",
            value: Some(0.69),
            threshold: Some(0.7),
            passed: false
        }]
    );
}

#[test]
fn a_report_tells_how_much_of_the_next_gate_holds() {
    let gates = GateConfig {
        min_training_epochs: 3,
        ..crate::scenario::fixtures::slow_gates()
    };
    let mut seed = seed();
    let readiness = |seed: &SeedRecord| seed.report("conv_light", &gates).gate_readiness;
    assert_eq!(readiness(&seed), Some(1.0), "a germinated seed may train");

    seed.stage = SeedStage::Training;
    assert_eq!(
        readiness(&seed),
        Some(0.0),
        "too young, and no gradient was measured yet"
    );
    seed.epochs_in_stage = 3;
    assert_eq!(readiness(&seed), Some(1.0 / 3.0));

    seed.stage = SeedStage::Committed;
    assert_eq!(readiness(&seed), None, "nothing follows");
}
