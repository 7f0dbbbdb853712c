use super::*;

#[test]
fn a_band_of_few_trainings_is_their_range() {
    assert_eq!(band(&[3.0, 1.0]), [1.0, 2.0, 3.0]);
    assert_eq!(band(&[5.0]), [5.0; 3]);
    assert!(band(&[]).iter().all(|end| end.is_nan()));
    let [low, mean, high] = band(&[1.0, 2.0, 3.0]);
    assert_eq!(mean, 2.0);
    assert!(
        (high - 4.484).abs() < 1e-3 && (low + 0.484).abs() < 1e-3,
        "{low} {high}"
    );
}
