//! Draws of a world: each in turn, from the world's number alone.

use std::ops::RangeInclusive;

use simic_engine::internals::random::{ContentRng, Draw, mix};

pub struct Dice(ContentRng);

impl Dice {
    /// Of the part `part` of world `seed`: what one part draws moves no other.
    pub fn of(seed: u64, part: u64) -> Self {
        Self(ContentRng::from_seed(mix(mix(seed) ^ part)))
    }

    pub fn number(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.0.below(range.end() - range.start() + 1)
    }

    pub fn index(&mut self, length: usize) -> usize {
        self.0.below(length as u64) as usize
    }

    pub fn one_in(&mut self, chances: u64) -> bool {
        self.0.below(chances) == 0
    }

    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.index(items.len())]
    }

    /// At least one of them, in their order.
    pub fn some_of<T: Copy>(&mut self, items: &[T]) -> Vec<T> {
        let certain = self.index(items.len());
        let places = items.iter().enumerate();
        places
            .filter_map(|(place, &item)| (place == certain || self.one_in(2)).then_some(item))
            .collect()
    }
}
