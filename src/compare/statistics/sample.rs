//! The scores of one arm (trainings, their evaluation seeds, and episodes), and the draws of resamples from them.

use std::ops::Range;

use serde::Serialize;

use super::summary::mean_of;
use crate::random::Draw;

/// The smallest number of units. With fewer an interval would claim too much.
const FEWEST: usize = 5;

/// The range of a statistic with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Scores of one trained policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Training {
    /// Values of the episodes of each evaluation seed. Seeds may differ in their number of episodes. A seed without any
    /// has no effect.
    pub by_seed: Vec<Vec<f64>>,
}

impl Training {
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
    /// `true` if all trainings of a task were evaluated on the same hosts, in the same order. No effect if their shapes differ.
    pub shares_hosts: bool,
}

impl Sample {
    /// A sample of trainings with a single known number each, by task.
    pub fn of_numbers(tasks: &[Vec<f64>]) -> Self {
        let training = |&value: &f64| Training {
            by_seed: vec![vec![value]],
        };
        let trainings = |values: &Vec<f64>| values.iter().map(training).collect();
        Self {
            tasks: tasks.iter().map(trainings).collect(),
            shares_hosts: false,
        }
    }

    /// Scores of all trainings, task by task. Statistics pool all of them, as rliable pools runs and tasks.
    pub fn scores(&self) -> Vec<f64> {
        self.tasks.iter().flatten().map(Training::score).collect()
    }

    /// Number of trainings.
    pub fn trainings(&self) -> usize {
        self.tasks.iter().map(Vec::len).sum()
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

/// Places of drawn episodes: the seed, and the episode of that seed.
type Hosts = Vec<(usize, usize)>;

/// Draws of a resample. They are kept for the next one so that drawing allocates nothing.
#[derive(Default)]
pub(super) struct Drawn {
    /// Places of trainings, task by task.
    trainings: Vec<usize>,
    hosts: Hosts,
}

/// A sample, laid out for draws.
pub(super) struct Layout {
    /// Places of the trainings of each task.
    pub(super) tasks: Vec<Range<usize>>,
    /// Values of the episodes of each training, by seed.
    pub(super) trainings: Vec<Vec<Vec<f64>>>,
    /// `true` if the trainings of a task share their hosts.
    pub(super) is_crossed: bool,
}

impl Layout {
    /// The layout of a sample. `None` if a training has no episode, or a value is not finite.
    pub(super) fn of(sample: &Sample) -> Option<Self> {
        let episodes = |training: &Training| -> Option<Vec<Vec<f64>>> {
            let seeds = training.by_seed.iter().filter(|episodes| !episodes.is_empty());
            training.score().is_finite().then(|| seeds.cloned().collect())
        };
        let (mut tasks, mut end) = (Vec::new(), 0);
        for task in &sample.tasks {
            tasks.push(end..end + task.len());
            end += task.len();
        }
        let layout = Self {
            tasks,
            trainings: sample.tasks.iter().flatten().map(episodes).collect::<Option<_>>()?,
            is_crossed: false,
        };
        let has_one_shape = |task: &Range<usize>| task.clone().all(|t| layout.sizes(t).eq(layout.sizes(task.start)));
        let is_crossed = sample.shares_hosts && layout.tasks.iter().all(has_one_shape);
        Some(Self { is_crossed, ..layout })
    }

    pub(super) fn has_enough(&self) -> bool {
        self.trainings.len() >= FEWEST
    }

    /// Episodes of each seed of a training.
    pub(super) fn sizes(&self, training: usize) -> impl Iterator<Item = usize> {
        self.trainings[training].iter().map(Vec::len)
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
        mut take: impl FnMut(usize, &mut Hosts, &mut D),
    ) {
        drawn.trainings.clear();
        for task in &self.tasks {
            let places = task.clone().map(|_| task.start + pick(source, task.len()));
            drawn.trainings.extend(places);
        }
        for task in &self.tasks {
            for place in task.clone() {
                let training = drawn.trainings[place];
                if place == task.start || !is_crossed {
                    self.draw_hosts(training, source, &mut drawn.hosts);
                }
                take(training, &mut drawn.hosts, source);
            }
        }
    }

    /// Draws as many seeds as a training has, and as many episodes of each drawn seed as it has.
    pub(super) fn draw_hosts(&self, training: usize, source: &mut impl Draw, hosts: &mut Hosts) {
        let seeds = &self.trainings[training];
        hosts.clear();
        for _ in seeds {
            let seed = pick(source, seeds.len());
            let count = seeds[seed].len();
            hosts.extend((0..count).map(|_| (seed, pick(source, count))));
        }
    }

    /// The score of a training on drawn hosts.
    pub(super) fn score_on(&self, training: usize, hosts: &[(usize, usize)]) -> f64 {
        let seeds = &self.trainings[training];
        hosts.iter().map(|&(seed, episode)| seeds[seed][episode]).sum::<f64>() / hosts.len() as f64
    }

    /// One entry a training: `true` if it has, in both arms, equally many seeds with equally many episodes.
    pub(super) fn alike(&self, other: &Self) -> Vec<bool> {
        let is_alike = |training: usize| self.sizes(training).eq(other.sizes(training));
        let pairs = 0..self.trainings.len().min(other.trainings.len());
        pairs.map(is_alike).collect()
    }
}
