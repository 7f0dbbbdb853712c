//! The position of the run: round and step.

use bevy_ecs::prelude::*;

use crate::health::Position;

/// The length of a run, known once the data is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLength {
    /// Rounds `first_round..end_round` are played.
    pub first_round: u32,
    /// The round after the last one.
    pub end_round: u32,
    /// Steps of an episode.
    pub max_steps: u32,
    /// Training batches of a step.
    pub train_batches: usize,
    /// Validation batches of a step.
    pub val_batches: usize,
}

/// The run's position. Rounds count from 0, steps from 1.
#[derive(Resource, Clone, Debug)]
pub struct RunClock {
    length: RunLength,
    round: Option<u32>,
    step: u32,
}

impl RunClock {
    /// A clock before its first round.
    pub fn new(length: RunLength) -> Self {
        Self {
            length,
            round: None,
            step: 0,
        }
    }

    /// The length that the clock was made with; the last round of a run that stops early is not known before.
    pub fn length(&self) -> RunLength {
        self.length
    }

    /// The round being played; before the first one, the first.
    pub fn round(&self) -> u32 {
        self.round.unwrap_or(self.length.first_round)
    }

    /// 1-based; 0 before the first step of a round.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Returns whether the episodes of the round end with this step.
    pub fn is_last_step(&self) -> bool {
        self.step == self.length.max_steps
    }

    /// Training and validation batches of a step.
    pub fn batches_per_step(&self) -> (usize, usize) {
        (self.length.train_batches, self.length.val_batches)
    }

    /// The round that follows the current one, if there is one.
    pub fn upcoming_round(&self) -> Option<u32> {
        let next = self.round.map_or(self.length.first_round, |round| round + 1);
        (next < self.length.end_round).then_some(next)
    }

    /// Round and step after the current step; `None` if it is the last of the run.
    pub fn upcoming_step(&self) -> Option<(u32, u32)> {
        match self.is_last_step() {
            false => Some((self.round(), self.step + 1)),
            true => self.upcoming_round().map(|round| (round, 1)),
        }
    }

    /// Moves on to the next round, if there is one.
    pub fn next_round(&mut self) -> bool {
        let next = self.upcoming_round();
        if next.is_some() {
            (self.round, self.step) = (next, 0);
        }
        next.is_some()
    }

    /// Counts the steps of the round up to `step` as played.
    pub fn resume_after(&mut self, step: u32) {
        self.step = step;
    }

    /// No round follows the current one; before the first one, none at all.
    pub fn end_run(&mut self) {
        self.length.end_round = self.round.map_or(self.length.first_round, |round| round + 1);
    }

    /// Moves on to the next step of the round, if there is one.
    pub fn next_step(&mut self) -> bool {
        let exists = self.step < self.length.max_steps;
        if exists {
            self.step += 1;
        }
        exists
    }

    /// For error messages.
    pub fn position(&self) -> Position {
        Position {
            round: self.round,
            step: (self.step > 0).then_some(self.step),
            ..Position::default()
        }
    }
}

#[cfg(test)]
mod tests;
