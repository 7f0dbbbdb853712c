//! The two-level bootstrap: how sure an estimate is, with the training as the unit.
//!
//! A resample draws, with replacement, as many trainings of every task as it has, of each drawn training as many of its
//! evaluation seeds, and of each drawn seed as many of its episodes. Tasks are strata: they stay as they are, so
//! differences between them do not widen the interval (Agarwal et al. 2021). The ends of the interval are percentiles of
//! the resampled statistics (Efron 1979). A training's score varies already with the episodes that it happened to meet,
//! so the lower level counts that noise a second time: intervals err on the wide side (Davison and Hinkley 1997,
//! section 3.8).

use std::ops::Range;

use serde::Serialize;

use super::summary::{Statistic, percentile};
use crate::random::{Domain, Draw, RunRng};

/// Resamples behind an interval.
pub const RESAMPLES: usize = 10_000;
/// Probability that an interval leaves out at each end: 95 % remain.
const TAIL: f64 = 0.025;
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

/// A statistic of a sample, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Of the sample as it is.
    pub value: f64,
    /// 95 % bootstrap interval; `None` with fewer than 5 units (of each arm, if there are two).
    pub interval: Option<Interval>,
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

    /// Mean over all episodes, whatever their seed; NaN without any.
    pub fn score(&self) -> f64 {
        let episodes = self.by_seed.iter().flatten();
        let (sum, count) = episodes.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
        sum / count as f64
    }
}

/// The trainings of one arm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Trainings of each task.
    pub tasks: Vec<Vec<Training>>,
}

