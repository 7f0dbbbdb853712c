//! `events.jsonl`, and what is made of events.

use std::path::Path;

use clap::ValueEnum;
use proptest::prelude::*;
use proptest::sample::Index;
use simic_engine::internals::compare::{Metric, TrainingRecord};
use simic_engine::internals::report::{WIDTH, summary};
use simic_engine::internals::telemetry::{Event, EventReader, LiveState, ReadError, find_last};

use super::damage::{damaged, damages};
use super::found::{Folder, Whole, harms};
use super::harness::{fuzz, in_bounds, names};

/// One event of each kind, a line each.
pub const EXAMPLES: &str = include_str!("../../crates/core/src/telemetry/examples/events.jsonl");
const FILE: &str = "events.jsonl";

fn header() -> String {
    "{\"type\":\"header\",\"schema\":1}\n".into()
}

/// Everything that a fold of events is asked for.
fn look_at(live: &LiveState) {
    let _ = (live.progress(), live.eta_s(), live.env_steps_per_s());
    let _ = (live.samples_per_s(), live.best_accuracy());
    let _ = (live.reward_terms(), live.updates());
}

fn fold(folder: &Path) -> Result<LiveState, ReadError> {
    let mut live = LiveState::default();
    for event in EventReader::open(folder)? {
        live.apply(&event?);
        look_at(&live);
    }
    Ok(live)
}

#[test]
fn event_files() {
    let folder = Folder::of(vec![Whole::new(FILE, format!("{}{EXAMPLES}", header()).into_bytes())]);
    fold(folder.path()).expect("the whole file can be read");
    fuzz(harms(), |harm| {
        let damaged = folder.damage(&harm);
        if let Err(error) = in_bounds(damaged.bytes, || fold(folder.path()))? {
            names(&error, &damaged.path)?;
        }
        in_bounds(damaged.bytes, || find_last(folder.path(), |event| Some(event.seq)))?.expect("the file is there");
        if let Ok(training) = in_bounds(damaged.bytes, || TrainingRecord::of_run(folder.path()))? {
            for metric in Metric::value_variants() {
                let _ = training.score(*metric);
            }
        }
        Ok(())
    });
}

/// An event of any kind, some of its numbers changed as long as that leaves an event.
pub fn events() -> impl Strategy<Value = Event> {
    (any::<Index>(), damages()).prop_map(|(which, damages)| {
        let lines: Vec<&str> = EXAMPLES.lines().collect();
        let line = which.get(&lines).as_bytes();
        let changed = serde_json::from_slice(&damaged(line, &damages));
        changed.unwrap_or_else(|_| serde_json::from_slice(line).expect("the example is an event"))
    })
}

#[test]
fn what_is_written_of_an_event_is_read_as_the_same_event() {
    fuzz(events(), |event| {
        let text = serde_json::to_string(&event).expect("it can be written");
        let text = format!("{}{text}\n", header());
        let folder = Folder::of(vec![Whole::new(FILE, text.into_bytes())]);
        let read: Result<Vec<Event>, ReadError> = EventReader::open(folder.path()).expect("it is there").collect();
        let read = read.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(read, vec![event]);
        Ok(())
    });
}

#[test]
fn any_events_in_any_order_are_folded() {
    fuzz(prop::collection::vec(events(), 1..40), |events| {
        let mut live = LiveState::default();
        for event in &events {
            live.apply(event);
            look_at(&live);
        }
        let _ = summary(&live, Path::new("runs/drawn"), WIDTH);
        Ok(())
    });
}
