//! The observation, feature by feature, and its normaliser.

use super::*;
use crate::actions::fixtures::{AT, report};
use crate::actions::{ActionFeedback, PolicyError};
use crate::controller::view::{ObservationFeatures, ObservationNormaliser, SignalTracker, TrainingSignals, Treatment};
use crate::env::{TrainMetrics, ValMetrics};
use crate::growth::{AlphaAlgorithm, AlphaMode, LifecycleOp, SeedStage, SlotId, Tempo};
use crate::scenario::FeatureGroup;
use crate::seed::{GradientTrack, SeedReport};

fn schema_with(count: u16, groups: &[FeatureGroup], features: &ObservationFeatures) -> ObservationSchema {
    let slots: Vec<SlotId> = (0..count).map(|col| SlotId::new(0, col)).collect();
    ObservationSchema::new(&slots, 150, groups, features)
}

fn schema(count: u16) -> ObservationSchema {
    schema_with(count, &[], &ObservationFeatures::default())
}

/// After a germination that took effect.
fn observe(
    schema: &ObservationSchema,
    signals: &TrainingSignals,
    reports: &[Option<SeedReport>],
) -> Result<Observation, PolicyError> {
    let mut observation = Observation::default();
    let feedback = ActionFeedback {
        last_op: LifecycleOp::Germinate,
        last_ok: true,
    };
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
    let row = observe(&schema(1), &TrainingSignals::default(), &[Some(seed)]).unwrap();
    row.raw[23..].to_vec()
}

/// A seed of this health in the last of three slots.
fn with_health(schema: &ObservationSchema, gradient_health: f64) -> Result<Observation, PolicyError> {
    let mut seed = report(2, SeedStage::Training);
    seed.gradient.health = Some(gradient_health);
    observe(schema, &TrainingSignals::default(), &[None, None, Some(seed)])
}

/// Index of that health.
const HEALTH: usize = 23 + 62 + 24;

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 1e-6, "{index}: {found} is not {expected}");
    }
}

#[test]
fn observations_have_known_sizes() {
    assert_eq!([1, 3, 5, 10].map(|count| schema(count).len()), [54, 116, 178, 333]);
}

#[test]
fn the_env_s_features_have_known_values() {
    let mut tracker = SignalTracker::default();
    let mut signals = TrainingSignals::default();
    for (step, loss, accuracy_percent) in [(8, 2.3, 20.0), (9, 1.8, 40.0), (10, 1.2, 55.0)] {
        let train = TrainMetrics {
            loss,
            accuracy_percent,
            ..TrainMetrics::default()
        };
        let val = ValMetrics { loss, accuracy_percent };
        signals = tracker.update(step, &train, &val).unwrap();
    }
    let seeds = [report(0, SeedStage::Training), report(1, SeedStage::Committed)].map(Some);

    let observation = observe(&schema(3), &signals, &[&seeds[..], &[None]].concat()).unwrap();

    let expected = [
        0.066667, 0.112637, 0.55, -1.0, -1.0, 0.170560, 0.147088, 0.112637, -1.0, -1.0, 0.2, 0.4, 0.55, 0.333333, 0.0,
        0.333333, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0,
    ];
    assert_close(&observation.raw[..23], &expected);
    assert_eq!(observation.blueprints.as_slice(), [1, 1, -1]);
    assert_eq!(observation.raw[23 + 62..], [0.0; 31]);
}

#[test]
fn the_features_of_a_training_and_of_a_blending_seed_have_known_values() {
    let training = SeedReport {
        gradient: GradientTrack {
            norm: Some(3.5),
            health: Some(0.9),
            ..Default::default()
        },
        steps_in_stage: 4,
        age_steps: 5,
        ..report(0, SeedStage::Training)
    };
    let expected = [
        1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.416667, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        0.0, 0.0, 0.214868, 0.9, 0.0, 0.0, -1.0, 0.026667, -1.0, 0.033333,
    ];
    assert_close(&slot_row(training), &expected);

    let row = slot_row(SeedReport {
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
    });
    let expected = [
        0.25, -0.06, 0.666667, 1.0, 0.5, 0.053333, 0.02, 0.033333, 0.125, 0.5, -1.0,
    ];
    assert_close(&row[12..23], &expected);
    assert_close(&[row[5], row[29]], &[1.0, 0.990025]);
}

#[test]
fn an_infinite_gradient_is_the_largest_and_a_health_of_nan_is_an_error() {
    let mut exploded = report(0, SeedStage::Training);
    exploded.gradient.norm = Some(f64::INFINITY);
    assert_eq!(slot_row(exploded)[23], 2.0);

    let expected = PolicyError::NonFiniteFeature {
        at: AT,
        index: HEALTH,
        feature: "r0c2.grad_health".into(),
    };
    assert_eq!(with_health(&schema(3), f64::NAN), Err(expected));
}

#[test]
fn names_are_hashed_in_order() {
    let names = schema(3).names().to_vec();
    let found = [1, 23, 115].map(|index| names[index].as_str());
    assert_eq!(found, ["val_loss", "r0c0.occupied", "r0c2.seed_age"]);
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
    let health = Extract::slot(|seed| seed.gradient.health);
    features.register(custom("health", health, Treatment::MayBeUnknown));
    features.register(custom("train_loss", loss, Treatment::Normalised));
    let schema = schema_with(2, &[], &features);
    let signals = TrainingSignals {
        train_loss: 7.0,
        ..Default::default()
    };

    let reports = [None, Some(report(1, SeedStage::Training))];
    let observation = observe(&schema, &signals, &reports).unwrap();

    assert_eq!(schema.len(), 24 + 2 * 32);
    let found = [23, 55, 87].map(|index| (schema.names()[index].as_str(), observation.raw[index]));
    let expected = [("train_loss", 1.0), ("r0c0.health", 0.0), ("r0c1.health", UNKNOWN)];
    assert_eq!(found, expected);
}

