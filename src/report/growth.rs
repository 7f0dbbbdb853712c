//! The effect of growth in a run: its `growth_effect` events, summed up by kind of seed.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::table::Table;
use super::thinned::Thinned;
use super::words::{cell, number};
use crate::growth::SeedStage;
use crate::telemetry::GrowthEffect;
use crate::telemetry::statistics::{mean_and_std, median};

/// Events of a kind that are kept; of more, as many evenly spread.
const KEPT: usize = 2048;

/// Growth events, by the stage that was entered, the blueprint and how the seeds were initialized.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrowthEffects(BTreeMap<(SeedStage, String, &'static str), Thinned<GrowthEffect>>);

/// The effect of the growth events of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrowthSummary {
    /// `GERMINATED` or `COMMITTED`.
    pub entered: &'static str,
    /// Id of the blueprint.
    pub blueprint: String,
    /// How the seeds were initialized.
    pub init: &'static str,
    /// Events that were recorded.
    pub events: u64,
    /// Validation loss of the next step less that of the event's, nats; of the events of which both are known.
    pub loss_change: Option<Change>,
    /// The same of the accuracy, points.
    pub accuracy_change: Option<Change>,
    /// The seed's gradient over its host's, per parameter: medians at the first gradient, one and five steps later.
    pub gradient_ratio: [Option<f64>; 3],
}

/// A mean over events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Arithmetic.
    pub mean: f64,
    /// Of the mean; none of a single event.
    pub standard_error: Option<f64>,
}

impl Change {
    fn of(values: &[f64]) -> Option<Self> {
        let (mean, deviation) = mean_and_std(values)?;
        let others = values.len() - 1;
        Some(Self {
            mean,
            standard_error: (others > 0).then(|| deviation / (others as f64).sqrt()),
        })
    }
}

impl GrowthEffects {
    /// Adds an event.
    pub fn take(&mut self, data: GrowthEffect) {
        let kind = (data.entered, data.blueprint.clone(), data.init.name());
        let events = self.0.entry(kind).or_insert_with(|| Thinned::new(KEPT));
        events.push(data);
    }

    /// One for each kind, germinations first.
    pub fn summaries(&self) -> Vec<GrowthSummary> {
        let summaries = self.0.iter().map(|((entered, blueprint, init), events)| {
            let changes = |of: fn(&GrowthEffect) -> Option<f64>| Change::of(&known(events, of));
            let ratio = |of: fn(&GrowthEffect) -> Option<f64>| median(&known(events, of));
            GrowthSummary {
                entered: entered.name(),
                blueprint: blueprint.clone(),
                init,
                events: events.seen(),
                loss_change: changes(|data| Some(data.after?.loss.0 - data.before.loss.0)),
                accuracy_change: changes(|data| Some(data.after?.accuracy.0 - data.before.accuracy.0)),
                gradient_ratio: [
                    ratio(|data| Some(data.gradient_ratio?.at_first?.0)),
                    ratio(|data| Some(data.gradient_ratio?.after_1?.0)),
                    ratio(|data| Some(data.gradient_ratio?.after_5?.0)),
                ],
            }
        });
        summaries.collect()
    }

    /// As people read it, in lines of at most `width` characters.
    pub fn table(&self, width: usize) -> String {
        if self.0.is_empty() {
            return "No growth was recorded: no seed germinated, or its step was the last one.\n".into();
        }
        let rows = self.summaries().into_iter().map(|summary| {
            let mut row = vec![
                summary.entered.to_lowercase(),
                summary.blueprint,
                summary.init.into(),
                summary.events.to_string(),
                change(summary.loss_change, 3),
                change(summary.accuracy_change, 2),
            ];
            row.extend(summary.gradient_ratio.map(|ratio| number(ratio, 3)));
            row
        });
        let numbers = ["n", "loss", "accuracy", "gradient", "+1 step", "+5 steps"];
        let table = Table::of(&["entered", "blueprint", "init"], &numbers, rows);
        let mut text = table.render_within(width, &["+1 step", "accuracy"]);
        _ = writeln!(
            text,
            "  loss, accuracy: change from the step of the event to the next, in validation,\n  \
             mean ± standard error; gradient: the seed's over its host's, per parameter,\n  \
             in the step in which it has its first, median"
        );
        text
    }
}

/// Numbers that are there and finite.
fn known(events: &Thinned<GrowthEffect>, of: fn(&GrowthEffect) -> Option<f64>) -> Vec<f64> {
    let values = events.iter().filter_map(of);
    values.filter(|value| value.is_finite()).collect()
}

/// `-0.021 ± 0.004`
fn change(change: Option<Change>, decimals: usize) -> String {
    cell(change, |Change { mean, standard_error }| {
        format!("{mean:+.decimals$} ± {}", number(standard_error, decimals))
    })
}

#[cfg(test)]
mod tests;
