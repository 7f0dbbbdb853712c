//! The episodes of a run: a point of each (thinned in long runs), and the whole course of some: those that are played, those of
//! the last round, the best of each round, and the best of all.

use std::collections::BTreeMap;

use super::trace::EpisodeTrace;
use crate::report::thinned::Thinned;
use crate::telemetry::{EndReason, EpisodeFinished, Event, Payload};

/// Points of episodes that are kept.
const POINTS: usize = 4096;
/// Rounds whose best episode is kept whole.
const BEST: usize = 12;
/// Rounds whose orders are compared.
const ORDERED_ROUNDS: u32 = 2;

/// An episode as a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpisodePoint {
    /// From 0.
    pub round: u32,
    /// Index in the run.
    pub env: u32,
    /// With committed seeds alone, in validation, percent.
    pub accuracy: f64,
    /// Parameters of host and committed seeds over the host's.
    pub ratio: f64,
    /// Sum of rewards; absent where nothing pays.
    pub reward: Option<f64>,
}

impl EpisodePoint {
    fn of(round: u32, env: u32, episode: &EpisodeFinished) -> Self {
        Self {
            round,
            env,
            accuracy: episode.committed_accuracy.unwrap_or(episode.final_accuracy).0,
            ratio: episode.committed_ratio.0,
            reward: episode.paid.as_ref().map(|paid| paid.reward.0),
        }
    }

    /// `round 3, env 1`
    pub fn name(&self) -> String {
        format!("round {}, env {}", self.round + 1, self.env)
    }
}

/// How constant a controller is: the order that most episodes of the last rounds follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModalOrder {
    /// Its commands, in order.
    pub order: String,
    /// Episodes that follow it.
    pub episodes: usize,
    /// All episodes of these rounds.
    pub of: usize,
}

/// The episodes of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episodes {
    /// Those of the running round, by env.
    pub playing: BTreeMap<u32, EpisodeTrace>,
    /// Those of the last round that was finished, by env.
    pub latest: Vec<EpisodeTrace>,
    /// The best of each round, thinned.
    pub best_of_rounds: Thinned<EpisodeTrace, BEST>,
    /// The best of all.
    pub best: Option<EpisodeTrace>,
    /// A point of each that ended and did not fail, thinned.
    pub points: Thinned<EpisodePoint, POINTS>,
    orders: Vec<(u32, String)>,
}

impl Episodes {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        if let Payload::RoundFinished(_) = &event.payload {
            self.end_round();
        }
        let Some(at) = event.context() else { return };
        // An episode that did not end is played again by a run that was resumed from before it.
        self.playing
            .retain(|&env, known| env != at.env || known.at.episode == at.episode);
        let trace = self.playing.entry(at.env).or_insert_with(|| EpisodeTrace::new(at));
        trace.apply(event);
        if let Payload::EpisodeFinished(episode) = &event.payload
            && !matches!(episode.end, EndReason::Failed | EndReason::Stopped)
        {
            self.points.push(EpisodePoint::of(at.round, at.env, episode));
            self.orders.push((at.round, trace.order()));
            self.orders.retain(|(round, _)| round + ORDERED_ROUNDS > at.round);
        }
    }

    fn end_round(&mut self) {
        self.latest = std::mem::take(&mut self.playing).into_values().collect();
        let accuracies = self.latest.iter().map(|trace| (trace, trace.accuracy()));
        let measured = accuracies.filter_map(|(trace, accuracy)| Some((trace, accuracy.filter(|of| of.is_finite())?)));
        let Some((best, _)) = measured.max_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            return;
        };
        if self.best.as_ref().and_then(EpisodeTrace::accuracy) < best.accuracy() {
            self.best = Some(best.clone());
        }
        self.best_of_rounds.push(best.clone());
    }

    /// Those of the running round or, before it has any, of the last one, by env.
    pub fn current(&self) -> Vec<&EpisodeTrace> {
        match self.playing.is_empty() {
            true => self.latest.iter().collect(),
            false => self.playing.values().collect(),
        }
    }

    /// The episode of that round and env, where its course is kept.
    pub fn of(&self, round: u32, env: u32) -> Option<&EpisodeTrace> {
        let mut kept = self.latest.iter().chain(self.best_of_rounds.iter()).chain(&self.best);
        kept.find(|trace| (trace.at.round, trace.at.env) == (round, env))
    }

    /// Over the episodes of the last two rounds that ended; `None` without any.
    pub fn modal_order(&self) -> Option<ModalOrder> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, order) in &self.orders {
            *counts.entry(order).or_default() += 1;
        }
        let (&order, &episodes) = counts.iter().max_by_key(|(_, count)| **count)?;
        Some(ModalOrder {
            order: order.to_owned(),
            episodes,
            of: self.orders.len(),
        })
    }
}
