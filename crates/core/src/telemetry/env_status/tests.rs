use super::*;

fn statuses(accuracies: &[f64]) -> Vec<EnvStatus> {
    let mut tracker = EnvStatusTracker::default();
    accuracies
        .iter()
        .map(|&accuracy| tracker.update(accuracy, Some(80.0)))
        .collect()
}

#[test]
fn an_env_initializes_until_it_improves_and_excels_at_the_success_accuracy() {
    use EnvStatus::*;

    assert_eq!(
        statuses(&[40.0, 39.5, 41.0, 41.0, 80.0]),
        [Initializing, Initializing, Healthy, Healthy, Excellent]
    );
}

#[test]
fn three_falls_degrade_where_equality_persists_and_improvement_resets() {
    use EnvStatus::*;

    assert_eq!(
        statuses(&[10.0, 50.0, 48.0, 46.0, 46.0, 44.0, 45.0])[2..],
        [Healthy, Healthy, Healthy, Degraded, Healthy]
    );
}

#[test]
fn a_rollback_is_shown_in_its_step_and_for_five_steps_after_it() {
    let mut tracker = EnvStatusTracker::default();
    tracker.note_rollback();

    let statuses: Vec<_> = (0..8).map(|_| tracker.update(40.0, None)).collect();

    assert_eq!(statuses[..6], [EnvStatus::RolledBack; 6]);
    assert_eq!(statuses[6..], [EnvStatus::Initializing; 2]);
}

#[test]
fn more_than_ten_steps_without_a_best_stall_after_three_of_them() {
    let mut accuracies = vec![10.0, 50.0];
    accuracies.extend([50.0; 13]);

    let statuses = statuses(&accuracies);

    assert_eq!(statuses[13], EnvStatus::Healthy);
    assert_eq!(statuses[14], EnvStatus::Stalled);
}
