use super::*;

fn after(warmup_rollouts: u32, freeze_after_updates: Option<u64>) -> LearnerConfig {
    LearnerConfig {
        episodes_per_update: 2,
        obs_norm: ObservationNorm {
            warmup_rollouts,
            freeze_after_updates,
            ..ObservationNorm::default()
        },
        ..LearnerConfig::default()
    }
}

#[test]
fn the_first_rollouts_warm_up_and_are_no_updates() {
    let learner = after(2, None);

    let warm: Vec<u32> = (0..8).filter(|&round| learner.is_warm_up(round)).collect();

    assert_eq!(warm, [0, 1, 2, 3]);
    assert_eq!(learner.planned_updates(8), 2);
    assert_eq!(after(0, None).planned_updates(8), 4);
    assert!(!after(0, None).is_warm_up(0));
}

#[test]
fn statistics_stop_after_so_many_updates_or_never() {
    let moving = |freeze: Option<u64>| {
        (0..4)
            .filter(|&updates| after(0, freeze).obs_norm.learns_after(updates))
            .count()
    };
    assert_eq!([moving(None), moving(Some(0)), moving(Some(2))], [4, 0, 2]);
}
