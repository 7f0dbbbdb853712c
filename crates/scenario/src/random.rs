//! Randomness: every draw of the engine comes from `derive(seed, domain, indices)`.
//!
//! A stream is named by what it is for, never by who draws first, so nothing here depends on the order of work: envs
//! may run on any thread, in any number. Two generators implement one trait: [`RunRng`] for everything that a run
//! draws, [`ContentRng`] for what defines a data set and must therefore not depend on any crate. The drawing helpers
//! are ours, because the `rand` crate's are not stable across versions.

use std::f64::consts::TAU;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Purpose of a stream of random numbers. Numbers are fixed for ever; 18 is not used again.
///
/// The comment of each variant lists its indices: `r` round, `e` env, `t` step, `b` batch, `n` germination count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Domain {
    /// `r, e`
    HostInit = 1,
    /// `r, e, t`; a further pass over the data adds `p`; shards use `r, t`
    DataOrder = 2,
    /// `r, e, t, b`
    Augmentation = 3,
    /// `0, r, t, e`
    DecisionSampling = 4,
    /// `r, e, n`; a gate that is added later has the further index `1`
    SeedInit = 5,
    /// `0, r`
    LearnerShuffle = 6,
    /// `r, e, t`
    AttributionPermutations = 8,
    /// `0` bootstrap, `1` sign flips
    StatisticsResampling = 9,
    /// `0`
    PolicyInit = 10,
    /// `0, r, t, e`
    RandomController = 11,
    /// `class`; seeded by the data set
    StratifiedSplit = 13,
    /// `split, index`; seeded by the data set
    ProceduralImage = 14,
    /// `split, index`; seeded by the data set
    ProceduralDocument = 15,
    /// `z·vocab + previous, rank`; seeded by the data set
    ProceduralSuccessor = 16,
    /// `r, e`
    FaultInjection = 17,
    /// `0, pass`
    ReplaySampling = 19,
    /// `update`
    TelemetryProbe = 20,
    /// `axis, point`; seeded by the sweep
    SweepPoint = 21,
    /// `schedule`
    ScheduleSearch = 22,
}

/// SplitMix64's increment: the golden ratio in 64 bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's step and finaliser (Steele, Lea and Flood 2014, DOI 10.1145/2660193.2660195).
pub const fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The seed of one stream: `seed` and `domain` name the family, `indices` the member.
pub fn derive(seed: u64, domain: Domain, indices: &[u64]) -> u64 {
    let family = mix(mix(seed) ^ domain as u64);
    indices.iter().fold(family, |state, &index| mix(state ^ index))
}

/// Uniform 64-bit words and everything that the engine draws from them.
pub trait Draw {
    /// The next 64 uniform bits.
    fn next_u64(&mut self) -> u64;

    /// A uniform integer in `0..n`, without bias (Lemire's multiplication with rejection).
    ///
    /// # Panics
    /// If `n` is 0.
    fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no integer lies below 0");
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            // 2^64 mod n: the part of the word's range that would favour small results.
            let threshold = n.wrapping_neg() % n;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A uniform multiple of 2⁻⁵³ in `[0, 1)`.
    fn uniform_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Fisher–Yates from the last element down.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// Fills `values` with U(−bound, bound), one word a value: `(2u − 1)·bound` in f64, rounded to f32.
    fn fill_uniform(&mut self, values: &mut [f32], bound: f64) {
        for value in values {
            *value = ((2.0 * self.uniform_f64() - 1.0) * bound) as f32;
        }
    }

    /// Fills `values` with N(0, deviation²) by Box–Muller, two words a pair of values.
    ///
    /// With `u₁ = 1 − uniform` (so that the logarithm is finite) and `u₂ = uniform`, the pair is
    /// `deviation·√(−2 ln u₁)·(cos 2πu₂, sin 2πu₂)`, in f64, rounded to f32. Of an odd count's last pair the sine is
    /// dropped.
    fn fill_normal(&mut self, values: &mut [f32], deviation: f64) {
        for pair in values.chunks_mut(2) {
            let radius = deviation * (-2.0 * (1.0 - self.uniform_f64()).ln()).sqrt();
            let (sine, cosine) = (TAU * self.uniform_f64()).sin_cos();
            for (value, direction) in pair.iter_mut().zip([cosine, sine]) {
                *value = (radius * direction) as f32;
            }
        }
    }
}

/// The generator of run streams: ChaCha8.
#[derive(Clone, Debug)]
pub struct RunRng(ChaCha8Rng);

impl RunRng {
    /// The stream of `domain` at `indices` under the run's seed.
    pub fn new(seed: u64, domain: Domain, indices: &[u64]) -> Self {
        Self::from_seed(derive(seed, domain, indices))
    }

    /// A stream from an already derived seed.
    pub fn from_seed(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }
}

impl Draw for RunRng {
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// The generator of data-set content: SplitMix64, defined only by the integers above.
#[derive(Clone, Debug)]
pub struct ContentRng(u64);

impl ContentRng {
    /// The stream of `domain` at `indices` under the data set's own seed.
    pub fn new(seed: u64, domain: Domain, indices: &[u64]) -> Self {
        Self::from_seed(derive(seed, domain, indices))
    }

    /// A stream from an already derived seed.
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }
}

impl Draw for ContentRng {
    fn next_u64(&mut self) -> u64 {
        let word = mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        word
    }
}

#[cfg(test)]
mod tests;
