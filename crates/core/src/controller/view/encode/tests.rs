//! The observation, feature by feature, and its normaliser.

use super::*;
use crate::actions::fixtures::{AT, empty, report};
use crate::actions::{ActionFeedback, PolicyError};
use crate::controller::view::{ObservationFeatures, ObservationNormaliser, SignalTracker, TrainingSignals, Treatment};
use crate::env::{TrainMetrics, ValMetrics};
use crate::growth::{AlphaAlgorithm, AlphaMode, LifecycleOp, SeedStage, SlotId, Tempo};
use crate::scenario::{FeatureGroup, NonfiniteObservations, ObservationConfig, TrackerConfig};
use crate::seed::SeedReport;

fn slots(count: u16) -> Vec<SlotId> {
    (0..count).map(|col| SlotId::new(0, col)).collect()
}

fn schema(count: u16) -> ObservationSchema {
    ObservationSchema::new(
        &slots(count),
        150,
        &ObservationConfig::default(),
        &ObservationFeatures::default(),
    )
}

fn observe(
    schema: &ObservationSchema,
    signals: &TrainingSignals,
    feedback: ActionFeedback,
    reports: &[Option<SeedReport>],
) -> Result<Observation, PolicyError> {
    let mut observation = Observation::default();
    let input = ObservationInput {
        at: AT,
        signals,
        feedback,
        reports,
    };
    schema.observe(&input, &mut observation)?;
    Ok(observation)
}

/// The 31 numbers of a slot, alone on its host.
fn slot_row(seed: SeedReport) -> Vec<f32> {
    let signals = TrainingSignals::default();
    let row = observe(&schema(1), &signals, ActionFeedback::default(), &[Some(seed)]).unwrap();
    row.raw[23..].to_vec()
}

fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 1e-6, "{index}: {found} is not {expected}");
    }
}

/// Zeros but for the given indices.
fn sparse(values: &[(usize, f32)]) -> Vec<f32> {
    let mut row = vec![0.0; 31];
    for &(index, value) in values {
        row[index] = value;
    }
    row
}

#[test]
fn observations_have_known_sizes() {
    assert_eq!([1, 3, 5, 10].map(|count| schema(count).len()), [54, 116, 178, 333]);
}

#[test]
fn the_env_s_features_have_known_values() {
    let mut tracker = SignalTracker::new(TrackerConfig::default());
    let mut signals = TrainingSignals::default();
    for (step, val_loss, val_accuracy) in [(8, 2.3, 20.0), (9, 1.8, 40.0), (10, 1.2, 55.0)] {
        let train = TrainMetrics {
            loss: val_loss,
            accuracy_percent: val_accuracy,
            ..TrainMetrics::default()
        };
        let val = ValMetrics {
            loss: val_loss,
            accuracy_percent: val_accuracy,
        };
        signals = tracker.update(step, &train, &val).unwrap();
    }
    let reports = [
        Some(report(0, SeedStage::Training)),
        Some(report(1, SeedStage::Committed)),
        None,
    ];
    let feedback = ActionFeedback {
        last_op: LifecycleOp::Germinate,
        last_ok: true,
    };

    let observation = observe(&schema(3), &signals, feedback, &reports).unwrap();

    let expected = [
        0.066667, 0.112637, 0.55, -1.0, -1.0, 0.170560, 0.147088, 0.112637, -1.0, -1.0, 0.2, 0.4, 0.55, 0.333333, 0.0,
        0.333333, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0,
    ];
    assert_close(&observation.raw[..23], &expected);
    assert_eq!(observation.blueprints.as_slice(), [1, 1, -1]);
    assert_eq!(observation.raw[23 + 62..], [0.0; 31]);
}