#[test]
fn a_feature_s_name_is_taken_once_and_unknown_lies_outside_its_range() {
    let extract = || Extract::slot(|seed| seed.gradient.ratio);
    let refused = |feature: ObservationFeature| {
        let mut features = ObservationFeatures::default();
        features.register(custom("ratio", extract(), Treatment::Plain));
        features.register(feature);
        assert_eq!(features.iter().count(), 1);
        features.refused().map(ToString::to_string).unwrap_or_default()
    };
    for taken in ["ratio", "val_loss", "seed_age"] {
        let why = format!("the observation feature name `{taken}` is taken; register yours under another");
        assert_eq!(refused(custom(taken, extract(), Treatment::Plain)), why);
    }
    let mut hidden = custom("hidden", extract(), Treatment::MayBeUnknown);
    hidden.range = -2.0..=2.0;
    let why =
        "the observation feature \"hidden\" cannot be registered: its range must not contain -1, which means unknown";
    assert_eq!(refused(hidden), why);
}

/// A row of a host with two slots. The first is occupied, and the tests look at its alpha.
fn row_with_alpha(alpha: f32) -> Vec<f32> {
    let mut row = vec![0.0; schema(2).len()];
    (row[23], row[23 + 11], row[23 + 27]) = (1.0, alpha, UNKNOWN);
    row
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

/// It has seen alphas of 1 and 3.
fn trained() -> ObservationNormaliser {
    let mut normaliser = ObservationNormaliser::new(&schema(2));
    commit(&mut normaliser, &[row_with_alpha(1.0), row_with_alpha(3.0)]);
    normaliser
}

#[test]
fn committed_statistics_scale_the_features_that_take_part_and_no_others() {
    let fresh = ObservationNormaliser::new(&schema(2));
    let before = normalised(&fresh, &row_with_alpha(3.0));
    assert_eq!(before[34], 3.0, "identity until enough was seen");

    let normaliser = trained();
    let row = normalised(&normaliser, &row_with_alpha(3.0));
    assert_close(&row[34..35], &[0.999950]);
    assert_eq!((row[23], row[23 + 27]), (1.0, UNKNOWN));
    assert_eq!(row[23 + 31..], [0.0; 31], "an empty slot stays empty");
    assert_eq!(normalised(&normaliser, &row_with_alpha(1000.0))[34], 10.0);
}

#[test]
fn a_rollout_without_seeds_leaves_the_slots_statistics_alone() {
    let mut normaliser = trained();
    let of_alpha = normaliser.statistics()[34];
    assert_eq!((of_alpha.mean, of_alpha.var, of_alpha.count), (2.0, 1.0, 32));

    commit(&mut normaliser, &[vec![0.0; 85]]);

    assert_eq!(normaliser.statistics()[34], of_alpha);
    assert_eq!(normaliser.statistics()[0].count, 48);
}

#[test]
fn slots_share_the_statistics_of_a_feature() {
    let mut normaliser = ObservationNormaliser::new(&schema(2));
    let mut second = row_with_alpha(0.0);
    (second[23], second[54], second[54 + 11]) = (0.0, 1.0, 3.0);
    commit(&mut normaliser, &[row_with_alpha(1.0), second]);
    let of_alpha = normaliser.statistics()[34];
    assert_eq!((of_alpha.mean, of_alpha.var), (2.0, 1.0));
}

#[test]
fn numbers_that_are_not_finite_change_no_statistics() {
    let mut normaliser = trained();
    let before = normaliser.clone();
    let error = normaliser.commit([row_with_alpha(f32::NAN).as_slice()].into_iter());
    assert_eq!(error, Err(PolicyError::NonFiniteStatistics));
    assert_eq!(normaliser, before);
}

#[test]
fn reward_parts_follow_the_features_that_each_observation_has() {
    let wide = schema_with(1, &[FeatureGroup::RewardParts], &ObservationFeatures::default());
    let signals = TrainingSignals {
        val_accuracy: 70.0,
        committed_accuracy: 40.0,
        train_accuracy: 80.0,
        host_params: 1000,
        ..TrainingSignals::default()
    };
    let seed = SeedReport {
        contribution: Some(30.0),
        total_improvement: 25.0,
        seed_params: 500,
        gate_readiness: Some(0.5),
        account: 1.25,
        ..report(0, SeedStage::Holding)
    };
    let reports = [Some(seed)];
    let [narrow, wide_row] = [&schema(1), &wide].map(|schema| observe(schema, &signals, &reports).unwrap().raw);

    assert_eq!(narrow, [&wide_row[..23], &wide_row[27..58]].concat());
    assert_close(&wide_row[23..27], &[0.4, 0.3, 0.8, 0.5_f32.ln_1p()]);
    let of_slot = [31_f32.ln() / 101_f32.ln(), 0.25, 501_f32.ln() / 14.0, 0.5, 1.25];
    assert_close(&wide_row[58..], &of_slot);
    assert_ne!(schema(1).hash(), wide.hash());
}
