//! The state of every condition, and the events where one begins or ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Detector, Detectors, Place, Reading, Recent};
use crate::telemetry::encoding::Num;
use crate::telemetry::event::{Event, Payload, Severity};
use crate::telemetry::payload::{Anomaly, AnomalyState};

/// The detectors of a run with their states. Without a detector by default.
#[derive(Default)]
pub struct DetectorBank {
    rules: Vec<Rule>,
    recent: Recent,
    /// States by detector, env and place; absent where the condition does not hold.
    states: BTreeMap<(usize, Option<u32>, Place), State>,
}

struct Rule {
    name: String,
    summary: String,
    detector: Arc<Detector>,
}

#[derive(Clone, Copy)]
enum State {
    /// It holds for N readings.
    Pending(u32),
    /// It was reported.
    Active,
}

impl DetectorBank {
    /// Nothing has happened yet.
    pub fn new(detectors: &Detectors) -> Self {
        let summaries = detectors.iter().map(|(_, summary)| summary.to_owned());
        let rules = detectors
            .parts()
            .zip(summaries)
            .map(|((name, detector), summary)| Rule {
                name: name.into(),
                summary,
                detector,
            });
        Self {
            rules: rules.collect(),
            ..Self::default()
        }
    }

    /// Takes the next event of the run. The anomalies that it begins or ends follow it. The end of a run follows all of them.
    pub fn fold(&mut self, event: &Event) -> Vec<Event> {
        if matches!(event.payload, Payload::Anomaly(_) | Payload::RunFinished(_)) {
            return Vec::new();
        }
        let (mut found, states) = (Vec::new(), &mut self.states);
        for (index, rule) in self.rules.iter().enumerate() {
            for reading in (rule.detector.read)(event, &self.recent) {
                let key = (index, event.env, reading.place.clone());
                let next = step(&rule.detector, &reading, states.get(&key).copied());
                let Some((state, change)) = next else {
                    continue;
                };
                match state {
                    Some(state) => _ = states.insert(key, state),
                    None => _ = states.remove(&key),
                }
                found.extend(change.map(|change| rule.anomaly(event, reading, change)));
            }
        }
        self.forget(event);
        self.recent.apply(event);
        found
    }

    /// An episode that is over takes its conditions along, as does a seed that gives its slot to the next.
    fn forget(&mut self, event: &Event) {
        match event.payload {
            Payload::EpisodeFinished(_) => self.states.retain(|(_, env, _), _| *env != event.env),
            Payload::SeedGerminated(_) => self.states.retain(|(_, env, place), _| {
                *env != event.env || event.slot.is_none_or(|slot| *place != Place::Slot(slot))
            }),
            _ => {}
        }
    }
}

/// The state after a reading, and its news; `None` if nothing was measured.
fn step(detector: &Detector, reading: &Reading, state: Option<State>) -> Option<(Option<State>, Option<AnomalyState>)> {
    if reading.value.is_nan() {
        return None;
    }
    let threshold = reading.threshold.unwrap_or(detector.threshold);
    Some(match (detector.comparison.holds(reading.value, threshold), state) {
        (true, Some(State::Active)) => (state, None),
        (true, state) => {
            let hits = 1 + match state {
                Some(State::Pending(hits)) => hits,
                _ => 0,
            };
            if hits >= detector.window {
                (Some(State::Active), Some(AnomalyState::Onset))
            } else {
                (Some(State::Pending(hits)), None)
            }
        }
        (false, Some(State::Active)) => (None, Some(AnomalyState::Cleared)),
        (false, _) => (None, None),
    })
}

impl Rule {
    fn anomaly(&self, cause: &Event, reading: Reading, state: AnomalyState) -> Event {
        let Detector {
            severity,
            remedy,
            threshold,
            ..
        } = &*self.detector;
        let (severity, message) = match state {
            AnomalyState::Onset => (*severity, format!("{}: {remedy}", self.summary)),
            AnomalyState::Cleared => (Severity::Info, format!("no longer: {}", self.summary)),
        };
        let (slot, head) = match reading.place {
            Place::Whole => (cause.slot, None),
            Place::Slot(slot) => (Some(slot), None),
            Place::Head(head) => (None, Some(head)),
        };
        let payload = Anomaly {
            rule: self.name.clone(),
            state,
            value: Num(reading.value),
            threshold: Num(reading.threshold.unwrap_or(*threshold)),
            head,
        };
        Event {
            round: cause.round,
            env: cause.env,
            episode: cause.episode,
            step: cause.step,
            slot,
            seed_id: cause.seed_id.clone().filter(|_| cause.slot == slot),
            ..Event::run(payload).severity(severity).message(message)
        }
    }
}
