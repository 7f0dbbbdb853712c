//! The images to adapt to, dealt into folds. Networks that haven't learnt from a fold judge it.

use std::sync::Arc;

use crate::data::{DataError, DataSet, Part, TaskData};
use crate::grow::GrowError;
use crate::keep::TestPart;

/// Folds of a cross-validation.
pub const FOLDS: usize = 5;

/// All images to learn from, and their folds.
pub struct Folds {
    whole: DataSet,
    /// The fold of each image.
    fold_of: Vec<usize>,
}

impl Folds {
    /// Deals the training and the validation part into folds one after another, sorted by class.
    ///
    /// # Errors
    /// Texts; fewer than two images a fold; images that cannot be read.
    pub fn new(data: &TaskData) -> Result<Self, GrowError> {
        let TaskData::Images(set) = data else {
            return Err(GrowError::Refused(
                "only networks that read images can be adapted".into(),
            ));
        };
        let all = joined([&set.train, &set.val])?;
        if all.len() < 2 * FOLDS {
            let (found, least) = (all.len(), 2 * FOLDS);
            let why = format!("{found} images to learn from; at least {least} are needed");
            return Err(GrowError::Refused(why));
        }
        let mut by_class: Vec<usize> = (0..all.len()).collect();
        by_class.sort_by_key(|&place| all.labels[place]);
        let mut fold_of = vec![0; all.len()];
        for (turn, place) in by_class.into_iter().enumerate() {
            fold_of[place] = turn % FOLDS;
        }
        let whole = DataSet {
            train: Arc::new(all),
            val: Part::default(),
            ..(**set).clone()
        };
        Ok(Self { whole, fold_of })
    }

    /// Images to learn from.
    pub fn len(&self) -> usize {
        self.fold_of.len()
    }

    /// The smallest number of images from which a network of a fold learns.
    pub fn least(&self) -> usize {
        let sizes = (0..FOLDS).map(|fold| self.fold_of.iter().filter(|other| **other != fold).count());
        sizes.min().unwrap_or(0)
    }

    /// All images but those of `fold`, or all, and the `replayed` ones. A single image validates, since the last network
    /// is kept in any case.
    ///
    /// # Errors
    /// No memory.
    pub fn data(&self, fold: Option<usize>, replayed: Option<&Part>) -> Result<TaskData, DataError> {
        Ok(TaskData::Images(Box::new(DataSet {
            train: Arc::new(self.learnt_part(fold, replayed)?),
            val: chosen(&self.whole.train, &[0])?,
            test: match fold {
                Some(_) => Part::default(),
                None => self.whole.test.clone(),
            },
            ..self.whole.clone()
        })))
    }

    /// The images of [`Self::data`] that a network learns from.
    ///
    /// # Errors
    /// No memory.
    pub fn learnt(&self, fold: Option<usize>, replayed: Option<&Part>) -> Result<Option<TestPart>, DataError> {
        self.as_test(self.learnt_part(fold, replayed)?)
    }

    /// The images that judge a network of `fold`.
    ///
    /// # Errors
    /// No memory.
    pub fn judges(&self, fold: usize) -> Result<Option<TestPart>, DataError> {
        self.as_test(self.chosen(|other| other == fold)?)
    }

    fn as_test(&self, test: Part) -> Result<Option<TestPart>, DataError> {
        TestPart::of(&TaskData::Images(Box::new(DataSet {
            test,
            ..self.whole.clone()
        })))
    }

    fn learnt_part(&self, fold: Option<usize>, replayed: Option<&Part>) -> Result<Part, DataError> {
        let learnt = self.chosen(|other| Some(other) != fold)?;
        match replayed {
            Some(old) => joined([&learnt, old]),
            None => Ok(learnt),
        }
    }

    /// The images of the folds that are `wanted`.
    fn chosen(&self, wanted: impl Fn(usize) -> bool) -> Result<Part, DataError> {
        let places = (0..self.len()).filter(|&place| wanted(self.fold_of[place]));
        chosen(&self.whole.train, &places.collect::<Vec<_>>())
    }
}

/// `count` images of a part, at even distances: files often have them class by class.
///
/// # Errors
/// Images that cannot be read.
pub fn spread(part: &Part, count: usize) -> Result<Part, DataError> {
    let count = count.min(part.len());
    chosen(
        part,
        &(0..count).map(|index| index * part.len() / count).collect::<Vec<_>>(),
    )
}

fn chosen(part: &Part, places: &[usize]) -> Result<Part, DataError> {
    let (mut scratch, mut pixels) = (Vec::new(), Vec::new());
    for &place in places {
        pixels.extend_from_slice(part.image(place, &mut scratch)?);
    }
    Ok(Part {
        images: pixels.into(),
        labels: places.iter().map(|&place| part.labels[place]).collect(),
    })
}

fn joined(parts: [&Part; 2]) -> Result<Part, DataError> {
    let mut pixels = Vec::new();
    for part in parts {
        part.for_each_image(|image| pixels.extend_from_slice(image))?;
    }
    Ok(Part {
        images: pixels.into(),
        labels: parts.iter().flat_map(|part| part.labels.iter().copied()).collect(),
    })
}

#[cfg(test)]
mod tests;
