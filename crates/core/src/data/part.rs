//! Labelled images: what every reader of a format delivers and every later stage takes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::DataError;
use super::records::Records;
use super::shape::Shape;

/// Images and labels of one part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// `u8 [n, height, width, channels]`.
    pub images: Images,
    /// `i64 [n]`, each in `0..classes`.
    pub labels: Vec<i64>,
}

/// The place of a part's images.
#[derive(Clone, Debug, PartialEq)]
pub enum Images {
    /// In memory in the form that is used, one after the other.
    Memory(Vec<u8>),
    /// In their files, from which one is taken whenever it is asked for.
    Files(Records),
}

impl Default for Images {
    fn default() -> Self {
        Self::Memory(Vec::new())
    }
}

impl From<Vec<u8>> for Images {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Memory(bytes)
    }
}

impl Part {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether the part is empty.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The number of samples in each of `classes` classes. All labels are among them.
    pub(super) fn histogram(&self, classes: usize) -> Vec<usize> {
        let mut counts = vec![0; classes];
        for &label in &self.labels {
            counts[label as usize] += 1;
        }
        counts
    }

    /// Returns whether images are read from their files whenever they are asked for.
    pub fn is_in_files(&self) -> bool {
        matches!(&self.images, Images::Files(records) if records.are_in_files())
    }

    /// Bytes of an image, or 0 if there is none.
    pub fn image_bytes(&self) -> usize {
        match &self.images {
            Images::Memory(bytes) => bytes.len().checked_div(self.len()).unwrap_or(0),
            Images::Files(records) => records.image_bytes(),
        }
    }

    /// Image `index`. `scratch` is memory that callers keep for many of them.
    ///
    /// # Errors
    /// A file that has become shorter, or cannot be read.
    ///
    /// # Panics
    /// If there is no such image.
    pub fn image<'a>(&'a self, index: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], DataError> {
        match &self.images {
            Images::Memory(bytes) => {
                let size = self.image_bytes();
                Ok(&bytes[index * size..(index + 1) * size])
            }
            Images::Files(records) => records.read(index, scratch),
        }
    }

    /// Shows all images to `look`, in order, one at a time.
    ///
    /// # Errors
    /// The errors of [`Self::image`].
    pub fn for_each_image(&self, mut look: impl FnMut(&[u8])) -> Result<(), DataError> {
        let mut scratch = Vec::new();
        for index in 0..self.len() {
            look(self.image(index, &mut scratch)?);
        }
        Ok(())
    }

    /// All images, `u8 [n, height, width, channels]`.
    ///
    /// # Errors
    /// The errors of [`Self::image`], or too little memory.
    pub fn pixels(&self) -> Result<Cow<'_, [u8]>, DataError> {
        if let Images::Memory(bytes) = &self.images {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut pixels = room_for(self.len(), self.image_bytes() as u128)?;
        self.for_each_image(|image| pixels.extend_from_slice(image))?;
        Ok(Cow::Owned(pixels))
    }

    /// The same part with its images in memory in the form that is used.
    ///
    /// # Errors
    /// The errors of [`Self::pixels`].
    pub(super) fn in_memory(self) -> Result<Self, DataError> {
        Ok(match self.images {
            Images::Memory(_) => self,
            Images::Files(_) => Self {
                images: self.pixels()?.into_owned().into(),
                labels: self.labels,
            },
        })
    }
}

/// An empty list with room for images of `each` bytes.
///
/// # Errors
/// Too little memory for them.
pub(super) fn room_for(images: usize, each: u128) -> Result<Vec<u8>, DataError> {
    let bytes = each.saturating_mul(images as u128);
    let mut pixels = Vec::new();
    match usize::try_from(bytes).map(|room| pixels.try_reserve_exact(room)) {
        Ok(Ok(())) => Ok(pixels),
        _ => Err(DataError::memory(images, "image", bytes)),
    }
}

/// Images that are there more than once, pixel by pixel: what is measured on one that was trained on is too good.
#[derive(Default)]
pub(super) struct Repeats {
    /// The part and label with which an image was seen first, by half of its hash: there may be millions.
    seen: HashMap<[u8; 16], (&'static str, Option<i64>)>,
    /// Images of the current part that an earlier one has, those that it has itself, and those with another label.
    counts: [usize; 3],
}

impl Repeats {
    /// Looks at the next image of `part`, and its label.
    pub fn see(&mut self, part: &'static str, label: Option<&i64>, image: &[u8]) {
        let half = blake3::hash(image).as_bytes().first_chunk().copied();
        match self.seen.entry(half.unwrap_or_default()) {
            Entry::Vacant(unseen) => _ = unseen.insert((part, label.copied())),
            Entry::Occupied(first) => {
                self.counts[usize::from(first.get().0 == part)] += 1;
                self.counts[2] += usize::from(first.get().1.as_ref() != label);
            }
        }
    }

    /// Ends a part and returns notes about it. `is_divided`: the other parts are still to be drawn from it.
    pub fn end(&mut self, name: &str, part: &str, images: usize, is_divided: bool) -> Vec<String> {
        let [earlier, own, relabelled] = std::mem::take(&mut self.counts);
        let repeated = match is_divided {
            true => (own, "are copies of others in it; a split may put them into other parts"),
            false => (earlier, "are in an earlier part as well"),
        };
        let notes = [repeated, (relabelled, "appeared earlier with another label")].into_iter();
        let notes = notes.filter(|(count, _)| *count > 0);
        notes
            .map(|(count, how)| format!("{name}: {count} of the {images} images of the {part} part {how}"))
            .collect()
    }
}

/// Place of a part's labels in its file, for errors that are found after reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelsAt {
    /// The file, as errors name it.
    pub file: String,
    /// Byte of the first label.
    pub first: u64,
    /// Bytes of a label.
    pub each: u64,
}

/// One part as it lies on disk: not yet split, its labels not yet compared with a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    pub shape: Shape,
    pub part: Part,
    /// `None` if the reader itself has checked the labels, or if they have no bytes in a file.
    pub labels_at: Option<LabelsAt>,
}

impl Pool {
    /// Creates a pool with labels that came with the images.
    pub fn of(shape: Shape, part: Part) -> Self {
        Self {
            shape,
            part,
            labels_at: None,
        }
    }

    /// # Errors
    /// File and byte of the first label outside `0..classes`.
    pub fn check_labels(&self, name: &str, classes: i64) -> Result<(), DataError> {
        let labels = &self.part.labels;
        let Some(index) = labels.iter().position(|label| !(0..classes).contains(label)) else {
            return Ok(());
        };
        let at = self.labels_at.as_ref();
        let byte = at.map(|at| at.first + at.each * index as u64);
        let name = at.map_or(name, |at| at.file.as_str());
        Err(DataError::label(name, index, byte, labels[index], classes))
    }
}
