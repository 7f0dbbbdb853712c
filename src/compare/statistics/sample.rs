//! The scores of one arm: trainings, their evaluation seeds, and episodes. In flat lists they are drawn from.

use std::ops::Range;

use serde::Serialize;

use super::summary::mean_of;
use crate::random::Draw;

/// With fewer an interval would pretend to know more than it does.
const FEWEST: usize = 5;

/// Where a statistic lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What one trained policy did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Training {
    /// Values of the episodes of each evaluation seed. Seeds may differ in their number of episodes; one without any is
    /// as if it were not there.
    pub by_seed: Vec<Vec<f64>>,
}

impl Training {
    /// A training of which a single number is known.
    pub fn single(value: f64) -> Self {
        Self {
            by_seed: vec![vec![value]],
        }
    }

    /// Mean over all episodes of all seeds; NaN without any.
    pub fn score(&self) -> f64 {
        mean_of(self.by_seed.iter().flatten().copied()).unwrap_or(f64::NAN)
    }
}

/// The trainings of one arm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Trainings of each task.
    pub tasks: Vec<Vec<Training>>,
    /// All trainings of a task were evaluated on the same hosts, in the same order. Where their shapes deny it, it is not heeded.
    pub shares_hosts: bool,
}

impl Sample {
    /// Trainings of which a single number is known, by task.
    pub fn of_numbers(tasks: &[Vec<f64>]) -> Self {
        let trainings = |values: &Vec<f64>| values.iter().copied().map(Training::single).collect();
        Self {
            tasks: tasks.iter().map(trainings).collect(),
            shares_hosts: false,
        }
    }

    /// Scores of all trainings, task by task. Statistics are of all of them alike, as rliable pools runs and tasks.
    pub fn scores(&self) -> Vec<f64> {
        self.tasks.iter().flatten().map(Training::score).collect()
    }

    /// Trainings in all.
    pub fn trainings(&self) -> usize {
        self.tasks.iter().map(Vec::len).sum()
    }
}

/// Lists of places that are drawn from, each for itself.
pub(super) struct Strata(pub(super) Vec<Range<usize>>);

impl Strata {
    /// Of lists that lie one after another.
    pub(super) fn of_sizes(sizes: impl Iterator<Item = usize>) -> Self {
        let mut end = 0;
        let ranges = sizes.map(|size| {
            let start = end;
            end += size;
            start..end
        });
        Self(ranges.collect())
    }

    /// Places in all.
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(ExactSizeIterator::len).sum()
    }

    /// Of each list as many places as it has.
    pub(super) fn draw(&self, source: &mut impl Draw, drawn: &mut Vec<usize>) {
        drawn.clear();
        for stratum in &self.0 {
            drawn.extend(stratum.clone().map(|_| stratum.start + pick(source, stratum.len())));
        }
    }
}

/// A place in a list of `count`.
fn pick(source: &mut impl Draw, count: usize) -> usize {
    if count == 1 {
        0
    } else {
        source.below(count as u64) as usize
    }
}

/// What a resample has drawn; kept from one to the next so that drawing allocates nothing.
#[derive(Default)]
pub(super) struct Drawn {
    /// Places of trainings, task by task.
    trainings: Vec<usize>,
    /// Places of episodes, counted from the first one of a training.
    hosts: Vec<usize>,
}

/// A sample in three flat lists, so that drawing from it allocates nothing.
pub(super) struct Layout {
    /// Places of the trainings of each task.
    pub(super) strata: Strata,
    /// Places of the seeds of each training.
    trainings: Vec<Range<usize>>,
    /// Places of the episodes of each seed.
    seeds: Vec<Range<usize>>,
    episodes: Vec<f64>,
    /// The trainings of a task share their hosts.
    pub(super) is_crossed: bool,
}