/// A loss that was not finite is seen as a very large one.
#[test]
fn a_diverged_loss_is_at_the_end_of_its_scale() {
    let signals = TrainingSignals {
        val_loss: 1.0e6,
        ..Default::default()
    };
    let observation = observe(&schema(3), &signals, ActionFeedback::default(), &empty(3)).unwrap();
    assert_close(&observation.raw[1..2], &[1.973645]);
}

#[test]
fn a_training_seed_s_features_have_known_values() {
    let seed = SeedReport {
        gradient_norm: Some(3.5),
        gradient_health: Some(0.9),
        steps_in_stage: 4,
        age_steps: 5,
        ..report(0, SeedStage::Training)
    };
    let expected = sparse(&[
        (0, 1.0),
        (4, 1.0),
        (14, 0.416667),
        (23, 0.214868),
        (24, 0.9),
        (27, -1.0),
        (28, 0.026667),
        (29, -1.0),
        (30, 0.033333),
    ]);
    assert_close(&slot_row(seed), &expected);
}

#[test]
fn a_blending_seed_s_features_have_known_values() {
    let seed = SeedReport {
        alpha: 0.3,
        alpha_mode: AlphaMode::Up,
        alpha_target: 1.0,
        alpha_steps_total: 8,
        alpha_steps_done: 3,
        time_to_target: 5,
        alpha_velocity: 0.125,
        algorithm: AlphaAlgorithm::Multiply,
        contribution: Some(2.5),
        contribution_velocity: -0.6,
        interaction_sum: -23.0,
        tempo: Tempo::Slow,
        contribution_age: Some(2),
        ..report(0, SeedStage::Blending)
    };
    let row = slot_row(seed);
    let found: Vec<f32> = [5, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 29]
        .map(|k| row[k])
        .to_vec();
    let expected = [
        1.0, 0.25, -0.06, 0.666667, 1.0, 0.5, 0.053333, 0.02, 0.033333, 0.125, 0.5, -1.0, 0.990025,
    ];
    assert_close(&found, &expected);
}

#[test]
fn an_infinite_gradient_is_the_largest_and_a_health_that_is_no_number_is_an_error() {
    let exploded = SeedReport {
        gradient_norm: Some(f64::INFINITY),
        ..report(0, SeedStage::Training)
    };
    assert_eq!(slot_row(exploded)[23], 2.0);

    let broken = SeedReport {
        gradient_health: Some(f64::NAN),
        ..report(2, SeedStage::Training)
    };
    let reports = [None, None, Some(broken)];
    let error = observe(
        &schema(3),
        &TrainingSignals::default(),
        ActionFeedback::default(),
        &reports,
    );
    let expected = PolicyError::NonFiniteFeature {
        at: AT,
        index: 23 + 62 + 24,
        feature: "r0c2.grad_health".into(),
    };
    assert_eq!(error, Err(expected));
}

#[test]
fn names_are_hashed_in_order() {
    let names = schema(3).names().to_vec();
    assert_eq!(
        (names[1].as_str(), names[23].as_str(), names[115].as_str()),
        ("val_loss", "r0c0.occupied", "r0c2.seed_age")
    );
    assert_eq!(schema(3).hash(), schema(3).hash());
    assert_ne!(schema(3).hash(), schema(2).hash());
    assert_eq!(schema(3).hash().len(), 64);
}

fn custom(name: &str, extract: Extract, treatment: Treatment) -> ObservationFeature {
    ObservationFeature {
        name: name.into(),
        extract,
        range: 0.0..=1.0,
        treatment,
    }
}

