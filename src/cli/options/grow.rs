//! Of `grow` and `adapt`.

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
  simic-engine grow --data photos/ --weights my.safetensors --normalise imagenet -o grown/
  simic-engine grow --scenario my.ron --budget 120k --tries 8 --rates 0.01,0.03,0.1 -o grown/

Every row gets the same number of networks and the same compute. Validation chooses a network, and
the test part compares. To continue after Ctrl-C or a kill, repeat the command without --force.";

pub const ADAPT_EXAMPLES: &str = "\
Examples:
  simic-engine adapt --weights my.safetensors --normalise imagenet --data new/ -o adapted/
  simic-engine adapt --weights adapted/ --data newer/ --domain night -o both/
  simic-engine adapt --weights my.safetensors --normalise 0..1 --data new/ --budget 0.3x -o adapted/

Cross-validation over all images chooses rate and size. To continue after Ctrl-C or a kill, repeat
the command without --force.";

/// A network, if one is given, what it is to read, and where the result goes.
#[derive(Clone, Debug, Args)]
pub struct NetworkOptions {
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
    /// How pixels are read, which weights ask for: imagenet, 0..1, means and deviations M,S, or a card.json or kept network.
    #[arg(long, value_name = "HOW")]
    pub normalise: Option<String>,
    /// Learning rates, of which each row takes the one that judges it best.
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = within(FloatRange(Excluded(0.0), Unbounded)))]
    pub rates: Vec<f64>,
    /// Same as --set run.seed=…
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Data that the given network was trained on: how it reads them now.
    #[arg(long, value_name = "PATH")]
    pub old: Option<PathBuf>,
    /// Set a field of the scenario; may be given often.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Folder for the result; what is played until then is kept there.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Begin again: all that the folder holds is removed.
    #[arg(long)]
    pub force: bool,
}

#[derive(Clone, Debug, Args)]
pub struct GrowOptions {
    #[command(flatten)]
    pub network: NetworkOptions,
    /// A trained network: weights of the host with any head, or a kept network.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
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
    /// Which network is written: the best, or the grown one.
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "best|grown"
    )]
    pub keep: Keep,
}

#[derive(Clone, Debug, Args)]
pub struct AdaptOptions {
    #[command(flatten)]
    pub network: NetworkOptions,
    /// The trained network, which stays as it is: weights of a host with any head, a kept network, or the folder of an earlier result.
    #[arg(long, value_name = "FILE")]
    pub weights: PathBuf,
    /// Name of the new domain [default: the data's].
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,
    /// The most that may be added, in sizes of the given network, e.g. 0.3x.
    #[arg(long, value_name = "SHARE", default_value = "0.8x", value_parser = share)]
    pub budget: f64,
}

/// `0.3x`.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
    let is_valid = |share: &f64| share.is_finite() && *share > 0.0;
    number
        .filter(is_valid)
        .ok_or_else(|| "valid: a number above 0 and an x, e.g. 0.3x".into())
}
