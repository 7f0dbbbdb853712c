//! The host side of a step's feed: the order of samples and their crops. Streams are named by their purpose, so the plan of
//! an env does not depend on other envs, nor on whether the run was resumed.

use std::ops::Range;

use crate::random::{Domain, Draw, RunRng};
use crate::scenario::AugmentSpec;

use super::geometry::{Crop, Geometry};
use super::{FeedArithmetic, Sharing, cutout};

/// The coordinates of a step, which determine its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepKey {
    /// The run's seed.
    pub seed: u64,
    /// 0-based.
    pub round: u64,
    /// 1-based.
    pub step: u64,
}

/// A batch among those of all steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    key: StepKey,
    batch: usize,
}

/// The host side: the order of samples in the step, and their crops.
#[derive(Debug)]
pub(super) struct FeedPlan {
    pub(super) arithmetic: FeedArithmetic,
    /// The crops of images. `None` for texts, which aren't cropped.
    crops: Option<(Option<AugmentSpec>, Geometry)>,
    pub(super) env: u64,
    permutation: Vec<u32>,
    /// The step that was begun last.
    current: Drawn,
    /// The step that follows it, if one does, and what was last drawn ahead of its time.
    upcoming: Option<StepKey>,
    ahead: Drawn,
}

/// Draws of all positions of a step: windows, samples, and squares if there are any; for texts, only samples.
#[derive(Debug, Default)]
struct Drawn {
    /// Determines the positions: two draws for one key are equal.
    key: Option<StepKey>,
    positions: Vec<i64>,
}

impl FeedPlan {
    /// The plan of images, and how they are cropped.
    pub(super) fn of_crops(
        augment: Option<AugmentSpec>,
        geometry: Geometry,
        arithmetic: FeedArithmetic,
        env: u64,
    ) -> Self {
        Self {
            crops: Some((augment, geometry)),
            ..Self::of_order(arithmetic, env)
        }
    }

    /// The plan of samples that are taken unchanged.
    pub(super) fn of_order(arithmetic: FeedArithmetic, env: u64) -> Self {
        Self {
            crops: None,
            env,
            permutation: Vec::with_capacity(arithmetic.n_train),
            current: Drawn::default(),
            upcoming: None,
            ahead: Drawn::default(),
            arithmetic,
        }
    }

    /// Draws all positions of a step into a kept buffer, unless that was done ahead; `upcoming` follows it.
    pub(super) fn draw(&mut self, key: StepKey, upcoming: Option<StepKey>) -> &[i64] {
        if self.ahead.key == Some(key) {
            std::mem::swap(&mut self.current, &mut self.ahead);
        }
        if self.current.key != Some(key) {
            let kept = std::mem::take(&mut self.current.positions);
            self.current = self.drawn(key, kept);
        }
        self.upcoming = upcoming;
        &self.current.positions
    }

    /// Positions of batch `batch` of the step that was drawn last: windows of images, or samples that are taken unchanged.
    /// After its last batch come those of the upcoming step, which is drawn when it is first asked for, and
    /// then nothing.
    pub(super) fn batch(&mut self, batch: usize) -> Option<(Due, &[i64])> {
        let FeedArithmetic {
            batches,
            batch_size: rows,
            ..
        } = self.arithmetic;
        let (drawn, batch) = match batch.checked_sub(batches) {
            None => (&self.current, batch),
            Some(later) if later < batches => (self.draw_ahead()?, later),
            Some(_) => return None,
        };
        let due = Due { key: drawn.key?, batch };
        Some((due, drawn.positions.get(batch * rows..(batch + 1) * rows)?))
    }

    /// The upcoming step.
    fn draw_ahead(&mut self) -> Option<&Drawn> {
        let key = self.upcoming?;
        if self.ahead.key != Some(key) {
            let kept = std::mem::take(&mut self.ahead.positions);
            self.ahead = self.drawn(key, kept);
        }
        Some(&self.ahead)
    }

    /// Numbers drawn for each sample: itself; for images also the window, and with cutout the square.
    pub(super) fn draws(&self) -> usize {
        1 + usize::from(self.crops.is_some()) + usize::from(self.cuts_out())
    }

