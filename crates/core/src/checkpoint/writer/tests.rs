use super::*;

#[test]
fn a_checkpoint_that_falls_due_inside_a_rollout_is_written_at_its_end() {
    let written = |rollout: u32, every: u32| -> Vec<u32> {
        let boundaries = (0..=12).filter(|round: &u32| round.is_multiple_of(rollout));
        boundaries.filter(|&round| is_due(round, rollout, every)).collect()
    };

    assert_eq!(written(1, 1), (0..=12).collect::<Vec<_>>());
    assert_eq!(written(1, 5), [0, 5, 10]);
    assert_eq!(written(2, 1), [0, 2, 4, 6, 8, 10, 12]);
    assert_eq!(written(2, 3), [0, 4, 6, 10, 12]);
    assert_eq!(written(4, 10), [0, 12]);
}