impl Sample {
    /// Trainings of which a single number is known, by task.
    pub fn of_numbers(tasks: &[Vec<f64>]) -> Self {
        let trainings = |values: &Vec<f64>| values.iter().copied().map(Training::single).collect();
        Self {
            tasks: tasks.iter().map(trainings).collect(),
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

/// How two arms of an experiment belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// The trainings of a task are pairs, in order: they had the same seeds. They are drawn together; so are seeds and
    /// episodes of pairs that have equally many of them.
    Paired,
    /// Each arm is drawn on its own.
    Independent,
}

/// How often samples are drawn anew, and from which random numbers. Each interval takes one of its own, so that no
/// interval depends on another one.
#[derive(Clone, Debug)]
pub struct Bootstrap<D> {
    /// At least 1.
    pub resamples: usize,
    /// What gives the indices that are drawn. Where there is one thing only to be drawn, nothing is asked for.
    pub source: D,
}

impl Bootstrap<RunRng> {
    /// 10 000 resamples from the stream of `seed`. Equally shaped samples are drawn alike under one seed.
    pub fn seeded(seed: u64) -> Self {
        Self {
            resamples: RESAMPLES,
            source: RunRng::new(seed, Domain::StatisticsResampling, &[0]),
        }
    }
}

impl<D: Draw> Bootstrap<D> {
    /// The interval of each of `count` numbers that come from one resample: `resample` writes them.
    pub(super) fn intervals(mut self, count: usize, mut resample: impl FnMut(&mut D, &mut [f64])) -> Vec<Interval> {
        let mut numbers = vec![0.0; self.resamples * count];
        for row in numbers.chunks_exact_mut(count.max(1)) {
            resample(&mut self.source, row);
        }
        let mut column = Vec::with_capacity(self.resamples);
        (0..count)
            .map(|index| {
                column.clear();
                column.extend(numbers.iter().skip(index).step_by(count));
                column.sort_unstable_by(f64::total_cmp);
                Interval {
                    low: percentile(&column, TAIL),
                    high: percentile(&column, 1.0 - TAIL),
                }
            })
            .collect()
    }

    /// The interval of one number.
    pub(super) fn interval(self, mut resample: impl FnMut(&mut D) -> f64) -> Option<Interval> {
        let intervals = self.intervals(1, |source, row| row[0] = resample(source));
        intervals.first().copied()
    }
}

/// A statistic over the trainings' scores of all tasks, with its interval. No interval where a value is not finite or
/// a training has no episode.
pub fn estimate(sample: &Sample, statistic: Statistic, bootstrap: Bootstrap<impl Draw>) -> Estimate {
    let layout = Layout::of(sample).filter(Layout::has_enough);
    Estimate {
        value: statistic.of(&sample.scores()),
        interval: layout.and_then(|layout| {
            let (mut drawn, mut scores) = (Vec::new(), Vec::new());
            bootstrap.interval(|source| {
                layout.draw_scores(source, &mut drawn, &mut scores);
                statistic.of_scratch(&mut scores)
            })
        }),
    }
}

/// A statistic of the first arm less that of the second, with its interval. `None` where the arms do not fit: unequal
/// numbers of tasks, or unequal numbers of trainings of a task that are to be pairs.
pub fn difference(
    first: &Sample,
    second: &Sample,
    statistic: Statistic,
    design: Design,
    bootstrap: Bootstrap<impl Draw>,
) -> Option<Estimate> {
    let are_pairs = || first.tasks.iter().zip(&second.tasks).all(|(a, b)| a.len() == b.len());
    if first.tasks.len() != second.tasks.len() || design == Design::Paired && !are_pairs() {
        return None;
    }
    let layouts = Layout::of(first).zip(Layout::of(second));
    let interval = layouts
        .filter(|(first, second)| first.has_enough() && second.has_enough())
        .and_then(|(first, second)| {
            let (mut drawn, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
            let is_alike = first.alike(&second);
            bootstrap.interval(|source| {
                match design {
                    Design::Paired => {
                        first.strata.draw(source, &mut drawn);
                        ours.clear();
                        theirs.clear();
                        for &training in &drawn {
                            let [our, their] = if is_alike[training] {
                                first.draw_scores_together(&second, training, source)
                            } else {
                                [&first, &second].map(|arm| arm.draw_score(training, source))
                            };
                            ours.push(our);
                            theirs.push(their);
                        }
                    }
                    Design::Independent => {
                        first.draw_scores(source, &mut drawn, &mut ours);
                        second.draw_scores(source, &mut drawn, &mut theirs);
                    }
                }
                statistic.of_scratch(&mut ours) - statistic.of_scratch(&mut theirs)
            })
        });
    Some(Estimate {
        value: statistic.of(&first.scores()) - statistic.of(&second.scores()),
        interval,
    })
}

/// The interval of a statistic over the episodes of a *single* training, drawn within their evaluation seeds. It says
/// how well the episodes describe this one policy, and nothing about how the next training would end. Equally shaped
/// lists are drawn alike under one seed, so episodes of two policies in pairs may be compared by their differences.
/// `None` with fewer than 5 episodes, and where one is not finite.
pub fn policy_interval(by_seed: &[Vec<f64>], statistic: Statistic, seed: u64) -> Option<Interval> {
    estimate(&Sample::of_numbers(by_seed), statistic, Bootstrap::seeded(seed)).interval
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

    pub(super) fn has_enough(&self) -> bool {
        self.count() >= FEWEST
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

/// A sample in three flat lists, so that drawing from it allocates nothing.
pub(super) struct Layout {
    /// Places of the trainings of each task.
    pub(super) strata: Strata,
    /// Places of the seeds of each training.
    trainings: Vec<Range<usize>>,
    /// Places of the episodes of each seed.
    seeds: Vec<Range<usize>>,
    episodes: Vec<f64>,
}

impl Layout {
    /// `None` if a training has no episode, or a value is not finite.
    pub(super) fn of(sample: &Sample) -> Option<Self> {
        let trainings = || sample.tasks.iter().flatten();
        let seeds = |training: &Training| training.by_seed.iter().filter(|episodes| !episodes.is_empty()).count();
        let is_sound = |training: &Training| seeds(training) > 0 && training.score().is_finite();
        let sizes = trainings().flat_map(|training| &training.by_seed).map(Vec::len);
        trainings().all(is_sound).then(|| Self {
            strata: Strata::of_sizes(sample.tasks.iter().map(Vec::len)),
            trainings: Strata::of_sizes(trainings().map(seeds)).0,
            seeds: Strata::of_sizes(sizes.filter(|&size| size > 0)).0,
            episodes: trainings().flat_map(|training| training.by_seed.concat()).collect(),
        })
    }

    pub(super) fn has_enough(&self) -> bool {
        self.strata.has_enough()
    }

    /// Scores of one resample, task by task. `drawn` is scratch.
    pub(super) fn draw_scores(&self, source: &mut impl Draw, drawn: &mut Vec<usize>, scores: &mut Vec<f64>) {
        self.strata.draw(source, drawn);
        scores.clear();
        scores.extend(drawn.iter().map(|&training| self.draw_score(training, source)));
    }

    /// The score of one training with its seeds and episodes drawn anew.
    fn draw_score(&self, training: usize, source: &mut impl Draw) -> f64 {
        let seeds = &self.seeds[self.trainings[training].clone()];
        let (mut sum, mut count) = (0.0, 0);
        for _ in seeds {
            let seed = seeds[pick(source, seeds.len())].clone();
            count += seed.len();
            for _ in seed.clone() {
                sum += self.episodes[seed.start + pick(source, seed.len())];
            }
        }
        sum / count as f64
    }

    /// The scores of one training in two arms, with equal seeds and episodes drawn.
    fn draw_scores_together(&self, other: &Self, training: usize, source: &mut impl Draw) -> [f64; 2] {
        let ours = &self.seeds[self.trainings[training].clone()];
        let theirs = &other.seeds[other.trainings[training].clone()];
        let (mut sums, mut count) = ([0.0; 2], 0);
        for _ in ours {
            let seed = pick(source, ours.len());
            let (our, their) = (ours[seed].clone(), theirs[seed].clone());
            count += our.len();
            for _ in our.clone() {
                let episode = pick(source, our.len());
                sums[0] += self.episodes[our.start + episode];
                sums[1] += other.episodes[their.start + episode];
            }
        }
        sums.map(|sum| sum / count as f64)
    }

    /// Which trainings of two arms have equally many seeds with equally many episodes.
    fn alike(&self, other: &Self) -> Vec<bool> {
        let sizes = |layout: &Self, training: &Range<usize>| -> Vec<usize> {
            layout.seeds[training.clone()]
                .iter()
                .map(ExactSizeIterator::len)
                .collect()
        };
        let pairs = self.trainings.iter().zip(&other.trainings);
        pairs
            .map(|(our, their)| sizes(self, our) == sizes(other, their))
            .collect()
    }
}

#[cfg(test)]
mod tests;
