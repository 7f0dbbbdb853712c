use super::*;

pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The published checksums are over planes.
fn planes(params: &SynthImages, part: SynthPart, index: usize) -> Vec<u8> {
    let plane = params.height * params.width;
    let mut pixels = vec![0; params.channels * plane];
    draw_image(params, part, index, &mut pixels);
    (0..params.channels * plane)
        .map(|i| pixels[(i % plane) * params.channels + i / plane])
        .collect()
}

fn byte_sum(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte)).sum()
}

#[test]
fn the_sine_table_is_the_published_one() {
    assert_eq!(SINE[..10], [0, 3, 6, 9, 12, 16, 19, 22, 25, 28]);
    assert_eq!((SINE[64], SINE[192]), (127, -127));
    let bytes = SINE.map(|value| value as i8 as u8);
    assert_eq!(fnv1a(&bytes), 0xBEFE_DE64_F98C_6923);
}

#[test]
fn wave_vectors_are_the_published_ones() {
    let params = SynthImages::default();
    for (class, expected) in [
        (0, (8192, 0)),
        (1, (6579, 4902)),
        (2, (2580, 7804)),
        (3, (-2580, 7804)),
        (5, (16384, 0)),
    ] {
        assert_eq!(wave_vector(&params, class), expected, "class {class}");
    }
}

#[test]
fn images_are_the_published_ones() {
    let params = SynthImages::default();

    let first = planes(&params, SynthPart::Train, 0);
    assert_eq!(label(&params, 0), 0);
    assert_eq!(first[..8], [57, 110, 90, 255, 0, 232, 79, 181]);
    assert_eq!(byte_sum(&first), 412_010);
    assert_eq!(fnv1a(&first), 0x5586_C9BB_D683_5B65);

    let second = planes(&params, SynthPart::Train, 1);
    assert_eq!(byte_sum(&second), 406_825);
    assert_eq!(fnv1a(&second), 0xF216_36B9_7983_39B4);
    assert_eq!(fnv1a(&planes(&params, SynthPart::Train, 9)), 0x6C73_9266_06E4_0A60);
    assert_eq!(fnv1a(&planes(&params, SynthPart::Val, 0)), 0x66AA_B60F_3A1A_446F);
}

#[test]
fn a_small_grey_image_is_the_published_one() {
    let params = SynthImages {
        classes: 4,
        channels: 1,
        height: 16,
        width: 16,
        noise: 16,
        distractors: 0,
        ..SynthImages::default()
    };

    let image = planes(&params, SynthPart::Train, 0);

    assert_eq!(byte_sum(&image), 39_767);
    assert_eq!(fnv1a(&image), 0x209D_37CE_DF6C_1F68);
}

#[test]
fn generation_does_not_depend_on_threads_or_on_how_many_images_are_asked_for() {
    let params = SynthImages {
        height: 8,
        width: 16,
        ..SynthImages::default()
    };
    let on_threads = |threads: usize, count: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().unwrap();
        pool.install(|| generate(&params, SynthPart::Val, count).unwrap())
    };

    let few = on_threads(1, 5);
    let many = on_threads(3, 12);

    assert_eq!(few[..], many[..few.len()]);
}

#[test]
fn more_images_than_there_is_memory_for_are_an_error() {
    let params = SynthImages::default();

    for count in [1 << 50, usize::MAX] {
        let error = generate(&params, SynthPart::Train, count).unwrap_err();

        assert!(
            matches!(error, DataError::OutOfMemory { images, .. } if images == count),
            "{error}"
        );
    }
}
