use sha2::{Digest, Sha256};

use super::*;
use crate::data::synth::tests::fnv1a;
use crate::data::{Part, idx};

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_embedded_files_are_the_published_ones() {
    assert_eq!(
        sha256(IMAGES),
        "359cd13f0f514122884198b78a131df597421cbf5e93a76678fa96fc548f0d96"
    );
    assert_eq!(
        sha256(LABELS),
        "ce71631c1f31ce56fa54f31d1d498fafacff59b001e6c30c4a5e29508aa277ad"
    );
    assert_eq!(fnv1a(IMAGES), 0x2241_F853_0B2A_E124);
    assert_eq!(fnv1a(LABELS), 0x05E4_F90C_8A44_F328);
}

#[test]
fn the_embedded_files_hold_1797_digits() {
    let images = idx::read_images("digits", IMAGES).unwrap();
    let labels = idx::read_labels("digits", LABELS).unwrap();

    assert_eq!((images.count, images.shape.height, images.shape.width), (1797, 8, 8));
    let part = Part {
        images: images.images,
        labels: labels.clone(),
    };
    assert_eq!(
        part.pixels().unwrap().iter().map(|&p| u64::from(p)).sum::<u64>(),
        561_718
    );
    let counts: Vec<usize> = (0..10)
        .map(|class| labels.iter().filter(|&&label| label == class).count())
        .collect();
    assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
}
