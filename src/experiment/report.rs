//! The report of an experiment: for programs, as remarks, and as tables for people in 80 columns.

use std::fmt::Write;

use serde::Serialize;

use super::analysis::{Analysis, Conclusion, MetricSummary, PairSummary};
use super::outcome::Record;
use crate::compare::Estimate;
use crate::report::{ABSENT, Table};
use crate::scenario::DecisionTest;

/// Characters of a line.
const WIDTH: usize = 80;

/// Raw values with everything that was computed from them: the content of `ab.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What was declared, and what came of it.
    #[serde(flatten)]
    pub record: Record,
    /// What it comes to.
    #[serde(flatten)]
    pub analysis: Analysis,
}

impl From<Record> for Report {
    fn from(record: Record) -> Self {
        let analysis = record.analyse();
        Self { record, analysis }
    }
}

impl Report {
    /// Whether every replicate has ended and none is missing.
    pub fn is_whole(&self) -> bool {
        !self.analysis.stamps.interim && self.analysis.missing.is_empty()
    }

    /// What there is to say, one sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let Analysis { stamps, missing, .. } = &self.analysis;
        let design = &self.record.design;
        let mut remarks: Vec<String> = missing
            .iter()
            .map(|missing| format!("replicate {} is missing: {}", missing.replicate + 1, missing.reason))
            .collect();
        if stamps.same_split {
            remarks.push("same_split: scored by the validation part, which rewards are made of".into());
        }
        if stamps.scaler_confound {
            remarks.push("scaler_confound: each arm trained in fp16 with a loss scale of its own".into());
        }
        for objection in &stamps.objections {
            remarks.push(format!("no valid comparison: {objection}"));
        }
        if stamps.interim {
            remarks.push(format!(
                "interim: {} of {} replicates have ended; no verdict before all have",
                self.record.replicates.len(),
                design.replicates
            ));
        }
        remarks.extend(self.analysis.pairs.iter().filter_map(|pair| self.sentence(pair)));
        remarks
    }

    fn sentence(&self, pair: &PairSummary) -> Option<String> {
        let PairSummary { first, second, .. } = pair;
        let design = &self.record.design;
        Some(match pair.conclusion.as_ref()? {
            Conclusion::Better(better) => {
                let worse = if better == first { second } else { first };
                format!("{better} is better than {worse}")
            }
            Conclusion::Equivalent => format!("{first} and {second} are equivalent, within {}", design.min_effect),
            Conclusion::Inconclusive => format!("{first} and {second}: inconclusive"),
            Conclusion::InsufficientData => format!(
                "{first} and {second}: too few replicates, a verdict takes {}",
                design.decision_test.fewest_trainings()
            ),
        })
    }

    /// Tables and remarks.
    pub fn to_text(&self) -> String {
        let mut text = self.headline();
        let Analysis { primary, pairs, .. } = &self.analysis;
        let split = primary
            .split
            .map_or_else(String::new, |split| format!("; {split} part"));
        _ = write!(
            text,
            "\n{} ({}{split})\n\n{}",
            primary.words,
            primary.metric.name(),
            self.arms().render_within(WIDTH, &[])
        );
        _ = write!(
            text,
            "\n{}\n\n{}",
            self.way_of_deciding(),
            pairs_table(pairs, primary.metric.decimals()).render_within(WIDTH, &[])
        );
        _ = write!(
            text,
            "\nexploratory: interquartile means of what was not declared\n\n{}",
            self.exploratory().render_within(WIDTH, &["test loss", "loss"])
        );
        _ = write!(
            text,
            "\nwhat each training was given\n\n{}",
            self.budgets().render_within(WIDTH, &[])
        );
        let remarks = self.remarks();
        if !remarks.is_empty() {
            text.push('\n');
        }
        for remark in remarks {
            _ = writeln!(text, "{remark}");
        }
        text
    }

    fn headline(&self) -> String {
        let design = &self.record.design;
        let numbers = if design.common_random_numbers {
            "common random numbers"
        } else {
            "random numbers of their own"
        };
        let seeds: Vec<String> = design.eval_seeds.iter().map(|seed| seed.0.to_string()).collect();
        let episodes = design.episodes().first().map_or(0, crate::compare::Episodes::count);
        format!(
            "{} on {}: {} arms, {} replicates, {}\n{} rounds of {} envs x {} steps, {}\nscored by {episodes} episodes ({}) \
             under each evaluation seed: {}\n",
            design.name,
            design.task,
            design.arms.len(),
            design.replicates,
            design.interleave.name(),
            design.rounds,
            design.envs,
            design.steps,
            numbers,
            design.eval_mode.name(),
            seeds.join(", "),
        )
    }

    fn arms(&self) -> Table {
        let mut table = Table::new(&["arm"], &["n", "mean", "sd", "median", "IQM", "95 % interval"]);
        let decimals = self.analysis.primary.metric.decimals();
        for arm in &self.analysis.primary.arms {
            table.push(vec![
                arm.id.clone(),
                arm.scores.len().to_string(),
                number(arm.mean, decimals),
                number(arm.sd, decimals),
                number(arm.median, decimals),
                number(arm.iqm.value, decimals),
                interval(&arm.iqm, decimals),
            ]);
        }
        table
    }

    fn way_of_deciding(&self) -> String {
        let design = &self.record.design;
        let test = match design.decision_test {
            DecisionTest::MannWhitney => "the test of Mann and Whitney",
            DecisionTest::PairedSignFlip => "the sign-flip test of pairs",
        };
        format!(
            "differences of IQMs; p of {test}, corrected by Holm\na verdict takes p < {}, an interval without 0 and a \
             difference of {}",
            design.alpha, design.min_effect
        )
    }

    fn exploratory(&self) -> Table {
        let ids: Vec<String> = self.record.design.arms.iter().map(|arm| arm.id.clone()).collect();
        let metrics = &self.analysis.exploratory;
        let names: Vec<&str> = metrics.iter().map(|metric| short_name(metric)).collect();
        let mut table = Table::new(&["arm"], &names);
        for (index, id) in ids.into_iter().enumerate() {
            let values = metrics
                .iter()
                .map(|metric| number(metric.arms[index].iqm.value, metric.metric.decimals()));
            table.push(std::iter::once(id).chain(values).collect());
        }
        table
    }

    fn budgets(&self) -> Table {
        let mut table = Table::new(&["arm"], &["episodes", "env-steps", "updates"]);
        for arm in &self.analysis.budgets {
            let row = match &arm.budget {
                Some(budget) => [budget.episodes, budget.env_steps, budget.updates].map(|count| count.to_string()),
                None => [ABSENT; 3].map(String::from),
            };
            table.push(std::iter::once(arm.id.clone()).chain(row).collect());
        }
        table
    }
}

