use super::*;
use crate::telemetry::{Num, examples};

fn episode(round: u32, env: u32, accuracy: f64) -> Event {
    let recorded = EpisodeFinished {
        final_accuracy: Num(accuracy),
        length: 4,
        end: EndReason::Horizon,
        ..examples::episode_finished()
    };
    Event::env(examples::context_at(env, round, 4), recorded)
}

fn ended(round: u32) -> Event {
    Event::round(round, examples::round_finished())
}

fn recorded(events: impl IntoIterator<Item = Event>) -> TrainingRecord {
    let (mut record, mut in_round) = (TrainingRecord::default(), Vec::new());
    for event in events {
        record.apply(&event, &mut in_round);
    }
    record
}

#[test]
fn a_training_is_scored_by_the_episodes_of_its_last_ten_rounds() {
    let record = recorded((0..12).flat_map(|round| {
        let accuracy = f64::from(round);
        [
            episode(round, 0, accuracy),
            episode(round, 1, accuracy + 1.0),
            ended(round),
        ]
    }));

    assert_eq!(record.episodes.len(), 20);
    // Rounds 2 to 11, and half a point for the second env.
    assert_eq!(record.score(Metric::Accuracy), Some(7.0));
    assert_eq!(record.score(Metric::Accuracy), Some(7.0));
    assert_eq!(record.curve.len(), 12);
    assert_eq!(record.env_steps(), 12 * 8);
    assert!(record.curve.windows(2).all(|pair| pair[0].seconds < pair[1].seconds));
}

#[test]
fn a_failed_env_and_an_unfinished_round_have_no_score() {
    let mut failed = episode(0, 1, 99.0);
    if let Payload::EpisodeFinished(recorded) = &mut failed.payload {
        recorded.end = EndReason::Failed;
    }
    let record = recorded([episode(0, 0, 50.0), failed, ended(0), episode(1, 0, 99.0)]);

    assert_eq!(record.score(Metric::Accuracy), Some(50.0));
}

#[test]
fn scores_keep_the_evaluation_seeds_apart() {
    let mut record = recorded([episode(0, 0, 1.0), ended(0)]);
    let outcome = record.episodes[0].clone();
    let under = |seed, accuracy| EpisodeOutcome {
        seed: BigInteger(seed),
        accuracy: Some(accuracy),
        loss: None,
        test_loss: None,
        ..outcome.clone()
    };

    record.episodes = vec![under(8, 10.0), under(9, 30.0), under(8, 20.0)];

    assert_eq!(record.scores(Metric::Accuracy), [vec![10.0, 20.0], vec![30.0]]);
    assert_eq!(record.score(Metric::Accuracy), Some(20.0));
}

#[test]
fn losses_are_scores_of_which_less_is_better() {
    let with_losses = |env, loss, test_loss: f64| {
        let mut event = episode(0, env, 50.0);
        if let Payload::EpisodeFinished(recorded) = &mut event.payload {
            (recorded.final_loss, recorded.test_loss) = (Num(loss), Some(Num(test_loss)));
        }
        event
    };
    let record = recorded([
        with_losses(0, 2.0, 2.25),
        with_losses(1, 1.5, 1.75),
        with_losses(2, f64::NAN, 2.0),
        ended(0),
    ]);

    assert_eq!(record.score(Metric::Loss), Some(1.75));
    assert_eq!(record.score(Metric::TestLoss), Some(2.0));
    assert!(!Metric::Loss.is_gain() && !Metric::TestLoss.is_gain());
    assert!(Metric::Loss.usual_effect() < Metric::Accuracy.usual_effect());
}

#[test]
fn metrics_are_called_alike_everywhere() {
    use clap::ValueEnum;

    for metric in Metric::value_variants() {
        assert_eq!(metric.to_possible_value().unwrap().get_name(), metric.name());
        assert_eq!(serde_json::to_value(metric).unwrap(), metric.name());
    }
}

/// 0.3 and 0.02 billion an episode.
#[test]
fn what_a_training_computed_is_added_up_round_by_round() {
    let record = recorded([
        episode(0, 0, 1.0),
        episode(0, 1, 1.0),
        ended(0),
        episode(1, 0, 1.0),
        ended(1),
    ]);

    let gmacs: Vec<f64> = record.curve.iter().filter_map(|point| point.gmacs).collect();
    assert!((gmacs[0] - 0.64).abs() < 1e-12, "{gmacs:?}");
    assert!((gmacs[1] - 0.96).abs() < 1e-12, "{gmacs:?}");
    assert_eq!(record.score(Metric::Gmacs), Some(0.32));
}
