//! The newest steps and updates, for people who look into an anomaly.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::telemetry::event::{Event, Payload};

const STEPS: usize = 20;
const UPDATES: usize = 3;

/// The step rows of the last twenty steps and the last three updates.
#[derive(Clone, Debug, Default)]
pub struct EventTrail {
    /// Events by step, the newest last.
    steps: VecDeque<Vec<Arc<Event>>>,
    updates: VecDeque<Arc<Event>>,
}

impl EventTrail {
    /// `env_step` and `decision` of all envs.
    pub fn steps(&self) -> impl Iterator<Item = &Event> {
        self.steps.iter().flatten().map(|event| &**event)
    }

    /// `learner_update`.
    pub fn updates(&self) -> impl Iterator<Item = &Event> {
        self.updates.iter().map(|event| &**event)
    }

    pub(in crate::telemetry) fn note(&mut self, event: &Arc<Event>) {
        let moment = |event: &Event| (event.round, event.step);
        if event.payload.is_step_row() {
            match self.steps.back_mut() {
                Some(step) if step.last().is_some_and(|row| moment(row) == moment(event)) => step.push(event.clone()),
                _ => self.steps.push_back(vec![event.clone()]),
            }
        } else if matches!(event.payload, Payload::LearnerUpdate(_)) {
            self.updates.push_back(event.clone());
        }
        if self.steps.len() > STEPS {
            self.steps.pop_front();
        }
        if self.updates.len() > UPDATES {
            self.updates.pop_front();
        }
    }
}
