use super::*;
use crate::data::locate::tests::assert_refused;

pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The published checksums are over planes.
fn planes(params: &SynthImages, part: u64, index: usize) -> Vec<u8> {
    let plane = params.height * params.width;
    let mut pixels = vec![0; params.channels * plane];
    draw_image(params, part, index, &mut pixels);
    let by_planes = (0..pixels.len()).map(|i| pixels[(i % plane) * params.channels + i / plane]);
    by_planes.collect()
}

#[test]
fn the_sine_table_is_the_published_one() {
    let bytes = SINE.map(|value| value as i8 as u8);
    assert_eq!(fnv1a(&bytes), 0xBEFE_DE64_F98C_6923);
}

#[test]
fn wave_vectors_are_the_published_ones() {
    let params = SynthImages::default();
    let found = [0, 1, 2, 3, 5].map(|class| wave_vector(&params, class));

    let published = [(8192, 0), (6579, 4902), (2580, 7804), (-2580, 7804), (16384, 0)];
    assert_eq!(found, published);
}

#[test]
fn images_are_the_published_ones() {
    let params = SynthImages::default();

    let first = planes(&params, 0, 0);
    assert_eq!(label(&params, 0), 0);
    assert_eq!(first[..8], [57, 110, 90, 255, 0, 232, 79, 181]);
    assert_eq!(fnv1a(&first), 0x5586_C9BB_D683_5B65);

    assert_eq!(fnv1a(&planes(&params, 0, 1)), 0xF216_36B9_7983_39B4);
    assert_eq!(fnv1a(&planes(&params, 0, 9)), 0x6C73_9266_06E4_0A60);
    assert_eq!(fnv1a(&planes(&params, 1, 0)), 0x66AA_B60F_3A1A_446F);
}

#[test]
fn a_small_grey_image_is_as_the_formulas_say() {
    let params = SynthImages {
        classes: 4,
        channels: 1,
        height: 16,
        width: 16,
        ..SynthImages::default()
    };

    assert_eq!(fnv1a(&planes(&params, 0, 0)), 0xDFDC_0E1A_E0FC_43D6);
}

#[test]
fn generation_does_not_depend_on_threads_or_on_how_many_images_are_asked_for() {
    let params = SynthImages {
        height: 8,
        width: 16,
        ..SynthImages::default()
    };
    let on_threads = |threads: usize, count: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| generate(&params, 1, count).unwrap())
    };

    let few = on_threads(1, 5);
    let many = on_threads(3, 12);

    assert_eq!(few[..], many[..few.len()]);
}

#[test]
fn more_images_than_there_is_memory_for_are_an_error() {
    let params = SynthImages::default();

    for count in [1 << 50, usize::MAX] {
        let expected = format!("there is no memory for {count} images of ");
        assert_refused(generate(&params, 0, count), &expected);
    }
}
