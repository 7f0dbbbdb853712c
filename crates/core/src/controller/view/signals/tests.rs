use super::*;

type Updated = Result<TrainingSignals, AccuracyOutOfRange>;

fn update(tracker: &mut SignalTracker, step: u32, loss: f64, accuracy_percent: f64) -> Updated {
    let val = ValMetrics { loss, accuracy_percent };
    tracker.update(step, &TrainMetrics::default(), &val)
}

/// The signals of each step, with the stable steps in a row.
fn run(losses: &[f64], accuracies: &[f64]) -> Vec<(TrainingSignals, u32)> {
    let mut tracker = SignalTracker::default();
    let steps = (1..).zip(losses.iter().zip(accuracies));
    let signals = steps.map(|(step, (&loss, &accuracy))| {
        let signals = update(&mut tracker, step, loss, accuracy).unwrap();
        (signals, tracker.stable_count)
    });
    signals.collect()
}

/// Steps in a row: stable ones, and those of a plateau.
#[track_caller]
fn assert_counts(signals: &[(TrainingSignals, u32)], stable: &[u32], plateau: &[u32]) {
    let (plateaus, stables): (Vec<u32>, Vec<u32>) =
        signals.iter().map(|(s, stable)| (s.plateau_steps, *stable)).unzip();
    assert_eq!((&stables[..], &plateaus[..]), (stable, plateau));
}

#[test]
fn three_stable_steps_latch_and_a_later_jump_does_not_unlatch() {
    let accuracies = [30.0, 40.0, 40.4, 41.0, 41.2, 41.3];
    let signals = run(&[2.3, 1.8, 1.77, 1.75, 1.74, 1.5], &accuracies);
    assert_counts(&signals, &[0, 0, 1, 2, 3, 3], &[0, 0, 1, 0, 1, 2]);
    let (no, at_first, later) = ((false, false), (true, true), (true, false));
    let stabilised = signals.iter().map(|(s, _)| (s.host_stabilized, s.just_stabilized));
    assert_eq!(stabilised.collect::<Vec<_>>(), [no, no, no, no, at_first, later]);
}

#[test]
fn regressions_and_recoveries_restart_the_count() {
    let signals = run(&[2.0, 2.0, 2.11, 2.0, 2.0, 2.0], &[30.0, 30.0, 30.0, 30.5, 30.6, 30.7]);
    assert_counts(&signals, &[0, 1, 0, 0, 1, 2], &[0, 1, 2, 0, 1, 2]);
    assert!(!signals.iter().any(|(signals, _)| signals.host_stabilized));
}

#[test]
fn a_loss_that_is_not_finite_is_replaced_and_not_stable() {
    let signals = run(&[2.0, 2.0, f64::NAN], &[30.0, 30.0, 30.0]);
    let (last, stable) = &signals[2];
    assert_eq!((last.val_loss, *stable), (1.0e6, 0));
}

#[test]
fn histories_show_five_steps() {
    let losses: Vec<f64> = (0..12).map(|i| 1.0 + f64::from(i)).collect();
    let accuracies: Vec<f64> = (0..12).map(|i| 50.0 - f64::from(i)).collect();
    let signals = run(&losses, &accuracies);
    let (last, _) = &signals[11];
    assert_eq!(last.loss_history.as_slice(), [8.0, 9.0, 10.0, 11.0, 12.0]);
    assert_eq!(last.accuracy_history.as_slice(), [43.0, 42.0, 41.0, 40.0, 39.0]);
}

#[test]
fn an_accuracy_beyond_percent_is_an_error() {
    let mut tracker = SignalTracker::default();
    let before = tracker.clone();
    assert!(update(&mut tracker, 1, 1.0, 100.1).is_err());
    assert_eq!(tracker, before);
}
