//! The results of each round of two runs: what comparisons between methods are made from.

use std::path::Path;

use serde_json::Value;

use super::{DiffError, Difference, EventPosition, Found, Side, walk};
use crate::compare::TrainingRecord;
use crate::telemetry::{EVENTS_FILE, is_volatile};

/// How many rounds were compared.
pub(super) fn compare(runs: [&Path; 2], found: &mut Found) -> Result<usize, DiffError> {
    let mut records = [TrainingRecord::of_run(runs[0])?, TrainingRecord::of_run(runs[1])?];
    let curves = records.each_mut().map(|record| std::mem::take(&mut record.curve));
    let files = runs.map(|run| run.join(EVENTS_FILE));
    let mut add = |at: EventPosition, left: Option<&Value>, right: Option<&Value>| {
        walk::differing("", left, right, &mut |field, left, right| {
            if !field.split('.').any(is_volatile) {
                let sides = [(&files[0], left), (&files[1], right)];
                let sides = sides.map(|(file, value)| Side::new(file, None, value.cloned()));
                found.add(Difference {
                    at,
                    ..Difference::new(found.kind, field, sides)
                });
            }
            !found.is_full()
        });
    };
    let rounds = curves[0].len().max(curves[1].len());
    for index in 0..rounds {
        let points = curves.each_ref().map(|curve| curve.get(index));
        let values = points.map(|point| point.and_then(|point| serde_json::to_value(point).ok()));
        let at = EventPosition {
            round: points.iter().flatten().next().map(|point| point.round),
            ..EventPosition::default()
        };
        add(at, values[0].as_ref(), values[1].as_ref());
    }
    let [left, right] = records.map(|record| serde_json::to_value(record).ok());
    add(EventPosition::default(), left.as_ref(), right.as_ref());
    Ok(curves[0].len().min(curves[1].len()))
}
