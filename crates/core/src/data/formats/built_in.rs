//! Data that need no file: the digits in the program and generated images, in the form that files are read into.

use super::array::Array;
use super::{Found, arrays, idx};
use crate::data::part::{Part, Pool};
use crate::data::shape::Shape;
use crate::data::synth;
use crate::data::{DataError, digits};
use crate::scenario::SynthImages;

/// The digits, as one pool.
///
/// # Errors
/// None but a damaged program's.
pub fn digits() -> Result<Found, DataError> {
    let read = |bytes: &'static [u8]| Array::read("digits", bytes, idx::head);
    let pair = [read(digits::IMAGES)?, read(digits::LABELS)?];
    arrays::found("digits", [Some(pair), None, None], &mut idx::stated(digits::SCALE))
}

/// Generated images, which come in three parts.
///
/// # Errors
/// Too little memory for them.
pub fn synth_images(params: &SynthImages) -> Result<Found, DataError> {
    let pool = |part: u64, count: usize| -> Result<Pool, DataError> {
        let shape = Shape {
            channels: params.channels,
            height: params.height,
            width: params.width,
        };
        let images = synth::generate(params, part, count)?.into();
        let labels = (0..count).map(|index| synth::label(params, index)).collect();
        Ok(Pool::of(shape, Part { images, labels }))
    };
    let train = pool(0, params.train)?;
    Ok(Found {
        classes: usize::try_from(params.classes).ok(),
        val: Some(pool(1, params.val)?),
        test: Some(pool(2, params.test)?),
        ..Found::of("synth_images", synth::SCALE, train)
    })
}
