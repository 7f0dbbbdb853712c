//! Of `data`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::data::{Format, Known};
use crate::scenario::{ArrayLayout, TokenFormat};

#[derive(Clone, Debug, Subcommand)]
pub enum DataCommand {
    /// Read a data set: what it is, how many images of which class or tokens, or what is wrong and where.
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
  simic-engine data check train.bin --format tokens --vocab 50257

Exit code 2: it cannot be loaded; standard error says why.";

#[derive(Clone, Debug, Default, Args)]
pub struct CheckOptions {
    /// Archive, file or folder.
    pub path: PathBuf,
    /// Labels, where they are in a file of their own.
    pub labels: Option<PathBuf>,
    /// cifar10, cifar100, idx, image-folder, npy, npz, text, tokens (llm.c's, or 16 bits each) or tokens32 [default: guessed].
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORMAT")]
    pub format: Option<FormatName>,
    /// Sizes of arrays: images, then rows, columns and channels (nhwc), or channels first [default: guessed].
    #[arg(long, value_enum, hide_possible_values = true, value_name = "nhwc|nchw")]
    pub layout: Option<LayoutName>,
    /// Pixel value that means 1.0 [default: 255, or 1 for floats none of which is above it].
    #[arg(long, value_name = "VALUE", value_parser = positive)]
    pub scale: Option<f64>,
    /// Different tokens of a text, each below it [default: 65536].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(2..=65_536))]
    pub vocab: Option<i64>,
}

impl CheckOptions {
    pub fn known(&self) -> Known {
        Known {
            format: self.format.map(Into::into),
            layout: self.layout.map(Into::into),
            scale: self.scale,
            vocab: self.vocab,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    Cifar10,
    Cifar100,
    Idx,
    ImageFolder,
    Npy,
    Npz,
    Text,
    Tokens,
    Tokens32,
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
            FormatName::Text => Self::Text,
            FormatName::Tokens => Self::Tokens(TokenFormat::Auto),
            FormatName::Tokens32 => Self::Tokens(TokenFormat::U32),
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
