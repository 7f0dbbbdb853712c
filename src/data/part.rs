//! Labelled images in host memory: what every reader of a format delivers and every later stage takes.

use super::DataError;

/// Images and labels of one part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// `u8 [n, height, width, channels]`.
    pub images: Vec<u8>,
    /// `i64 [n]`, each in `0..classes`.
    pub labels: Vec<i64>,
}

impl Part {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
}

/// What all images of a set look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub channels: usize,
    pub height: usize,
    pub width: usize,
}

impl Shape {
    /// Bytes of an image.
    pub fn size(self) -> usize {
        self.channels * self.height * self.width
    }

    /// The same for sizes that nobody has checked.
    pub fn bytes(self) -> u128 {
        let sizes = [self.channels, self.height, self.width];
        sizes
            .into_iter()
            .fold(1, |bytes, size| bytes.saturating_mul(size as u128))
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            channels,
            height,
            width,
        } = self;
        write!(f, "{height}x{width} images of {channels} channels")
    }
}

/// Where the labels of a part stand, for errors that are found later than when they were read.
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
    /// `None` where the reader itself has checked the labels, or where they have no bytes of their own.
    pub labels_at: Option<LabelsAt>,
}

impl Pool {
    /// # Errors
    /// `LabelOutOfRange` with file and byte of the first label outside `0..classes`.
    pub fn check_labels(&self, name: &str, classes: i64) -> Result<(), DataError> {
        let labels = &self.part.labels;
        let Some(index) = labels.iter().position(|label| !(0..classes).contains(label)) else {
            return Ok(());
        };
        let at = self.labels_at.as_ref();
        Err(DataError::LabelOutOfRange {
            name: at.map_or_else(|| name.into(), |at| at.file.clone()),
            index,
            byte: at.map(|at| at.first + at.each * index as u64),
            label: labels[index],
            classes,
        })
    }
}

/// Images that are stored plane by plane (`[channels, plane]` each) with the channels of a pixel side by side.
pub fn channels_last(planes: Vec<u8>, channels: usize, plane: usize) -> Vec<u8> {
    if channels <= 1 || plane == 0 {
        return planes;
    }
    let mut pixels = Vec::with_capacity(planes.len());
    for image in planes.chunks_exact(channels * plane) {
        interleave(image, plane, &mut pixels);
    }
    pixels
}

/// Appends one image that is stored plane by plane.
pub fn interleave(image: &[u8], plane: usize, pixels: &mut Vec<u8>) {
    for position in 0..plane {
        pixels.extend(image.iter().skip(position).step_by(plane));
    }
}
