//! Settings of a task that follow from your own images: for scenarios that leave them out, and for `init`, which writes them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::dataset::check_classes;
use super::survey::{Survey, of};
use super::{DataError, DataRegistry, formats};
use crate::scenario::{
    BatchesPerStep, CnnSpec, DataSource, HostChoice, KnownImages, OwnImages, ResnetSpec, SplitSpec, VggSpec,
};

/// Training images up to which a step is one pass over them. With more it is a part.
const PASS_AT_MOST: usize = 3200;
/// Side of image files that are not square.
const IMAGE_SIDE: usize = 32;
/// Samples of a batch, but of a small set.
const BATCH: usize = 64;

/// The task on the images that `survey` found at `data`, with a host of that family.
///
/// # Errors
/// Images that are not square, except image files, which are cropped.
pub fn own_images(survey: &Survey, mut data: DataSource, family: &str) -> Result<OwnImages, DataError> {
    let &Survey { height, width, .. } = survey;
    let mut side = height;
    if let DataSource::ImageFolder { size, .. } = &mut data {
        side = if height == width { side } else { IMAGE_SIDE };
        *size = Some(side);
    } else if height != width {
        let name = &survey.format;
        return Err(DataError::new(
            format!("data '{name}': images are {height}x{width} pixels, but hosts read squares"),
            "crop or pad them (for arrays, check the layout), or give a folder of image files, which are cropped when \
             they are read",
        ));
    }
    let signed = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    let (in_channels, input_hw) = (signed(survey.channels), signed(side));
    let host = match family {
        "cnn" => Some(HostChoice::Cnn(CnnSpec {
            in_channels,
            input_hw,
            // So that there is something to gain.
            base_channels: 4,
            pool_layers: (side as f64).log2().floor().clamp(0.0, 3.0) as usize,
            ..CnnSpec::default()
        })),
        "resnet" => Some(HostChoice::Resnet(ResnetSpec {
            in_channels,
            input_hw,
            ..ResnetSpec::default()
        })),
        "vgg" => Some(HostChoice::Vgg(VggSpec {
            in_channels,
            input_hw,
            ..VggSpec::default()
        })),
        _ => None,
    };
    let (val_permille, test_permille) = permilles(survey);
    let left = survey.parts.first().map_or(0, |train| train.images) * (1000 - val_permille - test_permille) / 1000;
    Ok(OwnImages {
        data,
        classes: signed(survey.classes.len()),
        host,
        split: SplitSpec {
            seed: 0,
            val_permille: val_permille as u64,
            test_permille: test_permille as u64,
        },
        batch_size: BATCH.min((left / 8).max(1)),
        batches_per_step: match left <= PASS_AT_MOST {
            true => BatchesPerStep::Full,
            false => BatchesPerStep::Count(PASS_AT_MOST / BATCH),
        },
    })
}

/// Shares of the training files, per mille, for validation and test, where the files bring no part of that name.
fn permilles(survey: &Survey) -> (usize, usize) {
    let brings = |part: &str| survey.parts.iter().any(|found| found.part == part);
    match (brings("validation"), brings("test")) {
        (true, _) => (0, 0),
        (false, true) => (150, 0),
        (false, false) => (200, 100),
    }
}

/// Checks that the split that [`own_images`] writes leaves every class something to validate on.
///
/// # Errors
/// The classes that it leaves nothing.
pub fn check_own_images(survey: &Survey) -> Result<(), DataError> {
    let brought = survey.parts.iter().position(|part| part.part == "validation");
    let validated = survey.classes.iter().map(|class| match brought {
        Some(part) => class.images[part],
        None => class.images[0] * permilles(survey).0 / 1000,
    });
    let counts: Vec<usize> = validated.collect();
    let names: Vec<String> = survey.classes.iter().filter_map(|class| class.name.clone()).collect();
    check_classes(&survey.format, "validation", &counts, &names)
}

/// Looks at data where a scenario leaves something to them, once at each: a sweep asks for every trial.
#[derive(Default)]
pub struct ImagesOnDisk {
    sets: DataRegistry,
    seen: Mutex<Vec<(Question, Result<OwnImages, String>)>>,
}

/// Source, folder and family of the host.
type Question = (DataSource, Option<PathBuf>, String);

impl ImagesOnDisk {
    /// `sets` are those of applications.
    pub fn new(sets: &DataRegistry) -> Self {
        Self {
            sets: sets.clone(),
            ..Self::default()
        }
    }
}

impl fmt::Debug for ImagesOnDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ImagesOnDisk")
    }
}

impl KnownImages for ImagesOnDisk {
    fn settle(&self, source: &DataSource, folder: Option<&Path>, family: &str) -> Result<OwnImages, String> {
        let question = (source.clone(), folder.map(PathBuf::from), family.to_owned());
        // A panic while the lock was held can't have left half an entry.
        let mut seen = self.seen.lock().unwrap_or_else(|held| held.into_inner());
        if let Some((_, settled)) = seen.iter().find(|(asked, _)| *asked == question) {
            return settled.clone();
        }
        let found = formats::read(source, folder, &self.sets).and_then(|found| of(&found));
        let settled = found.and_then(|survey| own_images(&survey, source.clone(), family));
        let settled = settled.map_err(|error| error.to_string());
        seen.push((question, settled.clone()));
        settled
    }
}

#[cfg(test)]
mod tests;