impl Layout {
    /// `None` if a training has no episode, or a value is not finite.
    pub(super) fn of(sample: &Sample) -> Option<Self> {
        let trainings = || sample.tasks.iter().flatten();
        let seeds = |training: &Training| training.by_seed.iter().filter(|episodes| !episodes.is_empty()).count();
        let is_sound = |training: &Training| seeds(training) > 0 && training.score().is_finite();
        let sizes = trainings().flat_map(|training| &training.by_seed).map(Vec::len);
        let mut layout = trainings().all(is_sound).then(|| Self {
            strata: Strata::of_sizes(sample.tasks.iter().map(Vec::len)),
            trainings: Strata::of_sizes(trainings().map(seeds)).0,
            seeds: Strata::of_sizes(sizes.filter(|&size| size > 0)).0,
            episodes: trainings().flat_map(|training| training.by_seed.concat()).collect(),
            is_crossed: false,
        })?;
        let has_one_shape = |task: &Range<usize>| task.clone().all(|t| layout.sizes(t).eq(layout.sizes(task.start)));
        layout.is_crossed = sample.shares_hosts && layout.strata.0.iter().all(has_one_shape);
        Some(layout)
    }

    pub(super) fn has_enough(&self) -> bool {
        self.strata.count() >= FEWEST
    }

    /// Episodes of each seed of a training.
    pub(super) fn sizes(&self, training: usize) -> impl Iterator<Item = usize> {
        self.seeds[self.trainings[training].clone()]
            .iter()
            .map(ExactSizeIterator::len)
    }

    /// Values of a training's episodes, seed by seed.
    pub(super) fn episodes(&self, training: usize) -> &[f64] {
        let seeds = &self.seeds[self.trainings[training].clone()];
        &self.episodes[seeds[0].start..seeds[seeds.len() - 1].end]
    }

    /// Scores of one resample, task by task.
    pub(super) fn draw_scores(&self, source: &mut impl Draw, drawn: &mut Drawn, scores: &mut Vec<f64>) {
        scores.clear();
        self.draw(self.is_crossed, source, drawn, |training, hosts, _| {
            scores.push(self.score_on(training, hosts));
        });
    }

    /// Draws trainings, and hosts for each of them, or for all of a task at once.
    pub(super) fn draw<D: Draw>(
        &self,
        is_crossed: bool,
        source: &mut D,
        drawn: &mut Drawn,
        mut take: impl FnMut(usize, &mut Vec<usize>, &mut D),
    ) {
        self.strata.draw(source, &mut drawn.trainings);
        for task in &self.strata.0 {
            for place in task.clone() {
                let training = drawn.trainings[place];
                if place == task.start || !is_crossed {
                    self.draw_hosts(training, source, &mut drawn.hosts);
                }
                take(training, &mut drawn.hosts, source);
            }
        }
    }

    /// As many seeds as a training has, and as many episodes of each drawn one as that has.
    pub(super) fn draw_hosts(&self, training: usize, source: &mut impl Draw, hosts: &mut Vec<usize>) {
        let seeds = &self.seeds[self.trainings[training].clone()];
        hosts.clear();
        for _ in seeds {
            let seed = seeds[pick(source, seeds.len())].clone();
            let first = seed.start - seeds[0].start;
            hosts.extend(seed.clone().map(|_| first + pick(source, seed.len())));
        }
    }

    /// The score of a training on drawn hosts.
    pub(super) fn score_on(&self, training: usize, hosts: &[usize]) -> f64 {
        let episodes = self.episodes(training);
        hosts.iter().map(|&host| episodes[host]).sum::<f64>() / hosts.len() as f64
    }

    /// Which trainings of two arms have equally many seeds with equally many episodes.
    pub(super) fn alike(&self, other: &Self) -> Vec<bool> {
        let is_alike = |training: usize| self.sizes(training).eq(other.sizes(training));
        let pairs = 0..self.trainings.len().min(other.trainings.len());
        pairs.map(is_alike).collect()
    }
}
