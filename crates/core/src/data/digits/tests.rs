use sha2::{Digest, Sha256};

use super::*;

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_embedded_files_are_the_published_ones() {
    let images = "359cd13f0f514122884198b78a131df597421cbf5e93a76678fa96fc548f0d96";
    let labels = "ce71631c1f31ce56fa54f31d1d498fafacff59b001e6c30c4a5e29508aa277ad";
    assert_eq!([sha256(IMAGES), sha256(LABELS)], [images, labels]);
}
