//! Data sets, one file a format. Readers are functions of bytes: what is wrong is reported with file and byte.
//!
//! Each delivers a [`Found`]: the parts that the files make, images as `u8` with channels last, labels unchanged.

pub mod array;
pub mod npy;
pub mod arrays;
pub mod idx;
mod built_in;
pub mod cifar;
pub(super) mod custom;
mod decode;
pub mod image_folder;
mod table;

use std::path::Path;

use super::locate::find;
use super::part::Pool;
use super::{DataError, DataRegistry, DataRequest};
use crate::scenario::DataSource;
use arrays::Stated;

pub use decode::guarded;

/// Content of the files of a data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// As a scenario calls the format.
    pub format: String,
    /// Pixel value that means 1.0.
    pub scale: f64,
    /// Classes that the format fixes. `None` if only the labels say.
    pub classes: Option<usize>,
    /// Names in the order of their labels. Empty if the files name none.
    pub class_names: Vec<String>,
    /// The pool to be split, unless the files bring the other parts too.
    pub train: Pool,
    pub val: Option<Pool>,
    pub test: Option<Pool>,
    /// Unusual properties that aren't errors.
    pub notes: Vec<String>,
}

impl Found {
    /// A set of files that bring one part, and neither fix nor name classes.
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
    /// The first part for which that does not hold, or the errors of reading images.
    pub fn check_images(&self) -> Result<(), DataError> {
        let (scale, format, expected) = (self.scale, &self.format, self.train.shape);
        for (name, Pool { part, .. }) in self.parts().filter(|_| scale < f64::from(u8::MAX)) {
            let mut most = 0;
            part.for_each_image(|image| most = image.iter().copied().fold(most, u8::max))?;
            if f64::from(most) > scale {
                return Err(out_of_range(
                    &format!("'{format}' in the {name} part"),
                    most.into(),
                    scale,
                ));
            }
        }
        let Some((part, pool)) = self.parts().find(|(_, pool)| pool.shape != expected) else {
            return Ok(());
        };
        let found = pool.shape;
        let fault = format!("data '{format}': the {part} part has {found}, the training part {expected}");
        Err(DataError::new(fault, "give all parts the same shape"))
    }
}

/// The error that a pixel is above what means 1.0, or below 0.
fn out_of_range(place: &str, value: f64, scale: f64) -> DataError {
    let remedy = match value < 0.0 {
        true => "a pixel can't be negative: undo the normalisation",
        false => "correct it or task.data.scale",
    };
    DataError::new(
        format!("data {place}: the value {value} is outside 0..={scale}"),
        remedy,
    )
}

/// Reads the files of a source, or makes what needs none; `sets` are those of applications.
///
/// # Errors
/// Anything that is wrong with the files.
pub fn read(source: &DataSource, scenario_dir: Option<&Path>, sets: &DataRegistry) -> Result<Found, DataError> {
    let at = |name: &str| find(name, scenario_dir, None);
    let published = |path: &str, origin| find(path, scenario_dir, Some(origin));
    let stated = |layout, scale| Stated {
        layout: Some(layout),
        scale: Some(scale),
    };
    match source {
        DataSource::Digits => built_in::digits(),
        DataSource::SynthImages(params) => built_in::synth_images(params),
        DataSource::Cifar10 { path } => cifar::CIFAR10.read(&published(path, cifar::ORIGIN)?),
        DataSource::Cifar100 { path } => cifar::CIFAR100.read(&published(path, cifar::ORIGIN)?),
        DataSource::Idx { images, labels, scale } => {
            let pair = [at(images)?, at(labels)?];
            arrays::read_pairs("idx", idx::head, pair, None, &mut idx::stated(*scale))
        }
        DataSource::IdxFolder { path, scale } => idx::read_folder(&published(path, idx::ORIGIN)?, *scale),
        DataSource::ImageFolder { path, size } => image_folder::read(&at(path)?, *size),
        DataSource::Npy {
            images,
            labels,
            layout,
            scale,
        } => {
            let pair = [at(images)?, at(labels)?];
            arrays::read_pairs("npy", npy::head, pair, None, &mut stated(*layout, *scale))
        }
        DataSource::Npz { path, layout, scale } => arrays::read_archive(&at(path)?, &mut stated(*layout, *scale)),
        DataSource::Parquet(from) => {
            let test = from.test_path.as_deref().map(at).transpose()?;
            table::read(&at(&from.path)?, test, from)
        }
        DataSource::Custom { name, settings } => {
            let request = DataRequest { folder: scenario_dir };
            let (name, images) = sets.load(name, settings, &request)?;
            custom::found(name, images)
        }
        DataSource::SynthTokens(_) | DataSource::Text(_) | DataSource::TokenFiles(_) => Err(DataError::new(
            "task.data is a text where images are needed",
            "choose a transformer as task.host, or images as task.data",
        )),
    }
}
