//! A handful of worlds drawn from numbers: see `examples/world`.

#[path = "../examples/world/worlds/mod.rs"]
mod worlds;

use worlds::{Sights, World};

/// Enough of them for everything that worlds are about to come by.
#[test]
fn drawn_worlds_come_to_the_same_end_however_they_are_interrupted() {
    let mut seen = Sights::default();
    let mut faults = 0;
    for seed in 0..26 {
        let story = World::of(seed).play().unwrap_or_else(|failure| panic!("{failure}"));
        println!("{story}");
        seen += story.seen;
        faults += story.faults;
    }
    assert!(seen.missing().is_empty(), "{seen}");
    assert!(faults >= 10 && seen.episodes() >= 40, "{faults} faults; {seen}");
}

#[test]
fn worlds_that_have_failed_once_come_to_the_same_end() {
    let once = [
        (
            500_037,
            "what a failing step had told was lost where no checkpoint followed",
        ),
        (
            500_195,
            "steps of an earlier rollout were kept with those of the present one",
        ),
        (
            500_490,
            "a round that had restarted with more parts ran out of memory again once resumed",
        ),
        (
            501_485,
            "a checkpoint tells for what it was written, which is another thing where a run was stopped",
        ),
        (501_693, "the storage of an earlier snapshot was kept as if it were one"),
        (
            601_332,
            "that an error had kept the best checkpoint from the disk, so that another is, was taken for a difference",
        ),
    ];
    for (seed, what) in once {
        let story = World::of(seed)
            .play()
            .unwrap_or_else(|failure| panic!("{what}: {failure}"));
        println!("{story}");
    }
}