fn pairs_table(pairs: &[PairSummary], decimals: usize) -> Table {
    let mut table = Table::new(&["pair"], &["ΔIQM", "95 % interval", "p", "corrected", "A12"]);
    for pair in pairs {
        let name = format!("{} - {}", pair.first, pair.second);
        table.push(vec![
            name,
            pair.difference
                .as_ref()
                .map_or_else(|| ABSENT.into(), |difference| signed(difference.value, decimals)),
            pair.difference
                .as_ref()
                .map_or_else(|| ABSENT.into(), |difference| interval(difference, decimals)),
            probability(pair.p),
            probability(pair.adjusted_p),
            number(pair.a12, 2),
        ]);
    }
    table
}

/// As head of a column.
fn short_name(metric: &MetricSummary) -> &'static str {
    use crate::scenario::Metric;
    match metric.metric {
        Metric::AccuracyMinusRent => "less rent",
        Metric::Accuracy => "val",
        Metric::CommittedAccuracy => "committed",
        Metric::TestAccuracy => "test",
        Metric::Loss => "loss",
        Metric::TestLoss => "test loss",
        Metric::ParamRatio => "size",
        Metric::Gmacs => "gmacs",
        Metric::Rollbacks => "rollbacks",
        Metric::CurveArea => "curve",
    }
}

fn number(value: f64, decimals: usize) -> String {
    if value.is_finite() {
        format!("{value:.decimals$}")
    } else {
        ABSENT.into()
    }
}

fn signed(value: f64, decimals: usize) -> String {
    if value.is_finite() {
        format!("{value:+.decimals$}")
    } else {
        ABSENT.into()
    }
}

fn probability(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.4}")
    } else {
        ABSENT.into()
    }
}

/// `51.20 … 53.85`
fn interval(estimate: &Estimate, decimals: usize) -> String {
    estimate.interval.map_or_else(
        || ABSENT.into(),
        |interval| format!("{:.decimals$} … {:.decimals$}", interval.low, interval.high),
    )
}

#[cfg(test)]
mod tests;