    fn cuts_out(&self) -> bool {
        let augment = self.crops.and_then(|(augment, _)| augment);
        augment.is_some_and(|augment| augment.cutout.is_some())
    }

    /// Draws a step into `positions`.
    fn drawn(&mut self, key: StepKey, mut positions: Vec<i64>) -> Drawn {
        let total = self.arithmetic.train_samples();
        positions.clear();
        positions.resize(self.draws() * total, 0);
        let (windows, others) = positions.split_at_mut(self.crops.map_or(0, |_| total));
        let (samples, squares) = others.split_at_mut(total);
        self.draw_order(key, samples);
        self.draw_augmentation(key, samples, windows, squares);
        Drawn {
            key: Some(key),
            positions,
        }
    }

    /// One permutation a pass (domain 2). The incomplete tail of a pass is dropped.
    fn draw_order(&mut self, key: StepKey, samples: &mut [i64]) {
        let pass_samples = self.arithmetic.batches_per_pass * self.arithmetic.batch_size;
        for (pass, part) in samples.chunks_mut(pass_samples).enumerate() {
            let mut indices = self.step_indices(key);
            if pass > 0 {
                indices.push(pass as u64);
            }
            self.permutation.clear();
            self.permutation.extend(0..self.arithmetic.n_train as u32);
            RunRng::new(key.seed, Domain::DataOrder, &indices).shuffle(&mut self.permutation);
            let own = self.own_part(part.len());
            for (sample, &index) in part.iter_mut().zip(&self.permutation[own]) {
                *sample = i64::from(index);
            }
        }
    }

    /// One stream a batch (domain 3).
    fn draw_augmentation(&self, key: StepKey, samples: &[i64], windows: &mut [i64], squares: &mut [i64]) {
        let batch_size = self.arithmetic.batch_size;
        let batches = samples
            .chunks_exact(batch_size)
            .zip(windows.chunks_exact_mut(batch_size));
        let mut squares = squares.chunks_exact_mut(batch_size);
        for (batch, (samples, windows)) in batches.enumerate() {
            let indices = [key.round, self.env, key.step, batch as u64];
            let mut rng = RunRng::new(key.seed, Domain::Augmentation, &indices);
            self.augment(&mut rng, samples, windows, squares.next().unwrap_or_default());
        }
    }

    /// The augmentation of a batch. Squares are drawn after all crops: those are the same with and without.
    fn augment(&self, rng: &mut impl Draw, samples: &[i64], windows: &mut [i64], squares: &mut [i64]) {
        let Some((augment, geometry)) = self.crops else { return };
        for (&sample, window) in samples.iter().zip(windows) {
            let crop = augment.map_or(Crop::default(), |augment| draw_crop(rng, augment));
            *window = geometry.window(sample as usize, crop);
        }
        for square in squares {
            *square = cutout::draw(rng, geometry.shape);
        }
    }

    /// Indices that name the order's stream: envs that share an order leave themselves out of it.
    fn step_indices(&self, key: StepKey) -> Vec<u64> {
        match self.arithmetic.sharing {
            Sharing::PerEnv => vec![key.round, self.env, key.step],
            Sharing::Shard => vec![key.round, key.step],
        }
    }

    fn own_part(&self, len: usize) -> Range<usize> {
        let first = match self.arithmetic.sharing {
            Sharing::PerEnv => 0,
            Sharing::Shard => self.env as usize * self.arithmetic.train_samples(),
        };
        first..first + len
    }
}

/// All three are always drawn, so that the stream's layout does not depend on settings.
pub(super) fn draw_crop(rng: &mut impl Draw, augment: AugmentSpec) -> Crop {
    let offsets = 2 * u64::from(augment.pad) + 1;
    let top = rng.below(offsets) as usize;
    let left = rng.below(offsets) as usize;
    Crop {
        top,
        left,
        is_flipped: rng.uniform_f64() < augment.flip_p,
    }
}

#[cfg(test)]
mod tests;
