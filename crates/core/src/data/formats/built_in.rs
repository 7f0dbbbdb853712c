//! Data that need no file: the digits in the program and generated images, in the form that files are read into.

use super::Found;
use crate::data::part::{Part, Pool};
use crate::data::shape::Shape;
use crate::data::synth::{self, SynthPart};
use crate::data::{DataError, digits, idx};
use crate::scenario::SynthImages;

/// The digits; one pool.
///
/// # Errors
/// None but a damaged program's.
pub fn digits() -> Result<Found, DataError> {
    Ok(Found {
        format: "digits".into(),
        scale: digits::SCALE,
        classes: None,
        class_names: Vec::new(),
        train: idx::labelled(idx::read_images("digits", digits::IMAGES)?, ("digits", digits::LABELS))?,
        val: None,
        test: None,
        notes: Vec::new(),
    })
}

/// Generated images, which come in three parts.
///
/// # Errors
/// `OutOfMemory`.
pub fn synth_images(params: &SynthImages) -> Result<Found, DataError> {
    let pool = |part: SynthPart, count: usize| -> Result<Pool, DataError> {
        Ok(Pool {
            shape: Shape {
                channels: params.channels,
                height: params.height,
                width: params.width,
            },
            part: Part {
                images: synth::generate(params, part, count)?.into(),
                labels: (0..count).map(|index| synth::label(params, index)).collect(),
            },
            labels_at: None,
        })
    };
    Ok(Found {
        format: "synth_images".into(),
        scale: synth::SCALE,
        classes: usize::try_from(params.classes).ok(),
        class_names: Vec::new(),
        train: pool(SynthPart::Train, params.train)?,
        val: Some(pool(SynthPart::Val, params.val)?),
        test: Some(pool(SynthPart::Test, params.test)?),
        notes: Vec::new(),
    })
}
