//! Images as pixels of 8 bits, from any source: PNG, JPEG, WebP, BMP and GIF, of animations the first frame.

use std::any::Any;
use std::io::{BufRead, Seek};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use rayon::prelude::*;

use crate::data::shape::Shape;

/// Bytes that an image may have when it is decoded: 89 megapixels in colour, more than cameras deliver, and few enough for
/// every thread to hold an image.
const MOST_DECODED: u64 = 256 << 20;

/// Bytes of pixels that are decoded at a time, before they are moved to where they stay; at least an image a thread.
const AT_A_TIME: usize = 64 << 20;
/// Formats that can be decoded.
pub const VALID: &str = "valid: PNG, JPEG, WebP, BMP and GIF files";
/// Note about images that lose depth.
pub const DEEP: &str = "images of more than 8 bits a channel are kept in 8";

/// An image's properties ahead of its pixels. Width and height are those of display, not of storage.
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
/// Errors of the decoder, or an image that is too large to be decoded.
pub fn head<R: BufRead + Seek>(reader: ImageReader<R>) -> Result<Head, String> {
    let mut decoder = reader.into_decoder().map_err(|error| error.to_string())?;
    let (mut width, mut height) = decoder.dimensions();
    let bytes = decoder.total_bytes();
    if bytes > MOST_DECODED {
        return Err(format!(
            "its header claims {width}x{height} pixels, {bytes} bytes when they are decoded; valid: at most {MOST_DECODED}"
        ));
    }
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

/// Channels that all of them have when they are decoded.
pub fn channels(heads: &[Head]) -> usize {
    if heads.iter().any(|head| head.is_coloured) {
        3
    } else {
        1
    }
}

fn is_on_its_side(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH
    )
}

/// The same reader, for an image that is there to its end: the decoders of JPEG and WebP make up what is missing.
fn complete<R: BufRead + Seek>(reader: ImageReader<R>) -> Result<ImageReader<R>, String> {
    let Some(format @ (ImageFormat::Jpeg | ImageFormat::WebP)) = reader.format() else {
        return Ok(reader);
    };
    let mut input = reader.into_inner();
    let mut bytes = Vec::new();
    let read = input.read_to_end(&mut bytes).and_then(|_| input.rewind());
    read.map_err(|error| error.to_string())?;
    match format {
        ImageFormat::Jpeg => check_jpeg(&bytes)?,
        _ => check_webp(&bytes)?,
    }
    Ok(ImageReader::with_format(input, format))
}

/// A WebP says in its header how many bytes follow its first eight.
fn check_webp(bytes: &[u8]) -> Result<(), &'static str> {
    match bytes.get(4..).and_then(|bytes| bytes.first_chunk::<4>()) {
        Some(&size) if bytes.len() as u64 >= 8 + u64::from(u32::from_le_bytes(size)) => Ok(()),
        _ => Err("it is cut short: it has fewer bytes than its header says; copy or save it again"),
    }
}

/// Walks the segments of a JPEG (ITU T.81, annex B) to the marker that ends it. Anything may follow.
fn check_jpeg(bytes: &[u8]) -> Result<(), &'static str> {
    const CUT_SHORT: &str = "it is cut short: the marker that ends a JPEG is missing; copy or save it again";
    const DAMAGED: &str = "it is damaged: its pixels contain an invalid marker; copy or save it again";
    let (mut at, mut has_pixels) = (2, false);
    loop {
        // Compressed pixels lie between segments; a 0xff among them is followed by 0.
        let rest = bytes.get(at..).unwrap_or_default();
        at += rest.iter().position(|&byte| byte == 0xff).ok_or(CUT_SHORT)?;
        match *bytes.get(at + 1).ok_or(CUT_SHORT)? {
            0xff => at += 1,
            0x00 | 0x01 | 0xd0..=0xd8 => at += 2,
            0xd9 => return has_pixels.then_some(()).ok_or(CUT_SHORT),
            // Between scans there are tables and comments, but no second frame and nothing that is reserved.
            0x02..=0xc3 | 0xc5..=0xcf | 0xf0..=0xfd if has_pixels => return Err(DAMAGED),
            marker => {
                has_pixels |= marker == 0xda;
                let length = bytes.get(at + 2..at + 4).ok_or(CUT_SHORT)?;
                at += 2 + usize::from(u16::from_be_bytes([length[0], length[1]]));
            }
        }
    }
}

/// Images that could not be read, by their numbers, in order.
pub type Failures = Vec<(usize, String)>;

/// Results of `work` for each image, computed by all threads.
///
/// # Errors
/// Every image for which it fails. A panic of a decoder counts as a failure.
pub fn each<T: Send>(
    images: Range<usize>,
    work: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, Failures> {
    let attempt = |index| {
        let panicked = |panic: String| Err(format!("the worker that read it panicked: {panic}"));
        guarded(|| work(index)).unwrap_or_else(panicked)
    };
    let outcomes: Vec<Result<T, String>> = images.clone().into_par_iter().map(attempt).collect();
    let (mut made, mut failures) = (Vec::with_capacity(outcomes.len()), Failures::new());
    for (index, outcome) in images.zip(outcomes) {
        match outcome {
            Ok(one) => made.push(one),
            Err(cause) => failures.push((index, cause)),
        }
    }
    failures.is_empty().then_some(made).ok_or(failures)
}

/// Appends the pixels of `count` images to `out`. Headers may claim what their files do not hold: no image takes memory before it
/// is decoded.
///
/// # Errors
/// Every image that cannot be read.
pub fn all<R: BufRead + Seek>(
    count: usize,
    shape: Shape,
    open: impl Fn(usize) -> Result<ImageReader<R>, String> + Sync,
    out: &mut Vec<u8>,
) -> Result<(), Failures> {
    let step = (AT_A_TIME / shape.size().max(1)).max(rayon::current_num_threads());
    let mut failures = Failures::new();
    for first in (0..count).step_by(step) {
        match each(first..count.min(first + step), |index| pixels(open(index)?, shape)) {
            Ok(decoded) => decoded.iter().for_each(|image| out.extend_from_slice(image)),
            Err(more) => failures.extend(more),
        }
    }
    failures.is_empty().then_some(()).ok_or(failures)
}

/// The pixels of an image, gray if the shape has one channel. If an image has another size, the largest square in its centre is
/// scaled to that shape.
///
/// # Errors
/// Errors of the decoder, a JPEG or WebP that is cut short, an image with transparent pixels.
fn pixels<R: BufRead + Seek>(reader: ImageReader<R>, shape: Shape) -> Result<Vec<u8>, String> {
    let mut decoder = complete(reader)?.into_decoder().map_err(|error| error.to_string())?;
    let orientation = decoder.orientation().map_err(|error| error.to_string())?;
    // A frame of a GIF may claim to be larger than the image that it is a part of.
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(decoder.total_bytes());
    decoder.set_limits(limits).map_err(|error| error.to_string())?;
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
    Ok(image.into_bytes())
}

/// Runs `work` and catches its panic: a decoder that fails on a strange file stops neither other workers nor the process.
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
