use proptest::prelude::*;

use super::*;
use crate::torch::fixtures::test_device;

const fn shape(height: usize, width: usize) -> Shape {
    Shape {
        channels: 3,
        height,
        width,
    }
}

proptest! {
    #[test]
    fn a_mask_is_the_square_around_its_centre_clipped_at_the_border(
        (height, width) in (1_usize..7, 1_usize..7),
        side in 1_usize..12,
    ) {
        let shape = shape(height, width);
        let masks = masks(shape, side, test_device()).unwrap();
        for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
            let mask = masks.get(place(shape, row, column)).contiguous().view(-1);
            // From `side / 2` before the centre on.
            let is_near = |at: usize, centre: usize| (centre..centre + side).contains(&(at + side / 2));
            let pixels = (0..height * width * 3).map(|value| value / 3);
            let expected: Vec<bool> = pixels
                .map(|pixel| is_near(pixel / width, row) && is_near(pixel % width, column))
                .collect();
            prop_assert_eq!(Vec::<bool>::try_from(mask).unwrap(), expected);
        }
    }
}

#[test]
fn centres_are_uniform_over_the_image() {
    let shape = shape(2, 3);
    let mut rng = crate::random::ContentRng::new(1, crate::random::Domain::Augmentation, &[]);
    let mut counts = std::collections::BTreeMap::new();

    for _ in 0..6000 {
        *counts.entry(draw(&mut rng, shape)).or_insert(0_u32) += 1;
    }

    assert_eq!(counts.len(), 6);
    assert!(counts.values().all(|count| count.abs_diff(1000) < 120), "{counts:?}");
}
