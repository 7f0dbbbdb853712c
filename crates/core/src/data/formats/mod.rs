//! Data sets, one file a format. Readers are functions of bytes: what is wrong is reported with file and byte.
//!
//! Each delivers a [`Found`]: the parts that the files make, images as `u8` with channels last, labels as they are.

mod built_in;
pub mod cifar;
pub(super) mod custom;
mod decode;
pub mod idx_files;
pub mod image_folder;
pub mod npy;
pub mod arrays;
mod table;

use std::path::Path;

use super::locate::find;
use super::part::Pool;
use super::shape::Shape;
use super::{DataError, DataRegistry, DataRequest};
use crate::scenario::{DataSource, ParquetTable};
use arrays::Stated;

pub use decode::guarded;

/// What the files of a data set hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// As a scenario calls the format.
    pub format: String,
    /// Pixel value that means 1.0.
    pub scale: f64,
    /// Classes that the format fixes; `None` where only the labels say.
    pub classes: Option<usize>,
    /// In the order of their labels; empty where the files name none.
    pub class_names: Vec<String>,
    /// What is to be split, unless the files bring the other parts too.
    pub train: Pool,
    pub val: Option<Pool>,
    pub test: Option<Pool>,
    /// What is unusual, but no error.
    pub notes: Vec<String>,
}

impl Found {
    /// Of files that bring one part, and neither fix nor name classes.
    fn of(format: &str, scale: f64, train: Pool) -> Self {
        Self {
            format: format.into(),
            scale,
            classes: None,
            class_names: Vec::new(),
            train,
            val: None,
            test: None,
            notes: Vec::new(),
        }
    }

    /// Parts by their names.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &Pool)> {
        let others = [("validation", self.val.as_ref()), ("test", self.test.as_ref())];
        std::iter::once(("train", &self.train)).chain(others.into_iter().filter_map(|(name, part)| Some((name, part?))))
    }

    /// All parts must have images of one shape, and no pixel above the scale.
    ///
    /// # Errors
    /// `UnequalParts`, `PixelOutOfRange`; those of reading images.
    pub fn check_images(&self) -> Result<(), DataError> {
        let scale = self.scale;
        for (name, Pool { part, .. }) in self.parts().filter(|_| scale < f64::from(u8::MAX)) {
            let mut most = 0;
            part.for_each_image(|image| most = image.iter().copied().fold(most, u8::max))?;
            let (value, place) = (f64::from(most), format!("'{}' in the {name} part", self.format));
            if value > scale {
                return Err(DataError::PixelOutOfRange { place, value, scale });
            }
        }
        let expected = self.train.shape;
        match self.parts().find(|(_, pool)| pool.shape != expected) {
            None => Ok(()),
            Some((part, pool)) => Err(DataError::UnequalParts {
                name: self.format.clone(),
                part,
                found: pool.shape.to_string(),
                expected: expected.to_string(),
            }),
        }
    }
}

/// Reads the files of a source, or makes what needs none; `sets` are those of applications.
///
/// # Errors
/// Anything that is wrong with the files.
pub fn read(source: &DataSource, scenario_dir: Option<&Path>, sets: &DataRegistry) -> Result<Found, DataError> {
    let at = |name: &str| find(name, scenario_dir, None);
    let pair = |images: &Option<String>, labels: &Option<String>| match (images, labels) {
        (Some(images), Some(labels)) => Ok(Some([at(images)?, at(labels)?])),
        (None, None) => Ok(None),
        (Some(_), None) => Err(DataError::HalfAPair { missing: "test_labels" }),
        (None, Some(_)) => Err(DataError::HalfAPair { missing: "test_images" }),
    };
    let stated = |layout, scale| Stated {
        layout: Some(layout),
        scale: Some(scale),
    };
    match source {
        DataSource::Digits => built_in::digits(),
        DataSource::SynthImages(params) => built_in::synth_images(params),
        DataSource::Cifar10 { path } => cifar::CIFAR10.read(&find(path, scenario_dir, Some(cifar::ORIGIN))?),
        DataSource::Cifar100 { path } => cifar::CIFAR100.read(&find(path, scenario_dir, Some(cifar::ORIGIN))?),
        DataSource::Idx {
            images,
            labels,
            scale,
            test_images,
            test_labels,
        } => {
            let test = pair(test_images, test_labels)?;
            idx_files::read_pairs([at(images)?, at(labels)?], test, *scale)
        }
        DataSource::IdxFolder { path, scale } => {
            idx_files::read_folder(&find(path, scenario_dir, Some(idx_files::ORIGIN))?, *scale)
        }
        DataSource::ImageFolder { path, size } => image_folder::read(&at(path)?, *size),
        DataSource::Npy {
            images,
            labels,
            layout,
            scale,
            test_images,
            test_labels,
        } => {
            let test = pair(test_images, test_labels)?;
            arrays::read_pairs([at(images)?, at(labels)?], test, &mut stated(*layout, *scale))
        }
        DataSource::Parquet(table) => read_table(table, scenario_dir),
        DataSource::Custom { name, settings } => {
            let request = DataRequest { folder: scenario_dir };
            let (name, images) = sets.load(name, settings, &request)?;
            custom::found(name, images)
        }
        DataSource::SynthTokens(_) | DataSource::Text(_) | DataSource::TokenFiles(_) => Err(DataError::TextForImages),
        DataSource::Npz { path, layout, scale } => arrays::read_archive(&at(path)?, &mut stated(*layout, *scale)),
    }
}

/// Finds the files of a table and what they hold.
fn read_table(from: &ParquetTable, scenario_dir: Option<&Path>) -> Result<Found, DataError> {
    let at = |name: &str| find(name, scenario_dir, None);
    let columns = table::Columns {
        image: &from.image,
        label: &from.label,
        shape: from.shape.map(|shape| Shape {
            channels: shape.channels,
            height: shape.height,
            width: shape.width,
        }),
    };
    let test = from.test_path.as_deref().map(at).transpose()?;
    table::read(&at(&from.path)?, test, columns)
}
