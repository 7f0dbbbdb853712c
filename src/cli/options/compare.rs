//! Of `compare`.

use std::path::PathBuf;

use clap::Args;

use super::one_of;
use crate::compare::Metric;
use crate::compare::statistics::DecisionTest;

#[derive(Clone, Debug, Args)]
pub struct CompareOptions {
    /// Runs and sweeps, by folder or name.
    #[arg(required = true, value_name = "RUN|SWEEP")]
    pub sources: Vec<PathBuf>,
    /// Field of the scenario that tells methods apart; may be given often [default: all that differ, but seeds].
    #[arg(long = "by", value_name = "PATH")]
    pub by: Vec<String>,
    /// What is compared; --list-metrics explains them.
    #[arg(long, value_enum, default_value = "accuracy_minus_rent", hide_possible_values = true)]
    pub metric: Metric,
    /// Say which metrics there are, and stop.
    #[arg(long, exclusive = true)]
    pub list_metrics: bool,
    /// Test that decides; sign flips compare pairs of equal seeds.
    #[arg(
        long,
        value_parser = one_of(&TESTS),
        default_value = "mann-whitney",
        value_name = "mann-whitney|sign-flip",
        hide_possible_values = true
    )]
    pub test: DecisionTest,
    /// Method that the others are compared with [default: all pairs].
    #[arg(long, value_name = "METHOD")]
    pub control: Option<String>,
    /// Probability of a false claim.
    #[arg(long, default_value_t = 0.05, value_parser = fraction)]
    pub alpha: f64,
    /// Difference that matters, in the metric's unit [default: 0.01 of losses, 0.5 of all others].
    #[arg(long, value_parser = not_negative)]
    pub min_effect: Option<f64>,
    /// Write scores.csv and differences.csv into this folder as well.
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Write the comparison as one HTML file as well.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Folder in which runs and sweeps are looked for [default: $SIMIC_ENGINE_RUNS or runs].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What --test names.
const TESTS: [(&str, DecisionTest); 2] = [
    ("mann-whitney", DecisionTest::MannWhitney),
    ("sign-flip", DecisionTest::PairedSignFlip),
];

fn fraction(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    (0.0 < value && value < 1.0)
        .then_some(value)
        .ok_or_else(|| "valid: more than 0, less than 1".into())
}

fn not_negative(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    (value.is_finite() && value >= 0.0)
        .then_some(value)
        .ok_or_else(|| "valid: at least 0".into())
}
