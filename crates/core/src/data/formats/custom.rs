//! Images that an application brings, in the form that files are read into.

use super::Found;
use crate::data::part::{Part, Pool};
use crate::data::shape::Shape;
use crate::data::{CustomImages, DataError};

/// The images of the application's set `name`, their sizes checked.
///
/// # Errors
/// The part whose sizes are not those that it states.
pub fn found(name: &str, images: CustomImages) -> Result<Found, DataError> {
    let shape = Shape {
        channels: images.channels,
        height: images.height,
        width: images.width,
    };
    let faulty = |part: &str, fault: String| {
        let fault = format!("data '{name}' of the application: the {part} part has {fault}");
        DataError::new(fault, "correct what it returns")
    };
    if !(images.scale.is_finite() && images.scale > 0.0) {
        let fault = format!("a scale of {}; valid: more than 0", images.scale);
        return Err(faulty("train", fault));
    }
    if shape.bytes() == 0 {
        return Err(faulty("train", format!("{shape}, which hold nothing")));
    }
    let pool = |place: &str, part: Part| -> Result<Pool, DataError> {
        let expected = shape.bytes().saturating_mul(part.len() as u128);
        let found = part.pixels()?.len();
        if found as u128 != expected {
            let count = part.len();
            let fault = format!("{found} bytes and {count} labels, where {count} {shape} take {expected} bytes");
            return Err(faulty(place, fault));
        }
        Ok(Pool::of(shape, part))
    };
    let train = pool("train", images.train)?;
    Ok(Found {
        val: images.val.map(|part| pool("validation", part)).transpose()?,
        test: images.test.map(|part| pool("test", part)).transpose()?,
        ..Found::of(name, images.scale, train)
    })
}

#[cfg(test)]
pub(in crate::data) mod tests;
