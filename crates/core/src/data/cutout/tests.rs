use proptest::prelude::*;

use super::*;

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
        let masks = masks(shape, side, Device::Cpu).unwrap();
        for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
            let mask = masks.get(place(shape, row, column)).contiguous().view(-1);
            let expected: Vec<bool> = (0..height * width * 3)
                .map(|value| (value / 3 / width, value / 3 % width))
                .map(|(y, x)| {
                    let is_near = |at: usize, centre: usize| {
                        let first = centre as i64 - (side / 2) as i64;
                        (first..first + side as i64).contains(&(at as i64))
                    };
                    is_near(y, row) && is_near(x, column)
                })
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
