//! The figures of all plays as tables of at most 100 columns, and as a CSV file.

use std::fmt::Write as _;

use simic_engine::internals::compare::statistics::{Bootstrap, Estimate, Sample, Statistic, estimate, median};

use crate::play::Figures;

/// The two programs, as tables and files name them.
pub const SIDES: [&str; 2] = ["first", "against"];

/// A workload played once by one program.
#[derive(Debug)]
pub struct Play {
    pub workload: &'static str,
    pub pair: u32,
    pub side: &'static str,
    pub figures: Figures,
}

type Column = fn(&Figures) -> f64;

/// What the tables and the file tell of a play: a heading for people, a name for programs, digits, where it comes from.
const COLUMNS: [(&str, &str, usize, Column); 8] = [
    ("env-steps/s", "env_steps_per_s", 1, |it| it.env_steps_per_s),
    ("samples/s", "train_samples_per_s", 0, |it| it.train_samples_per_s),
    ("forwards/s", "val_forwards_per_s", 0, |it| it.val_forwards_per_s),
    ("ms/env-step", "ms_per_env_step", 2, |it| it.ms_per_env_step),
    ("coalitions", "coalition_ms", 2, |it| it.coalition_ms),
    ("update ms", "update_ms", 0, |it| it.update_ms),
    ("peak MiB", "peak_rss_mib", 0, |it| it.peak_rss_mib),
    ("cpu s", "cpu_s", 1, |it| it.cpu_s),
];

/// A row per workload and program: medians over its plays.
pub fn costs(plays: &[Play]) -> String {
    let mut table = String::from("         ");
    for (heading, ..) in COLUMNS {
        _ = write!(table, " {heading:>width$}", width = width(heading));
    }
    for workload in workloads(plays) {
        for (side, label) in SIDES.into_iter().zip([workload, "  against"]) {
            let figures: Vec<&Figures> = of(plays, workload, side).map(|play| &play.figures).collect();
            if figures.is_empty() {
                continue;
            }
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
            let ratio = |play: &Play| {
                let other = of(plays, workload, SIDES[1]).find(|other| other.pair == play.pair)?;
                Some(column(&play.figures) / column(&other.figures))
            };
            of(plays, workload, SIDES[0]).filter_map(ratio).collect()
        };
        let speed = pairs(|it| it.env_steps_per_s);
        let count = speed.len();
        let cpu = pairs(|it| 1.0 / it.cpu_s);
        let memory = pairs(|it| it.peak_rss_mib);
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
        _ = write!(text, ",{name}");
    }
    for play in plays {
        let wall = play.figures.wall_s;
        _ = write!(text, "\n{},{},{},{wall}", play.workload, play.pair, play.side);
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

fn of<'a>(plays: &'a [Play], workload: &'a str, side: &'a str) -> impl Iterator<Item = &'a Play> {
    let plays = plays.iter();
    plays.filter(move |play| play.workload == workload && play.side == side)
}
