//! Options of `grow` and `adapt`.

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

All rows get the same number of networks with the same compute. Networks are chosen by validation
and compared on the test part. After Ctrl-C or a kill, the same command without --force continues.";

pub const ADAPT_EXAMPLES: &str = "\
Examples:
  simic-engine adapt --weights my.safetensors --normalise imagenet --data new/ -o adapted/
  simic-engine adapt --weights adapted/ --data newer/ --domain night -o both/
  simic-engine adapt --weights my.safetensors --normalise 0..1 --data new/ --budget 0.3x -o adapted/

Rate and size are chosen by cross-validation over all images. After Ctrl-C or a kill, the same
command without --force continues.";

/// The given network, if any, the data to read, and the place of the result.
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
    /// Labels, if they are in a separate file.
    #[arg(long, value_name = "FILE", requires = "data")]
    pub labels: Option<PathBuf>,
    #[command(flatten)]
    pub arrays: ArrayOptions,
    /// Scenario whose task is used instead of --data.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["layout", "scale"])]
    pub scenario: Option<PathBuf>,
    /// Family (cnn, resnet, vgg), known host, or RON [default: the task's].
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Normalisation that the weights require: imagenet, 0..1, means and deviations M,S, or a card.json or kept network.
    #[arg(long, value_name = "HOW")]
    pub normalise: Option<String>,
    /// Learning rates to try; each row uses the best one for it.
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = within(FloatRange(Excluded(0.0), Unbounded)))]
    pub rates: Vec<f64>,
    /// Same as --set run.seed=…
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Data that the given network was trained on, to measure it there too.
    #[arg(long, value_name = "PATH")]
    pub old: Option<PathBuf>,
    /// Set a field of the scenario; can be repeated.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub sets: Vec<String>,
    /// Folder for the result; it keeps finished trainings until then.
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Start again, and remove everything in the folder.
    #[arg(long)]
    pub force: bool,
}

#[derive(Clone, Debug, Args)]
pub struct GrowOptions {
    #[command(flatten)]
    pub network: NetworkOptions,
    /// Trained network: weights of the host with any head, or a kept network.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Largest size of the network: 2x, 120k or 1.5M parameters, or multiply-accumulates, e.g. 2xmacs.
    #[arg(long, value_name = "AMOUNT", default_value = "2x")]
    pub budget: Budget,
    /// Folder of a saved policy that plants, instead of blind schedules.
    #[arg(long, value_name = "DIR")]
    pub policy: Option<PathBuf>,
    /// Networks per planting; each other row gets as many in total.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub tries: u16,
    /// Steps of the grown network; others get its compute [default: the task's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub steps: Option<u32>,
    /// Network to write: the best, or the grown one.
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
    /// Trained network, which stays unchanged: weights of a host with any head, a kept network, or the folder of an earlier
    /// result.
    #[arg(long, value_name = "FILE")]
    pub weights: PathBuf,
    /// Name of the new domain [default: the data's].
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,
    /// Largest addition, as a multiple of the given network's size, e.g. 0.3x.
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