#[test]
fn features_of_plugins_stand_at_the_end_of_their_blocks_within_their_range() {
    let mut features = ObservationFeatures::default();
    let loss = Extract::env(|env| Some(env.signals.train_loss));
    let health = Extract::slot(|seed| seed.gradient_health);
    features.register(custom("health", health, Treatment::MayBeUnknown));
    features.register(custom("train_loss", loss, Treatment::Normalised));
    let schema = ObservationSchema::new(&slots(2), 150, &ObservationConfig::default(), &features);
    let signals = TrainingSignals {
        train_loss: 7.0,
        ..Default::default()
    };

    let reports = [None, Some(report(1, SeedStage::Training))];
    let observation = observe(&schema, &signals, ActionFeedback::default(), &reports).unwrap();

    assert_eq!(schema.len(), 24 + 2 * 32);
    assert_eq!((schema.names()[23].as_str(), observation.raw[23]), ("train_loss", 1.0));
    assert_eq!((schema.names()[55].as_str(), observation.raw[55]), ("r0c0.health", 0.0));
    assert_eq!(
        (schema.names()[87].as_str(), observation.raw[87]),
        ("r0c1.health", UNKNOWN)
    );
}

#[test]
fn a_feature_s_name_is_taken_once_and_unknown_lies_outside_its_range() {
    let extract = || Extract::slot(|seed| seed.gradient_ratio);
    let refused = |feature: ObservationFeature| {
        let mut features = ObservationFeatures::default();
        features.register(custom("ratio", extract(), Treatment::Plain));
        features.register(feature);
        assert_eq!(features.iter().count(), 1);
        features.refused().map(ToString::to_string).unwrap_or_default()
    };
    for taken in ["ratio", "val_loss", "seed_age"] {
        assert_eq!(
            refused(custom(taken, extract(), Treatment::Plain)),
            format!("the observation feature name `{taken}` is taken; register yours under another")
        );
    }
    let hidden = ObservationFeature {
        range: -2.0..=2.0,
        ..custom("hidden", extract(), Treatment::MayBeUnknown)
    };
    assert_eq!(
        refused(hidden),
        "the observation feature \"hidden\" cannot be registered: its range must not contain -1, which means unknown"
    );
}

#[test]
fn elements_that_are_not_finite_are_read_as_zero_on_request() {
    let schema = schema(3).with_nonfinite(NonfiniteObservations::Zero);
    let health = 23 + 62 + 24;
    let row_of = |gradient_health: f64| {
        let seed = SeedReport {
            gradient_health: Some(gradient_health),
            ..report(2, SeedStage::Training)
        };
        observe(
            &schema,
            &TrainingSignals::default(),
            ActionFeedback::default(),
            &[None, None, Some(seed)],
        )
        .unwrap()
    };

    let (sound, broken) = (row_of(0.5), row_of(f64::NAN));

    assert_eq!((sound.replaced, broken.replaced), (None, Some(health)));
    assert_eq!((sound.raw[health], broken.raw[health]), (0.5, 0.0));
    let others = |row: &[f32]| [&row[..health], &row[health + 1..]].concat();
    assert_eq!(others(&sound.raw), others(&broken.raw));
}

/// A row of a host with two slots; the first is occupied, and its alpha is what is looked at.
fn row_with_alpha(alpha: f32) -> Vec<f32> {
    let mut row = vec![0.0; schema(2).len()];
    (row[23], row[23 + 11], row[23 + 27]) = (1.0, alpha, UNKNOWN);
    row
}

fn normaliser() -> ObservationNormaliser {
    ObservationNormaliser::new(&schema(2))
}

fn normalised(normaliser: &ObservationNormaliser, row: &[f32]) -> Vec<f32> {
    let mut out = Vec::new();
    normaliser.normalise(row, &mut out);
    out
}

/// Each row sixteen times: two are enough for statistics to be used.
fn commit(normaliser: &mut ObservationNormaliser, rows: &[Vec<f32>]) {
    let rows = rows.iter().cycle().take(16 * rows.len());
    normaliser.commit(rows.map(Vec::as_slice)).unwrap();
}

