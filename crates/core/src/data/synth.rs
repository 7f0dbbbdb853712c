//! Procedural images: oriented gratings in soft windows, among distractor gratings of other classes and
//! noise. The class is (orientation, spatial frequency): mean images carry no class information, 1×1 kernels cannot see
//! it, 3×3 kernels with depth can.
//!
//! Every image is a pure integer function of `(parameters, part, index)`: random access, any number of threads, the same
//! bytes on every platform.

use rayon::prelude::*;

use crate::random::{ContentRng, Domain, Draw};
use crate::scenario::SynthImages;

use super::DataError;
use super::part::room_for;

/// Periods of the gratings' two frequencies, in pixels.
const PERIODS: [i64; 2] = [8, 4];
/// Pixel value that means 1.0.
pub const SCALE: f64 = 255.0;

/// `floor(127·sin(2πi/256) + 0.5)` for a quarter turn; the rest follows by symmetry, since no value lies near a rounding
/// boundary.
const QUARTER_SINE: [i64; 65] = [
    0, 3, 6, 9, 12, 16, 19, 22, 25, 28, 31, 34, 37, 40, 43, 46, 49, 51, 54, 57, 60, 63, 65, 68, 71, 73, 76, 78, 81, 83,
    85, 88, 90, 92, 94, 96, 98, 100, 102, 104, 106, 107, 109, 111, 112, 113, 115, 116, 117, 118, 120, 121, 122, 122,
    123, 124, 125, 125, 126, 126, 126, 127, 127, 127, 127,
];

/// One turn of the sine in 256 steps, amplitude 127.
const SINE: [i64; 256] = full_turn();

const fn full_turn() -> [i64; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 128 {
        table[i] = QUARTER_SINE[if i <= 64 { i } else { 128 - i }];
        table[i + 128] = -table[i];
        i += 1;
    }
    table
}

/// Phases are 16 bit: 65536 is a full turn.
const TURN: i64 = 65536;
const PHASE_MASK: i64 = TURN - 1;
/// Sine amplitude × window maximum × unit gain.
const PATCH_SCALE: i64 = 127 * 256 * 256;
/// Standard deviation of the pixel noise: single pixels say little.
const NOISE: i64 = 64;
/// Mean of the sum of four random bytes, and their standard deviation rounded up, which the noise is measured in.
const NOISE_MEAN: i64 = 510;
const NOISE_STD: i64 = 148;
/// Fainter gratings of other classes in each image: a network has to tell them from the brightest one.
const DISTRACTORS: usize = 2;

/// The label of image `index` in any part.
pub fn label(params: &SynthImages, index: usize) -> i64 {
    (index as u64 % params.classes) as i64
}

/// All images of a part (0 train, 1 validation, 2 test), `u8 [n, H, W, C]`, generated in parallel.
///
/// # Errors
/// Too little memory for them.
pub fn generate(params: &SynthImages, part: u64, count: usize) -> Result<Vec<u8>, DataError> {
    let size = params.channels * params.height * params.width;
    let mut pixels = room_for(count, size as u128)?;
    pixels.resize(count * size, 0);
    pixels
        .par_chunks_exact_mut(size)
        .enumerate()
        .for_each(|(index, out)| draw_image(params, part, index, out));
    Ok(pixels)
}

/// Phase advance per column and row, in 1/65536 turns.
fn wave_vector(params: &SynthImages, class: u64) -> (i64, i64) {
    let n_frequencies = if params.classes >= 4 { 2 } else { 1 };
    let n_orientations = params.classes.div_ceil(n_frequencies) as i64;
    let class = class as i64;
    let orientation = class % n_orientations;
    let cycle = TURN / PERIODS[usize::from(class >= n_orientations)];
    let angle = (128 * orientation + n_orientations / 2) / n_orientations;
    (cycle * sine(angle + 64) / 127, cycle * sine(angle) / 127)
}

fn sine(angle: i64) -> i64 {
    SINE[(angle & 255) as usize]
}

/// One grating in its window: the wave times window times amplitude per pixel (zero outside), and its colour.
struct Patch {
    wave: Vec<i64>,
    gains: Vec<i64>,
}

fn draw_patch(params: &SynthImages, rng: &mut ContentRng, class: u64, amplitude: i64) -> Patch {
    let mut draw = |n: usize| rng.below(n as u64) as i64;
    let (height, width) = (params.height, params.width);
    let centre_x = (width / 4) as i64 + draw(width / 2);
    let centre_y = (height / 4) as i64 + draw(height / 2);
    let radius = (height / 4) as i64 + draw(height / 8);
    let phase = draw(TURN as usize);
    let amplitude = amplitude + draw(amplitude as usize);
    let gains = (0..params.channels).map(|_| 64 + draw(192)).collect();

    let (fx, fy) = wave_vector(params, class);
    let radius_squared = radius * radius;
    let mut wave = vec![0; height * width];
    for (position, value) in wave.iter_mut().enumerate() {
        let (x, y) = ((position % width) as i64, (position / width) as i64);
        let distance = (x - centre_x).pow(2) + (y - centre_y).pow(2);
        if distance < radius_squared {
            let window = (radius_squared - distance) * 256 / radius_squared;
            let turn = (fx * x + fy * y + phase) & PHASE_MASK;
            *value = amplitude * window * sine(turn >> 8);
        }
    }
    Patch { wave, gains }
}

/// Writes image `index` of `part` into `out`, channels last.
fn draw_image(params: &SynthImages, part: u64, index: usize, out: &mut [u8]) {
    let stream = [part, index as u64];
    let mut rng = ContentRng::new(params.seed, Domain::ProceduralImage, &stream);
    let target = label(params, index) as u64;
    let backgrounds: Vec<i64> = (0..params.channels).map(|_| 96 + rng.below(64) as i64).collect();
    let mut patches = Vec::with_capacity(1 + DISTRACTORS);
    patches.push(draw_patch(params, &mut rng, target, 48));
    for _ in 0..DISTRACTORS {
        let other = rng.below(params.classes - 1);
        let class = other + u64::from(other >= target);
        patches.push(draw_patch(params, &mut rng, class, 16));
    }

    let mut noise = NoiseHalves::default();
    for (channel, background) in backgrounds.into_iter().enumerate() {
        for position in 0..params.height * params.width {
            let mut value = background;
            for patch in &patches {
                value += patch.gains[channel] * patch.wave[position] / PATCH_SCALE;
            }
            value += (noise.next(&mut rng) - NOISE_MEAN) * NOISE / NOISE_STD;
            out[position * params.channels + channel] = value.clamp(0, 255) as u8;
        }
    }
}

/// Sums of four random bytes, two of them to a draw: the low half first.
#[derive(Default)]
struct NoiseHalves {
    high: Option<u32>,
}

impl NoiseHalves {
    fn next(&mut self, rng: &mut ContentRng) -> i64 {
        let half = self.high.take().unwrap_or_else(|| {
            let word = rng.next_u64();
            self.high = Some((word >> 32) as u32);
            word as u32
        });
        half.to_le_bytes().into_iter().map(i64::from).sum()
    }
}

#[cfg(test)]
pub(crate) mod tests;
