//! Of `grow`.

use std::ops::Bound::{Excluded, Unbounded};
use std::path::PathBuf;

use clap::Args;

use super::data::ArrayOptions;
use super::within;
use crate::grow::{Budget, Keep};
use crate::schema::FloatRange;

pub const GROW_EXAMPLES: &str = "\
Examples:
  simic-engine grow --data photos/ --host resnet20 --budget 2x -o grown/
  simic-engine grow --data photos/ --weights my.safetensors --normalise imagenet --freeze -o grown/
  simic-engine grow --scenario my.ron --budget 120k --tries 8 --rates 0.01,0.03,0.1 -o grown/

All rows have as many networks of as much compute each, chosen by validation and compared on the
test part. After Ctrl-C or a kill the same command, without --force, continues.";

#[derive(Clone, Debug, Args)]
pub struct GrowOptions {
    /// Images in folders or arrays, or a text, as `data check` reads them.
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "scenario",
        conflicts_with = "scenario"
    )]
    pub data: Option<PathBuf>,
    /// Labels, where they are in a file of their own.
    #[arg(long, value_name = "FILE", requires = "data")]
    pub labels: Option<PathBuf>,
    #[command(flatten)]
    pub arrays: ArrayOptions,
    /// A scenario whose task is taken, in place of --data.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["layout", "scale"])]
    pub scenario: Option<PathBuf>,
    /// A family (cnn, resnet, vgg), a known host, or RON [default: the task's].
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// A trained network: weights of the host with any head, or a kept network.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// How pixels are read, which weights ask for: imagenet, 0..1, means and deviations M,S, or a card.json or kept network.
    #[arg(long, value_name = "HOW")]
    pub normalise: Option<String>,
    /// The trained network stays as it is: seeds alone learn.
    #[arg(long, requires = "weights")]
    pub freeze: bool,
    /// The most that it may have: 2x, 120k or 1.5M parameters, or multiply-accumulates, e.g. 2xmacs.
    #[arg(long, value_name = "AMOUNT", default_value = "2x")]
    pub budget: Budget,
    /// Folder of a saved policy that decides what grows, not blind schedules.
    #[arg(long, value_name = "DIR")]
    pub policy: Option<PathBuf>,
    /// Networks of a planting; others have as many as all of them.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub tries: u16,
    /// Steps of the grown network; others by compute [default: the task's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub steps: Option<u32>,
    /// Learning rates, of which each row takes the one that is best on validation [default: the task's].
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = within(FloatRange(Excluded(0.0), Unbounded)))]
    pub rates: Vec<f64>,
    /// Same as --set run.seed=…
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Data that the given network was trained on: what it still reads of them.
    #[arg(long, value_name = "PATH")]
    pub old: Option<PathBuf>,
    /// Set a field of the scenario; may be given often.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Which network is written: the best, or the grown one.
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "best|grown"
    )]
    pub keep: Keep,
    /// Folder for the result; what is played until then is kept there.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Begin again: all that the folder holds is removed.
    #[arg(long)]
    pub force: bool,
}
