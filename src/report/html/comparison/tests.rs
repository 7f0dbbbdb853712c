use super::*;

#[test]
fn the_front_is_what_none_beats_in_both_and_its_volume_the_area_below_it() {
    let (front, volume) = front(&[(2.0, 50.0), (1.0, 20.0), (2.0, 40.0), (3.0, 45.0), (4.0, 60.0)]);

    assert_eq!(front, [(1.0, 20.0), (2.0, 50.0), (4.0, 60.0)]);
    // 20 for 1 to 2, 50 for 2 to 4; the last one adds nothing.
    assert_eq!(volume, 20.0 + 100.0);
}

#[test]
fn a_band_of_few_trainings_is_their_range() {
    assert_eq!(band(&[3.0, 1.0]), [1.0, 2.0, 3.0]);
    assert_eq!(band(&[5.0]), [5.0; 3]);
    assert!(band(&[]).iter().all(|end| end.is_nan()));
    let [low, mean, high] = band(&[1.0, 2.0, 3.0]);
    assert_eq!(mean, 2.0);
    assert!(
        (high - mean - 2.484).abs() < 1e-3 && (mean - low - 2.484).abs() < 1e-3,
        "{low} {high}"
    );
}
