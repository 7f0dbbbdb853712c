use super::*;
use crate::data::dataset::tests::{FIRST_STEP, augmentation, loaded, small_colour_task};
use crate::data::geometry::Crop;
use crate::data::plan::draw_crop;
use crate::data::{DataSet, Readers};
use crate::random::{Domain, Draw, RunRng};
use crate::scenario::{AugmentSpec, DataConfig, Kernels};
use crate::torch::Backend;
use crate::torch::fixtures::{test_backend, test_device, tolerance};

fn small_set() -> (DataSet, FeedArithmetic) {
    let task = small_colour_task();
    let data = loaded(&task);
    let arithmetic = FeedArithmetic::new(&task, data.train.len(), data.val.len(), 1).unwrap();
    (data, arithmetic)
}

/// The definition of cropping, flipping and normalising, pixel by pixel.
fn augmented(data: &DataSet, sample: usize, pad: usize, crop: Crop) -> Vec<f32> {
    let (h, w, c) = (data.shape.height, data.shape.width, data.shape.channels);
    let image = &data.train.pixels().unwrap()[sample * h * w * c..][..h * w * c];
    let mut pixels = Vec::new();
    for channel in 0..c {
        for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
            let column = if crop.is_flipped { w - 1 - x } else { x };
            let source_y = (y + crop.top).checked_sub(pad).filter(|&y| y < h);
            let source_x = (column + crop.left).checked_sub(pad).filter(|&x| x < w);
            let pixel = match (source_y, source_x) {
                (Some(y), Some(x)) => image[(y * w + x) * c + channel],
                _ => 0,
            };
            pixels.push(f32::from(pixel) * data.a[channel] + data.b[channel]);
        }
    }
    pixels
}

/// The definition of cutout on 8x8 images of 3 channels, pixel by pixel.
fn blank_square(pixels: &mut [f32], [row, column]: [i64; 2], side: i64) {
    for (position, value) in (0..64).cycle().zip(pixels) {
        let (down, right) = (position / 8 - row + side / 2, position % 8 - column + side / 2);
        if (0..side).contains(&down) && (0..side).contains(&right) {
            *value = 0.0;
        }
    }
}

/// Two threads that are one batch ahead.
fn readers() -> Readers {
    let config = DataConfig {
        prefetch: 1,
        ..DataConfig::default()
    };
    Readers::new(config).unwrap()
}

fn assert_batches_follow_the_definition(augment: Option<AugmentSpec>, kernels: Kernels, readers: Option<&Readers>) {
    let (data, arithmetic) = small_set();
    let resident = ResidentData::upload(&data, augment, Backend::new(test_device(), kernels), readers).unwrap();
    let mut feed = StepFeed::new(&resident, arithmetic, 5).unwrap();
    let side = augment.and_then(|augment| augment.cutout);
    let mut samples: Vec<usize> = (0..6).collect();
    RunRng::new(42, Domain::DataOrder, &[0, 5, 1]).shuffle(&mut samples);

    feed.begin_step(FIRST_STEP, None).unwrap();

    // Seeds that are created take the first batch once more.
    for batch in [0, 1, 0] {
        let fetched = feed.fetch(batch).unwrap();
        let labels = Vec::<i64>::try_from(&fetched.y).unwrap();
        let mut rng = RunRng::new(42, Domain::Augmentation, &[0, 5, 1, batch as u64]);
        let crops = [(); 3].map(|()| match augment {
            None => (0, Crop::default()),
            Some(augment) => (augment.pad as usize, draw_crop(&mut rng, augment)),
        });
        for (row, (pad, crop)) in crops.into_iter().enumerate() {
            let sample = samples[batch * 3 + row];
            let mut expected = augmented(&data, sample, pad, crop);
            if let Some(side) = side {
                let centre = [(); 2].map(|()| rng.below(8) as i64);
                blank_square(&mut expected, centre, i64::from(side));
            }
            let found = Vec::<f32>::try_from(fetched.x.get(row as i64).contiguous().view(-1)).unwrap();
            assert_eq!(found.len(), expected.len());
            // Elsewhere than on a CPU a product and a sum may be one rounding.
            let is_close = |(found, pixel): (&f32, &f32)| f64::from((found - pixel).abs()) <= tolerance(0.0, 1e-6);
            assert!(found.iter().zip(&expected).all(is_close), "{found:?} and {expected:?}");
            assert_eq!(labels[row], data.train.labels[sample]);
        }
    }
}

#[test]
fn batches_equal_the_definition_bit_by_bit() {
    let augmentations = [
        None,
        Some(augmentation(4, 0.5, None)),
        Some(augmentation(1, 0.0, None)),
        Some(augmentation(0, 0.5, None)),
        Some(augmentation(4, 0.5, Some(4))),
        Some(augmentation(0, 0.0, Some(3))),
        Some(augmentation(1, 0.5, Some(15))),
    ];
    for augment in augmentations {
        for kernels in [Kernels::Own, Kernels::Libtorch] {
            assert_batches_follow_the_definition(augment, kernels, None);
            assert_batches_follow_the_definition(augment, kernels, Some(&readers()));
        }
    }
}

#[test]
fn batches_lie_in_one_kept_channels_last_buffer() {
    let (data, arithmetic) = small_set();
    let resident = ResidentData::upload(&data, None, test_backend(), None).unwrap();
    let mut feed = StepFeed::new(&resident, arithmetic, 0).unwrap();
    feed.begin_step(FIRST_STEP, None).unwrap();

    let first = feed.fetch(0).unwrap();
    let second = feed.fetch(1).unwrap();

    assert_eq!(first.x.data_ptr(), second.x.data_ptr());
    assert_eq!(second.x.size(), [3, 3, 8, 8]);
    assert_eq!(second.x.stride(), [192, 1, 24, 3]);
    assert_eq!(feed.step_labels().size(), [6]);
}
