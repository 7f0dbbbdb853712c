use super::*;

#[test]
fn compute_that_no_episode_comes_to_is_the_most_that_can_be_told() {
    let read = EpisodeCompute {
        train_macs: u64::MAX,
        val_macs: 1,
    };

    assert_eq!(read.macs(), u64::MAX);
}
