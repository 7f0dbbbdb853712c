//! PNG and JPEG images as pixels of 8 bits, wherever they come from.

use std::any::Any;
use std::io::{BufRead, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::{DynamicImage, ImageDecoder, ImageReader};

use crate::data::shape::Shape;

/// What an image says of itself before its pixels.
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
    let decoder = reader.into_decoder().map_err(|error| error.to_string())?;
    let (width, height) = decoder.dimensions();
    let color = decoder.color_type();
    Ok(Head {
        width,
        height,
        is_coloured: color.has_color(),
        is_deep: color.bytes_per_pixel() > color.channel_count(),
    })
}

/// Writes the pixels of an image of that shape into `out`, gray if it has one channel.
///
/// # Errors
/// What the decoder says; an image of another size, or one with transparent pixels.
pub fn pixels<R: BufRead + Seek>(reader: ImageReader<R>, shape: Shape, out: &mut [u8]) -> Result<(), String> {
    let decoder = reader.into_decoder().map_err(|error| error.to_string())?;
    let image = DynamicImage::from_decoder(decoder).map_err(|error| error.to_string())?;
    if (shape.width, shape.height) != (image.width() as usize, image.height() as usize) {
        return Err("it changed while it was read".into());
    }
    if image.color().has_alpha() && image.to_rgba8().pixels().any(|pixel| pixel.0[3] != u8::MAX) {
        return Err("it has transparent pixels; save it without transparency".into());
    }
    if shape.channels == 1 {
        out.copy_from_slice(&image.into_luma8());
    } else {
        out.copy_from_slice(&image.into_rgb8());
    }
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
