//! Options of `init` and `data`.

use std::ops::Bound::{Excluded, Unbounded};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{one_of, within};
use crate::data::{Format, Known};
use crate::scenario::{ArrayLayout, TokenFormat};
use crate::schema::FloatRange;

pub const INIT_EXAMPLES: &str = "\
Examples:
  simic-engine init photos/ > photos.ron               class folders of images: PNG, JPEG, WebP …
  simic-engine run photos.ron
  simic-engine init images.npy labels.npy --layout nhwc > arrays.ron
  simic-engine init story.txt > story.ron";

#[derive(Clone, Debug, Subcommand)]
pub enum DataCommand {
    /// Read a data set, and print its kind and its images per class or tokens, or what is wrong and where.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckOptions),
}

pub const CHECK_EXAMPLES: &str = "\
Examples:
  simic-engine data check cifar-10-binary.tar.gz
  simic-engine data check data/mnist                   a folder with the four IDX files
  simic-engine data check photos/                      class folders of images: PNG, JPEG, WebP …
  simic-engine data check images.npy labels.npy --layout nchw --scale 1
  simic-engine data check set.npz --json
  simic-engine data check train.bin --format tokens --vocab 50257

Exit code 2: the data can't be loaded; standard error says why.";

#[derive(Clone, Debug, Default, Args)]
pub struct CheckOptions {
    /// Archive, file or folder.
    pub path: PathBuf,
    /// Labels, if they are in a separate file.
    pub labels: Option<PathBuf>,
    /// cifar10, cifar100, idx, image-folder, npy, npz, text, tokens (llm.c's, or 16 bits each) or tokens32 [default: guessed].
    #[arg(long, value_parser = one_of(&FORMATS), hide_possible_values = true, value_name = "FORMAT")]
    pub format: Option<Format>,
    #[command(flatten)]
    pub arrays: ArrayOptions,
    /// Number of different tokens of a text; each token is less than this [default: 65536].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(2..=65_536))]
    pub vocab: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ArrayOptions {
    /// Dimensions of arrays: images, then rows, columns and channels (nhwc), or channels first (nchw) [default: guessed].
    #[arg(long, value_parser = one_of(&LAYOUTS), hide_possible_values = true, value_name = "nhwc|nchw")]
    pub layout: Option<ArrayLayout>,
    /// Pixel value that stands for 1.0 [default: 255, or 1 for floats up to 1].
    #[arg(long, value_name = "VALUE", value_parser = within(FloatRange(Excluded(0.0), Unbounded)))]
    pub scale: Option<f64>,
}

impl CheckOptions {
    pub fn known(&self) -> Known {
        Known {
            format: self.format,
            layout: self.arrays.layout,
            scale: self.arrays.scale,
            vocab: self.vocab,
        }
    }
}

/// Values of --format.
const FORMATS: [(&str, Format); 9] = [
    ("cifar10", Format::Cifar10),
    ("cifar100", Format::Cifar100),
    ("idx", Format::Idx),
    ("image-folder", Format::ImageFolder),
    ("npy", Format::Npy),
    ("npz", Format::Npz),
    ("text", Format::Text),
    ("tokens", Format::Tokens(TokenFormat::Auto)),
    ("tokens32", Format::Tokens(TokenFormat::U32)),
];
const LAYOUTS: [(&str, ArrayLayout); 2] = [("nhwc", ArrayLayout::Nhwc), ("nchw", ArrayLayout::Nchw)];
