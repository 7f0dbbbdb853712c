//! The state of a sweep: what its folder says about every trial, and what is to be done next. The trials that continue after a
//! rung of successive halving depend on the scores of whole rungs alone.

use std::collections::{BTreeMap, BTreeSet};

use super::file::SuccessiveHalving;
use super::lease::{Holder, Leases};
use super::outcome::{Results, TrialEnd, read_rung};
use super::place::Place;
use super::plan::{Plan, Trial};
use crate::health::FileError;

/// The state of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum TrialState {
    /// It has ended.
    Ended(TrialEnd),
    /// A worker plays it.
    Playing(String),
    /// It can be played, up to a rung or to its end.
    Waiting(TrialSegment),
    /// It has reached a rung that others are still played up to.
    AtRung(usize),
}

/// A part of a trial that is played in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialSegment {
    /// From 0.
    pub rung: usize,
    /// Rounds that the trial has played at its end.
    pub until: u32,
    /// `true` if the trial is over then.
    pub is_last: bool,
}

/// A look at the whole folder.
pub struct SweepState<'a> {
    plan: &'a Plan,
    place: &'a dyn Place,
    /// The holders of trials.
    pub leases: Leases<'a>,
    /// Results of ended trials.
    pub results: Results,
    /// The points that continue after each rung, as far as that is decided.
    decided: Vec<Vec<usize>>,
}

impl<'a> SweepState<'a> {
    /// Reads the folder, except its leases, which were read before: those who only look write nothing for that.
    ///
    /// # Errors
    /// A file of it that cannot be read.
    pub fn read(place: &'a dyn Place, plan: &'a Plan, leases: Leases<'a>) -> Result<Self, FileError> {
        let mut state = Self {
            plan,
            place,
            leases,
            results: Results::read(place)?,
            decided: Vec::new(),
        };
        state.decide()?;
        Ok(state)
    }

    fn decide(&mut self) -> Result<(), FileError> {
        let Some(halving) = self.plan.sweep.early_stop else {
            return Ok(());
        };
        let most = self
            .plan
            .trials
            .iter()
            .map(|trial| rungs(Some(halving), trial.rounds).len())
            .max();
        let mut points: Vec<usize> = self.plan.trials.iter().map(|trial| trial.point).collect();
        points.dedup();
        for rung in 0..most.unwrap_or(1) - 1 {
            let among: BTreeSet<usize> = points.iter().copied().collect();
            let those: Vec<&Trial> = (self.plan.trials.iter())
                .filter(|trial| among.contains(&trial.point))
                .collect();
            let is_awaited = |trial: &&Trial| {
                !self.results.has_rung(&trial.id, rung) && self.results.end(&trial.id) != Some(TrialEnd::Failed)
            };
            if those.iter().any(is_awaited) {
                // Without reading any score.
                break;
            }
            let mut scores: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
            for trial in those {
                if self.results.has_rung(&trial.id, rung) {
                    let score = read_rung(self.place, &trial.id, rung)?;
                    scores.entry(trial.point).or_default().push(score);
                }
            }
            let next = promoted(&points, halving.factor, &scores);
            points.clone_from(&next);
            self.decided.push(next);
        }
        Ok(())
    }

    /// The part of a trial that comes next; the rung at which it waits for others, if it does.
    fn next_segment(&self, trial: &Trial) -> Result<TrialSegment, usize> {
        let rungs = rungs(self.plan.sweep.early_stop, trial.rounds);
        let reached = (0..rungs.len())
            .take_while(|&rung| self.results.has_rung(&trial.id, rung))
            .count();
        if reached > self.decided.len() {
            return Err(reached - 1);
        }
        Ok(TrialSegment {
            rung: reached,
            until: rungs[reached.min(rungs.len() - 1)],
            is_last: reached + 1 >= rungs.len(),
        })
    }

    /// Returns whether a trial has been given up at a rung that is decided, and that hasn't been written down yet.
    pub fn is_given_up(&self, trial: &Trial) -> bool {
        self.results.end(&trial.id).is_none()
            && self
                .decided
                .iter()
                .enumerate()
                .any(|(rung, points)| self.results.has_rung(&trial.id, rung) && !points.contains(&trial.point))
    }

    /// The state of a trial.
    ///
    /// # Errors
    /// A lease that cannot be read.
    pub fn of(&self, trial: &Trial) -> Result<TrialState, FileError> {
        if let Some(end) = self.results.end(&trial.id) {
            return Ok(TrialState::Ended(end));
        }
        if let Holder::Playing(lease) = self.leases.holder(&trial.id)? {
            return Ok(TrialState::Playing(lease.worker.name()));
        }
        Ok(match self.next_segment(trial) {
            Ok(segment) => TrialState::Waiting(segment),
            Err(rung) => TrialState::AtRung(rung),
        })
    }
}

/// The rounds at which trials are compared, if they are, then the last round of the scenario.
fn rungs(halving: Option<SuccessiveHalving>, rounds: u32) -> Vec<u32> {
    let compared = halving.into_iter().flat_map(|halving| {
        let next = move |before: &u32| Some(before.saturating_mul(halving.factor));
        std::iter::successors(Some(halving.first_rounds), next).take_while(move |next| *next < rounds)
    });
    compared.chain([rounds]).collect()
}

/// The points that continue after a rung, of those that reached it: the best `1 / factor` of them by the mean score of their
/// trials that have not failed, at least one; of equal ones the first.
fn promoted(points: &[usize], factor: u32, scores: &BTreeMap<usize, Vec<f64>>) -> Vec<usize> {
    let mean = |scores: &Vec<f64>| scores.iter().sum::<f64>() / scores.len() as f64;
    let means = points
        .iter()
        .filter_map(|point| Some((*point, mean(scores.get(point)?))));
    let mut means: Vec<(usize, f64)> = means.collect();
    means.sort_by(|(first, a), (second, b)| b.total_cmp(a).then(first.cmp(second)));
    means.truncate(points.len().div_ceil(factor as usize));
    let mut points: Vec<usize> = means.into_iter().map(|(point, _)| point).collect();
    points.sort_unstable();
    points
}

#[cfg(test)]
mod tests;
