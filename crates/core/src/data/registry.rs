//! Data sets that applications bring, by name.

use std::error::Error;
use std::path::Path;

use super::{DataError, Part};
use crate::schema::{Registry, Settings, registry};

/// A scenario's request for a data set: `custom(name: "..", settings: (..))`. Its settings have been applied to the set before.
#[derive(Clone, Copy, Debug)]
pub struct DataRequest<'a> {
    /// Folder of the scenario file, in which relative paths are best looked up.
    pub folder: Option<&'a Path>,
}

/// Labelled images, as an application delivers them.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomImages {
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
    /// Channels of an image.
    pub channels: usize,
    /// Pixel value that means 1.0. It is more than 0, and no pixel is above it.
    pub scale: f64,
    /// Part that updates parameters. Parts that are not brought are drawn from it, as `task.split` says.
    pub train: Part,
    /// Part that reward, observation and governor see.
    pub val: Option<Part>,
    /// Part that only the final evaluation reads.
    pub test: Option<Part>,
}

/// A data set of an application's. Functions of a [`DataRequest`] are data sets.
///
/// ```
/// # extern crate simic_core as simic_engine;
/// use std::sync::Arc;
///
/// use simic_engine::extend::Part;
/// use simic_engine::prelude::{CustomImages, DataRegistry, DataRequest};
///
/// fn halves(_: &DataRequest) -> Result<CustomImages, std::convert::Infallible> {
///     let image = |label: u8| [[label; 32], [1 - label; 32]].concat();
///     Ok(CustomImages {
///         height: 8,
///         width: 8,
///         channels: 1,
///         scale: 1.0,
///         train: Part {
///             images: [0, 1].repeat(100).into_iter().flat_map(image).collect::<Vec<u8>>().into(),
///             labels: [0, 1].repeat(100),
///         },
///         val: None,
///         test: None,
///     })
/// }
///
/// let mut sets = DataRegistry::default();
/// sets.register("halves", "one half is bright", Arc::new(halves));
/// ```
pub trait CustomData: Send + Sync {
    /// Reads or makes the images. Called once at start-up. Labels, shapes and sizes are checked after it. The same
    /// request must yield the same bytes: a run that is resumed asks again, and refuses other data.
    ///
    /// # Errors
    /// Anything that keeps it from doing so. The run ends with the error's text.
    fn load(&self, request: &DataRequest) -> Result<CustomImages, Box<dyn Error + Send + Sync>>;
}

impl<F, E> CustomData for F
where
    F: Fn(&DataRequest) -> Result<CustomImages, E> + Send + Sync,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    fn load(&self, request: &DataRequest) -> Result<CustomImages, Box<dyn Error + Send + Sync>> {
        self(request).map_err(Into::into)
    }
}

registry! {
    /// The data sets that plugins add, by name.
    pub struct DataRegistry(dyn CustomData);
}

impl Default for DataRegistry {
    fn default() -> Self {
        Self(Registry::new("data set"))
    }
}

impl DataRegistry {
    /// Asks the set of that name for its images, with the name that it was registered under.
    ///
    /// # Errors
    /// A name that no set has, or what the set fails with.
    pub(super) fn load(
        &self,
        name: &str,
        settings: &Settings,
        request: &DataRequest,
    ) -> Result<(&str, CustomImages), DataError> {
        let named = self.get(name, settings);
        let (name, data) = named.map_err(|error| DataError::new(error.to_string(), "correct task.data"))?;
        let images = data.load(request).map_err(|cause| {
            let fault = format!("data '{name}': the application could not provide it ({cause})");
            DataError::new(fault, "see task.data.settings")
        })?;
        Ok((name, images))
    }
}

#[cfg(test)]
mod tests;
