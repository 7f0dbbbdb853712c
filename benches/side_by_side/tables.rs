//! The figures of all plays as tables of at most 100 columns, and as a CSV file.

use std::fmt::Write as _;

use simic_engine::internals::compare::statistics::{Bootstrap, Estimate, Sample, Statistic, estimate, median};

use crate::play::Figures;

/// Which of the two programs played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    First,
    Second,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "against",
        }
    }
}

/// A workload played once by one program.
#[derive(Debug)]
pub struct Play {
    pub workload: &'static str,
    pub pair: u32,
    pub side: Side,
    pub figures: Figures,
}

type Column = fn(&Figures) -> f64;

/// What the tables and the file tell of a play: a heading for people, a name for programs, digits, where it comes from.
const COLUMNS: [(&str, &str, usize, Column); 8] = [
    ("env-steps/s", "env_steps_per_s", 1, Figures::env_steps_per_s),
    ("samples/s", "train_samples_per_s", 0, Figures::train_samples_per_s),
    ("forwards/s", "val_forwards_per_s", 0, Figures::forwards_per_s),
    ("ms/env-step", "ms_per_env_step", 2, Figures::ms_per_env_step),
    ("coalitions", "coalition_ms", 2, |figures| {
        figures.coalition_ms.unwrap_or(f64::NAN)
    }),
    ("update ms", "update_ms", 0, |figures| {
        figures.update_ms.unwrap_or(f64::NAN)
    }),
    ("peak MiB", "peak_rss_mib", 0, |figures| figures.peak_rss_mib),
    ("cpu s", "cpu_s", 1, |figures| figures.cpu_s),
];

/// A row per workload and program: medians over its plays.
pub fn costs(plays: &[Play]) -> String {
    let mut table = String::from("         ");
    for (heading, ..) in COLUMNS {
        _ = write!(table, " {heading:>width$}", width = width(heading));
    }
    for workload in workloads(plays) {
        for side in [Side::First, Side::Second] {
            let figures: Vec<&Figures> = of(plays, workload, side).map(|play| &play.figures).collect();
            if figures.is_empty() {
                continue;
            }
            let label = match side {
                Side::First => workload,
                Side::Second => "  against",
            };
            _ = write!(table, "\n{label:<9}");
            for (heading, _, digits, column) in COLUMNS {
                let value = median(&figures.iter().map(|figures| column(figures)).collect::<Vec<_>>());
                let width = width(heading);
                _ = match value.is_nan() {
                    true => write!(table, " {:>width$}", "-"),
                    false => write!(table, " {value:>width$.digits$}"),
                };
            }
        }
    }
    table
        + "\ncoalitions: ms of an env's validation pass with live seeds; cpu s: of the whole process, start included\n"
}

fn width(heading: &str) -> usize {
    heading.len().max(10)
}

/// A row per workload: how many times faster the first program is, judged by pairs.
pub fn ratios(plays: &[Play]) -> String {
    let mut table = format!(
        "{:<6} {:>5} {:>28} {:>26} {:>18}",
        "", "pairs", "env-steps/s, first/against", "cpu s, against/first", "peak MiB, f/a"
    );
    for workload in workloads(plays) {
        let pairs = |column: Column| -> Vec<f64> {
            let first = of(plays, workload, Side::First);
            let ratio = |play: &Play| {
                let other = of(plays, workload, Side::Second).find(|other| other.pair == play.pair)?;
                Some(column(&play.figures) / column(&other.figures))
            };
            first.filter_map(ratio).collect()
        };
        let speed = pairs(Figures::env_steps_per_s);
        let count = speed.len();
        let cpu = pairs(|figures| 1.0 / figures.cpu_s);
        let memory = pairs(|figures| figures.peak_rss_mib);
        _ = write!(
            table,
            "\n{workload:<6} {count:>5} {:>28} {:>26} {:>18.2}",
            shown(speed),
            shown(cpu),
            median(&memory)
        );
    }
    table + "\nmedian of the pairs' ratios [95 % bootstrap interval]; above 1 the first program is faster\n"
}

fn shown(ratios: Vec<f64>) -> String {
    let Estimate { value, interval } =
        estimate(&Sample::of_numbers(&[ratios]), Statistic::Median, Bootstrap::seeded(0));
    let interval = interval.map_or_else(String::new, |at| format!(" [{:.2}, {:.2}]", at.low, at.high));
    format!("{value:.2}{interval}")
}

/// A line per play.
pub fn csv(plays: &[Play]) -> String {
    let mut text = String::from("workload,pair,side,wall_s");
    for (_, name, ..) in COLUMNS {
        text += ",";
        text += name;
    }
    for play in plays {
        let wall = play.figures.wall_s;
        _ = write!(text, "\n{},{},{},{wall}", play.workload, play.pair, play.side.name());
        for (.., column) in COLUMNS {
            let value = column(&play.figures);
            _ = match value.is_nan() {
                true => write!(text, ","),
                false => write!(text, ",{value}"),
            };
        }
    }
    text + "\n"
}

/// Names in the order in which they were played.
fn workloads(plays: &[Play]) -> Vec<&'static str> {
    let mut names: Vec<_> = plays.iter().map(|play| play.workload).collect();
    names.dedup();
    names
}

fn of<'a>(plays: &'a [Play], workload: &'a str, side: Side) -> impl Iterator<Item = &'a Play> {
    plays
        .iter()
        .filter(move |play| play.workload == workload && play.side == side)
}
