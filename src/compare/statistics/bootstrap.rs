//! The bootstrap of trainings and hosts: the uncertainty of an estimate, with the training as the unit.
//!
//! A resample draws, with replacement, as many trainings of every task as it has, and hosts: as many evaluation seeds as there
//! are, and for each drawn seed as many of its episodes. Hosts that all trainings of a task were evaluated on are *crossed* with
//! them and drawn once for all (the pigeonhole bootstrap: McCullagh 2000, Owen 2007). Hosts that a training has for itself are
//! *nested* in it and drawn separately for each drawn training. Tasks are strata: they stay as they are, so
//! differences between them do not widen the interval (Agarwal et al. 2021). The ends of the interval are percentiles of
//! the resampled statistics (Efron 1979). A training's score already varies with the episodes that it happened to get,
//! so the lower level counts that noise a second time: intervals err on the wide side (Davison and Hinkley 1997,
//! section 3.8). With few trainings or seeds percentiles lie too close together; means have a
//! [t interval](super::student) then.

use serde::Serialize;

use super::rank::wins;
use super::sample::{Drawn, Interval, Layout, Sample};
use super::student;
use super::summary::{Statistic, percentile};
use crate::random::{Domain, Draw, RunRng};

/// Resamples of an interval.
const RESAMPLES: usize = 10_000;
/// Probability that an interval leaves out at each end: 95 % remain.
const TAIL: f64 = 0.025;
/// A statistic of a sample, and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Value of the sample itself.
    pub value: f64,
    /// 95 % interval. `None` with fewer than 5 units (of each arm, if there are two).
    pub interval: Option<Interval>,
}

/// The relation between two arms of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// The trainings of a task are pairs, in order: they had the same seeds. They are drawn together; so are seeds and
    /// episodes of pairs that have equally many of them.
    Paired,
    /// Each arm is drawn on its own.
    Independent,
}

/// Number of resamples, and the random numbers that draw them. Each interval has its own, so that no interval depends on
/// another one.
#[derive(Clone, Debug)]
pub struct Bootstrap<D> {
    /// Number of resamples, at least 1.
    pub resamples: usize,
    /// Source of the drawn indices. It isn't used where there is only one thing to draw.
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
    /// The interval of the number that `resample` draws.
    pub(super) fn interval(mut self, mut resample: impl FnMut(&mut D) -> f64) -> Interval {
        let mut numbers: Vec<f64> = (0..self.resamples).map(|_| resample(&mut self.source)).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        Interval {
            low: percentile(&numbers, TAIL),
            high: percentile(&numbers, 1.0 - TAIL),
        }
    }
}

/// A statistic over the trainings' scores of all tasks, with its interval: the t interval for a mean of few trainings, or over
/// few hosts that they share, and percentiles of resamples for anything else. There is no interval where a value is not finite or
/// a training has no episode.
pub fn estimate(sample: &Sample, statistic: Statistic, bootstrap: Bootstrap<impl Draw>) -> Estimate {
    let layout = Layout::of(sample).filter(Layout::has_enough);
    let value = statistic.of(&sample.scores());
    let interval = layout.map(|layout| {
        let exact = (statistic == Statistic::Mean).then(|| student::interval(value, &layout));
        exact
            .flatten()
            .unwrap_or_else(|| resampled(&layout, statistic, bootstrap))
    });
    Estimate { value, interval }
}

/// Percentiles of a statistic over resampled trainings and hosts.
pub(super) fn resampled(layout: &Layout, statistic: Statistic, bootstrap: Bootstrap<impl Draw>) -> Interval {
    let (mut drawn, mut scores) = (Drawn::default(), Vec::new());
    bootstrap.interval(|source| {
        layout.draw_scores(source, &mut drawn, &mut scores);
        statistic.of_scratch(&mut scores)
    })
}

/// A statistic of the first arm less that of the second, with its interval. `None` where the arms do not fit: unequal
/// numbers of tasks, or unequal numbers of trainings of a task that are to be pairs. Each independent arm is drawn separately,
/// with its hosts.
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
        .map(|(first, second)| {
            let (mut drawn, mut ours, mut theirs) = (Drawn::default(), Vec::new(), Vec::new());
            let is_alike = first.alike(&second);
            let is_crossed = first.is_crossed && second.is_crossed && is_alike.iter().all(|is_alike| *is_alike);
            bootstrap.interval(|source| {
                match design {
                    Design::Paired => {
                        ours.clear();
                        theirs.clear();
                        first.draw(is_crossed, source, &mut drawn, |training, hosts, source| {
                            ours.push(first.score_on(training, hosts));
                            if !is_alike[training] {
                                second.draw_hosts(training, source, hosts);
                            }
                            theirs.push(second.score_on(training, hosts));
                        });
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

/// The probability that a training of one arm beats one of another on the same task (Agarwal et al. 2021): A of Vargha and
/// Delaney of each
/// task, ties counting half, averaged over tasks. In [0, 1]; 0.5 means no difference. Arms are drawn independently, each within its tasks. `None`
/// where the arms have unequal numbers of tasks or none, or where a task has no training of an arm or a score is missing.
pub fn probability_of_improvement(
    first: &Sample,
    second: &Sample,
    bootstrap: Bootstrap<impl Draw>,
) -> Option<Estimate> {
    let (ours, theirs) = (Layout::of(first)?, Layout::of(second)?);
    let is_missing = |sample: &Sample| sample.tasks.is_empty() || sample.tasks.iter().any(Vec::is_empty);
    if first.tasks.len() != second.tasks.len() || is_missing(first) || is_missing(second) {
        return None;
    }
    let average = |our_scores: &[f64], their_scores: &[f64]| -> f64 {
        let tasks = ours.tasks.iter().zip(&theirs.tasks);
        let sum: f64 = tasks
            .map(|(our, their)| {
                let pairs = our.len() * their.len();
                wins(&our_scores[our.clone()], &their_scores[their.clone()]) / pairs as f64
            })
            .sum();
        sum / first.tasks.len() as f64
    };
    let interval = (ours.has_enough() && theirs.has_enough()).then(|| {
        let (mut drawn, mut our_scores, mut their_scores) = (Drawn::default(), Vec::new(), Vec::new());
        bootstrap.interval(|source| {
            ours.draw_scores(source, &mut drawn, &mut our_scores);
            theirs.draw_scores(source, &mut drawn, &mut their_scores);
            average(&our_scores, &their_scores)
        })
    });
    Some(Estimate {
        value: average(&first.scores(), &second.scores()),
        interval,
    })
}

/// A statistic over the episodes of a *single* training, with its interval from draws within their evaluation seeds. It says
/// how well the episodes describe this one policy, and nothing about the end of the next training. Equally shaped
/// lists are drawn alike under one seed, so episodes of two policies in pairs may be compared by their differences.
/// There is no interval with fewer than 5 episodes, and where one is not finite.
pub fn policy_estimate(by_seed: &[Vec<f64>], statistic: Statistic, seed: u64) -> Estimate {
    estimate(&Sample::of_numbers(by_seed), statistic, Bootstrap::seeded(seed))
}

#[cfg(test)]
mod tests;
