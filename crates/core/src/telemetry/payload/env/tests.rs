use super::*;

#[test]
fn compute_beyond_any_episode_saturates() {
    let (train_macs, val_macs) = (u64::MAX, 1);
    let read = EpisodeCompute { train_macs, val_macs };

    assert_eq!(read.macs(), u64::MAX);
}
