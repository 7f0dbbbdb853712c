//! Findings of detectors: those that hold now, and the newest of those that held before.

use std::collections::{BTreeMap, VecDeque};

use crate::telemetry::{Anomaly, AnomalyState, Event, Payload};

/// Anomalies that are kept once they are over.
const KEPT: usize = 200;

/// A condition that a detector has found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundAnomaly {
    /// The detector's message.
    pub data: Anomaly,
    /// The event: its place, the problem, and the remedy.
    pub event: Event,
    /// `true` while it holds.
    pub is_active: bool,
}

/// Findings of detectors in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Anomalies {
    /// The newest, the newest last; those that hold among them.
    found: VecDeque<FoundAnomaly>,
    /// The number of events by detector.
    pub counts: BTreeMap<String, u64>,
}

impl FoundAnomaly {
    /// The problem and its remedy.
    pub fn message(&self) -> &str {
        self.event.message.as_deref().unwrap_or_default()
    }
}

impl Anomalies {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        match &event.payload {
            Payload::Anomaly(anomaly) if anomaly.state == AnomalyState::Onset => {
                *self.counts.entry(anomaly.rule.clone()).or_default() += 1;
                if self.found.len() == KEPT {
                    let oldest = self.found.iter().position(|found| !found.is_active).unwrap_or_default();
                    self.found.remove(oldest);
                }
                self.found.push_back(FoundAnomaly {
                    data: anomaly.clone(),
                    event: event.clone(),
                    is_active: true,
                });
            }
            Payload::Anomaly(anomaly) => {
                let is_it = |found: &FoundAnomaly| {
                    (&found.data.rule, found.event.env, found.event.slot, &found.data.head)
                        == (&anomaly.rule, event.env, event.slot, &anomaly.head)
                };
                self.clear(is_it);
            }
            // Findings about an env end with its episode.
            Payload::EpisodeFinished(_) => {
                self.clear(|found| found.event.env.is_some() && found.event.env == event.env)
            }
            Payload::RunFinished(_) => self.clear(|_| true),
            _ => {}
        }
    }

    fn clear(&mut self, is_over: impl Fn(&FoundAnomaly) -> bool) {
        let over = self.found.iter_mut().filter(|found| is_over(found));
        over.for_each(|found| found.is_active = false);
    }

    /// Findings that hold, the worst first, of equals the newest.
    pub fn active(&self) -> Vec<&FoundAnomaly> {
        let mut active: Vec<&FoundAnomaly> = self.found.iter().rev().filter(|found| found.is_active).collect();
        active.sort_by_key(|found| std::cmp::Reverse(found.event.severity));
        active
    }

    /// The newest of all, the newest first.
    pub fn newest(&self) -> impl Iterator<Item = &FoundAnomaly> {
        self.found.iter().rev()
    }
}

#[cfg(test)]
mod tests;
