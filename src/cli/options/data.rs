//! Of `data`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::data::Format;
use crate::scenario::ArrayLayout;

#[derive(Clone, Debug, Subcommand)]
pub enum DataCommand {
    /// Read a data set: what it is, how many images of which class, or what is wrong and where.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckOptions),
}

const CHECK_EXAMPLES: &str = "\
Examples:
  simic-engine data check cifar-10-binary.tar.gz
  simic-engine data check data/mnist                   a folder with the four IDX files
  simic-engine data check photos/                      class folders of PNG and JPEG files
  simic-engine data check images.npy labels.npy --layout nchw --scale 1
  simic-engine data check set.npz --json

Exit code 2: it cannot be loaded; standard error says why.";

#[derive(Clone, Debug, Args)]
pub struct CheckOptions {
    /// Archive, file or folder.
    pub path: PathBuf,
    /// Labels, where they are in a file of their own.
    pub labels: Option<PathBuf>,
    /// cifar10, cifar100, idx, image-folder, npy or npz [default: guessed].
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORMAT")]
    pub format: Option<FormatName>,
    /// Sizes of arrays: images, then rows, columns and channels (nhwc), or channels first [default: guessed].
    #[arg(long, value_enum, hide_possible_values = true, value_name = "nhwc|nchw")]
    pub layout: Option<LayoutName>,
    /// Pixel value that means 1.0 [default: 255, or 1 for floats none of which is above it].
    #[arg(long, value_name = "VALUE", value_parser = positive)]
    pub scale: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    Cifar10,
    Cifar100,
    Idx,
    ImageFolder,
    Npy,
    Npz,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Cifar10 => Self::Cifar10,
            FormatName::Cifar100 => Self::Cifar100,
            FormatName::Idx => Self::Idx,
            FormatName::ImageFolder => Self::ImageFolder,
            FormatName::Npy => Self::Npy,
            FormatName::Npz => Self::Npz,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayoutName {
    Nhwc,
    Nchw,
}

impl From<LayoutName> for ArrayLayout {
    fn from(name: LayoutName) -> Self {
        match name {
            LayoutName::Nhwc => Self::Nhwc,
            LayoutName::Nchw => Self::Nchw,
        }
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let value = text
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| "valid: a number above 0".into())
}
