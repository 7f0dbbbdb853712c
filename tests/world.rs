//! A handful of worlds drawn from numbers: see `examples/world`.

#[path = "../examples/world/worlds/mod.rs"]
mod worlds;

use worlds::World;

fn assert_sound(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let story = World::of(seed).play().unwrap_or_else(|failure| panic!("{failure}"));
        assert!(story.episodes > 0 || story.has_failed, "{story}");
    }
}

#[test]
fn drawn_worlds_come_to_the_same_end_however_they_are_interrupted() {
    assert_sound(0..8);
}
