//! A handful of worlds drawn from numbers: see `examples/world`.

#[path = "../examples/world/worlds/mod.rs"]
mod worlds;

use worlds::{Sights, World};

/// Enough of them for everything that worlds are about to come by.
#[test]
fn drawn_worlds_come_to_the_same_end_however_they_are_interrupted() {
    let mut seen = Sights::default();
    let mut faults = 0;
    for seed in 0..10 {
        let story = World::of(seed).play().unwrap_or_else(|failure| panic!("{failure}"));
        println!("{story}");
        seen += story.seen;
        faults += story.faults;
    }
    assert!(seen.missing().is_empty(), "{seen}");
    assert!(faults >= 10 && seen.episodes() >= 40, "{faults} faults; {seen}");
}
