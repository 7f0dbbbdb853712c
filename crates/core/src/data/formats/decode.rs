//! PNG and JPEG images as pixels of 8 bits, from any source.

use std::any::Any;
use std::io::{BufRead, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageReader};

use crate::data::shape::Shape;

/// What an image says of itself before its pixels; width and height as it is looked at, not as it is stored.
pub struct Head {
    pub width: u32,
    pub height: u32,
    pub is_coloured: bool,
    /// It has more than 8 bits a channel.
    pub is_deep: bool,
}

/// Reads the head of an image whose format is known.
///
/// # Errors
/// What the decoder says.
pub fn head<R: BufRead + Seek>(reader: ImageReader<R>) -> Result<Head, String> {
    let mut decoder = reader.into_decoder().map_err(|error| error.to_string())?;
    let (mut width, mut height) = decoder.dimensions();
    if is_on_its_side(decoder.orientation().map_err(|error| error.to_string())?) {
        (width, height) = (height, width);
    }
    let color = decoder.color_type();
    Ok(Head {
        width,
        height,
        is_coloured: color.has_color(),
        is_deep: color.bytes_per_pixel() > color.channel_count(),
    })
}

fn is_on_its_side(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH
    )
}

/// Writes the pixels of an image into `out`, gray if the shape has one channel. Of an image of another size, the largest
/// square in its centre is scaled to that shape.
///
/// # Errors
/// What the decoder says; an image with transparent pixels.
pub fn pixels<R: BufRead + Seek>(reader: ImageReader<R>, shape: Shape, out: &mut [u8]) -> Result<(), String> {
    let mut decoder = reader.into_decoder().map_err(|error| error.to_string())?;
    let orientation = decoder.orientation().map_err(|error| error.to_string())?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(|error| error.to_string())?;
    image.apply_orientation(orientation);
    if image.color().has_alpha() && image.to_rgba8().pixels().any(|pixel| pixel.0[3] != u8::MAX) {
        return Err("it has transparent pixels; save it without transparency".into());
    }
    let mut image: DynamicImage = if shape.channels == 1 {
        image.into_luma8().into()
    } else {
        image.into_rgb8().into()
    };
    let (width, height) = (image.width(), image.height());
    if (shape.width, shape.height) != (width as usize, height as usize) {
        // Cropped first: a scaled strip could be of any length.
        let side = width.min(height);
        image = image
            .crop_imm((width - side) / 2, (height - side) / 2, side, side)
            .resize_exact(shape.width as u32, shape.height as u32, FilterType::Triangle);
    }
    out.copy_from_slice(image.as_bytes());
    Ok(())
}

/// What `work` panics with: a decoder that fails on a strange file takes neither the other workers nor the process with it.
///
/// # Errors
/// The panic's text.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_text(&*panic))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it gave no reason")
        .into()
}
