//! Several engines that play side by side: every one plays a step before any plays the next, so that disturbances of the
//! machine affect all alike.

use std::ops::ControlFlow;

use crate::engine::{Engine, RunReport};
use crate::random::{Domain, Draw, RunRng};
use crate::run::{DriverStep, StopRequest, StopSignal};

/// Who plays when.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// What the orders are drawn from.
    pub seed: u64,
    /// The round that all engines play next.
    pub first_round: u32,
}

/// The order in which `arms` arms take their turns in a round.
pub fn launch_order(seed: u64, round: u32, arms: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..arms).collect();
    RunRng::new(seed, Domain::LaunchOrder, &[round.into()]).shuffle(&mut order);
    order
}

/// Plays all engines to their ends and closes their records. An engine that fails takes the others along: they stop as if
/// they were asked to, and so they do once `stop` is. Engines that have been played already are `None`.
pub fn play_together(engines: &mut [Option<Engine>], turns: Turns, stop: &StopSignal) -> Vec<Option<RunReport>> {
    let mut game = Game::new(engines, stop);
    let mut round = turns.first_round;
    loop {
        let order = launch_order(turns.seed, round, game.engines.len());
        for &arm in &order {
            game.begin_round(arm);
        }
        while order.iter().any(|&arm| game.is_in_round[arm]) {
            for &arm in &order {
                game.advance_in_round(arm);
            }
        }
        if order.iter().all(|&arm| game.is_over(arm)) {
            return game.reports;
        }
        round += 1;
    }
}

struct Game<'a> {
    engines: &'a mut [Option<Engine>],
    /// Of those that have ended.
    reports: Vec<Option<RunReport>>,
    is_in_round: Vec<bool>,
    /// What the engines heed.
    own_stop: StopSignal,
    stop: &'a StopSignal,
}

impl<'a> Game<'a> {
    fn new(engines: &'a mut [Option<Engine>], stop: &'a StopSignal) -> Self {
        let own_stop = StopSignal::default();
        for engine in engines.iter_mut().flatten() {
            engine.world_mut().insert_resource(own_stop.clone());
        }
        Self {
            reports: engines.iter().map(|_| None).collect(),
            is_in_round: vec![false; engines.len()],
            engines,
            own_stop,
            stop,
        }
    }

    fn is_over(&self, arm: usize) -> bool {
        self.engines[arm].is_none() || self.reports[arm].is_some()
    }

    /// Up to the start of the next round, if there is one.
    fn begin_round(&mut self, arm: usize) {
        while !self.is_over(arm) && !self.is_in_round[arm] {
            self.advance(arm);
        }
    }

    fn advance_in_round(&mut self, arm: usize) {
        if self.is_in_round[arm] {
            self.advance(arm);
        }
    }

    fn advance(&mut self, arm: usize) {
        if let Some(request) = self.stop.requested() {
            self.own_stop.request(request);
        }
        let Some(engine) = &mut self.engines[arm] else { return };
        match engine.advance() {
            ControlFlow::Continue(DriverStep::RoundBegun) => self.is_in_round[arm] = true,
            ControlFlow::Continue(DriverStep::RoundEnded) => self.is_in_round[arm] = false,
            ControlFlow::Continue(_) => {}
            ControlFlow::Break(report) => {
                self.is_in_round[arm] = false;
                if report.failure.is_some() {
                    self.own_stop.request(StopRequest::Interrupt);
                }
                self.reports[arm] = Some(report);
            }
        }
    }
}

#[cfg(test)]
mod tests;