#[test]
fn committed_statistics_scale_the_features_that_take_part_and_no_others() {
    let mut normaliser = normaliser();
    let before = normalised(&normaliser, &row_with_alpha(3.0));
    assert_eq!(before[34], 3.0, "identity until enough was seen");

    commit(&mut normaliser, &[row_with_alpha(1.0), row_with_alpha(3.0)]);

    let row = normalised(&normaliser, &row_with_alpha(3.0));
    assert_close(&row[34..35], &[0.999950]);
    assert_eq!(row[23 + 27], UNKNOWN);
    assert_eq!(row[23], 1.0);
    assert_eq!(row[23 + 31..], [0.0; 31], "an empty slot stays empty");
    assert_eq!(normalised(&normaliser, &row_with_alpha(1000.0))[34], 10.0);
}

#[test]
fn a_rollout_without_seeds_leaves_the_slots_statistics_alone() {
    let mut normaliser = normaliser();
    commit(&mut normaliser, &[row_with_alpha(1.0), row_with_alpha(3.0)]);
    let of_alpha = normaliser.statistics()[34];
    assert_eq!((of_alpha.mean, of_alpha.var, of_alpha.count), (2.0, 1.0, 32));

    commit(&mut normaliser, &[vec![0.0; 85]]);

    assert_eq!(normaliser.statistics()[34], of_alpha);
    assert_eq!(normaliser.statistics()[0].count, 48);
}

#[test]
fn slots_share_the_statistics_of_a_feature() {
    let mut normaliser = normaliser();
    let mut second = row_with_alpha(0.0);
    (second[23], second[54], second[54 + 11]) = (0.0, 1.0, 3.0);
    commit(&mut normaliser, &[row_with_alpha(1.0), second]);
    let of_alpha = normaliser.statistics()[34];
    assert_eq!((of_alpha.mean, of_alpha.var), (2.0, 1.0));
}

#[test]
fn numbers_that_are_not_finite_change_no_statistics() {
    let mut normaliser = normaliser();
    commit(&mut normaliser, &[row_with_alpha(1.0), row_with_alpha(3.0)]);
    let before = normaliser.clone();
    let rows = [row_with_alpha(f32::NAN)];
    let error = normaliser.commit(rows.iter().map(Vec::as_slice));
    assert_eq!(error, Err(PolicyError::NonFiniteStatistics));
    assert_eq!(normaliser, before);
}

#[test]
fn reward_parts_stand_behind_the_features_that_each_observation_has() {
    let config = ObservationConfig {
        features: vec![FeatureGroup::RewardParts],
        ..ObservationConfig::default()
    };
    let wide = ObservationSchema::new(&slots(1), 150, &config, &ObservationFeatures::default());
    let signals = TrainingSignals {
        val_accuracy: 70.0,
        committed_accuracy: 40.0,
        train_accuracy: 80.0,
        host_params: 1000,
        ..TrainingSignals::default()
    };
    let seed = SeedReport {
        stage: SeedStage::Holding,
        alpha: 1.0,
        contribution: Some(30.0),
        total_improvement: 25.0,
        seed_params: 500,
        gate_readiness: Some(0.5),
        account: 1.25,
        ..report(0, SeedStage::Holding)
    };
    let reports = [Some(seed)];
    let row = |schema: &ObservationSchema| {
        observe(schema, &signals, ActionFeedback::default(), &reports)
            .expect("finite")
            .raw
    };
    let (narrow, wide_row) = (row(&schema(1)), row(&wide));

    assert_eq!((narrow.len(), wide_row.len()), (23 + 31, 27 + 36));
    assert_eq!(
        (narrow[..23].to_vec(), narrow[23..].to_vec()),
        (wide_row[..23].to_vec(), wide_row[27..58].to_vec())
    );
    assert_close(&wide_row[23..27], &[0.4, 0.3, 0.8, 0.5_f32.ln_1p()]);
    let of_slot = [31_f32.ln() / 101_f32.ln(), 0.25, 501_f32.ln() / 14.0, 0.5, 1.25];
    assert_close(&wide_row[58..], &of_slot);
    assert_ne!(schema(1).hash(), wide.hash());
}
