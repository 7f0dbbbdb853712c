use super::*;

#[test]
fn compute_that_no_episode_comes_to_is_the_most_that_can_be_told() {
    let (train_macs, val_macs) = (u64::MAX, 1);
    let read = EpisodeCompute { train_macs, val_macs };

    assert_eq!(read.macs(), u64::MAX);
}
