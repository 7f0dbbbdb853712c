use super::*;
use crate::growth::{AlphaCurve, GerminationStyle};
use crate::scenario::fixtures::slow_lifecycle;
use crate::seed::fixtures::{Life, germination};
use crate::seed::{RampShape, germinate_committed};

/// A seed at full amplitude.
fn seed(stage: SeedStage, number: u32) -> SeedRecord {
    let mut order = germination(GerminationStyle::LinearAdd);
    (order.identity.seed_id, order.identity.germination) = (format!("e0.r0c0.{number}"), number);
    let plan = germinate_committed(order, &Life::new(slow_lifecycle()).rules());
    let mut seed = plan.unwrap().next.unwrap();
    seed.stage = stage;
    seed
}

/// Returns whether a step with these seeds is measured.
fn is_measured(last: &mut LastMeasured, seeds: &[SeedRecord], is_final: bool) -> bool {
    let on_change = AttributionConfig {
        cadence: Cadence::OnChange,
        ..AttributionConfig::default()
    };
    let (players, config) = last.find(seeds.iter().map(Some), true, &on_change, is_final);
    assert_eq!(players.len(), seeds.len());
    config.strategy != AttributionStrategy::Off
}

#[test]
fn seeds_are_measured_when_they_have_changed_and_not_again_before_they_do() {
    let mut last = LastMeasured::default();
    let blending = [seed(SeedStage::Blending, 0)];
    assert!(is_measured(&mut last, &blending, false), "never measured");
    assert!(!is_measured(&mut last, &blending, false), "as it was");

    let committed = [seed(SeedStage::Committed, 0)];
    assert!(is_measured(&mut last, &committed, false), "another stage");
    assert!(!is_measured(&mut last, &committed, false), "as it was");

    let other = [seed(SeedStage::Committed, 1)];
    assert!(is_measured(&mut last, &other, false), "another seed");

    let both = [seed(SeedStage::Committed, 1), seed(SeedStage::Blending, 2)];
    assert!(is_measured(&mut last, &both, false), "one more");
    assert!(is_measured(&mut last, &other, false), "one fewer");
    assert!(!is_measured(&mut last, &other, false), "as it was");

    last.forget();
    assert!(is_measured(&mut last, &other, false), "forgotten");
}

#[test]
fn another_amplitude_is_a_change() {
    let mut last = LastMeasured::default();
    let mut blending = [seed(SeedStage::Blending, 0)];
    let full = blending[0].alpha.alpha();
    assert!(is_measured(&mut last, &blending, false));

    let shape = RampShape::new(AlphaCurve::Linear, 12.0);
    blending[0].alpha.retarget(0.5, 4, shape).unwrap();
    let _ = blending[0].alpha.step();

    assert!(blending[0].alpha.alpha() < full);
    assert!(is_measured(&mut last, &blending, false));
}

#[test]
fn a_held_seed_is_measured_at_every_step_and_the_last_step_in_any_case() {
    let mut last = LastMeasured::default();
    let held = [seed(SeedStage::Holding, 0)];
    assert!((0..3).all(|_| is_measured(&mut last, &held, false)));

    let committed = [seed(SeedStage::Committed, 0)];
    assert!(is_measured(&mut last, &committed, false));
    assert!(!is_measured(&mut last, &committed, false));
    assert!(is_measured(&mut last, &committed, true), "the last step");
}

#[test]
fn other_cadences_are_left_unchanged() {
    let mut last = LastMeasured::default();
    let every_step = AttributionConfig::default();
    let committed = [seed(SeedStage::Committed, 0)];
    for _ in 0..2 {
        let (_, config) = last.find(committed.iter().map(Some), true, &every_step, false);
        assert_eq!(config, every_step);
    }
}
