use std::collections::HashSet;

use super::*;

#[test]
fn derived_seeds_have_the_pinned_values() {
    assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
    assert_eq!(derive(42, Domain::HostInit, &[0, 0]), 0x3E4A_12D7_0B0A_F178);
    assert_eq!(derive(42, Domain::HostInit, &[0, 1]), 0x7181_8AD8_3CBA_8F05);
    assert_eq!(derive(42, Domain::HostInit, &[1, 0]), 0xDFE0_5ACD_AF69_D627);
    assert_eq!(derive(42, Domain::DataOrder, &[0, 0, 1]), 0xBA21_2407_AD4D_7B53);
}

#[test]
fn host_seeds_of_200_rounds_and_64_envs_are_distinct() {
    let seeds: HashSet<u64> = (0..200)
        .flat_map(|round| (0..64).map(move |env| derive(42, Domain::HostInit, &[round, env])))
        .collect();

    assert_eq!(seeds.len(), 200 * 64);
}

/// The numbers `0..N` in the order that `rng` gives them.
fn shuffled<const N: usize>(mut rng: impl Draw) -> [usize; N] {
    let mut numbers = std::array::from_fn(|index| index);
    rng.shuffle(&mut numbers);
    numbers
}

#[test]
fn run_streams_have_the_pinned_values() {
    let mut rng = RunRng::new(42, Domain::DataOrder, &[0, 0, 1]);
    assert_eq!(rng.next_u64(), 0x1E38_C67F_3958_0E26);
    assert_eq!(rng.next_u64(), 0x02CF_2FA7_771B_5B94);
    assert_eq!(RunRng::from_seed(0).next_u64(), 0xB585_F767_A79A_3B6C);

    let order = |indices| shuffled::<8>(RunRng::new(42, Domain::DataOrder, indices));
    assert_eq!(order(&[0, 0, 1]), [5, 1, 6, 4, 3, 2, 7, 0]);
    assert_eq!(order(&[0, 1, 1]), [4, 5, 7, 3, 0, 1, 6, 2]);
    assert_eq!(order(&[0, 0, 2]), [3, 0, 6, 7, 5, 2, 1, 4]);
}

#[test]
fn content_streams_have_the_pinned_values() {
    let mut from_zero = ContentRng::from_seed(0);
    assert_eq!(from_zero.next_u64(), 0xE220_A839_7B1D_CDAF);
    assert_eq!(from_zero.next_u64(), 0x6E78_9E6A_A1B9_65F4);
    assert_eq!(from_zero.next_u64(), 0x06C4_5D18_8009_454F);

    let mut rng = ContentRng::from_seed(42);
    let digits: Vec<u64> = (0..10).map(|_| rng.below(10)).collect();
    assert_eq!(digits, [7, 1, 2, 3, 0, 8, 2, 8, 3, 6]);
    assert_eq!(shuffled(ContentRng::from_seed(42)), [8, 3, 6, 5, 4, 0, 9, 2, 1, 7]);
}

/// The variance of U(−b, b) is b²/3.
#[test]
fn uniform_and_normal_weights_have_the_spread_asked_for_at_odd_lengths_too() {
    let mut weights = vec![0.0f32; 20_001];
    RunRng::from_seed(1).fill_uniform(&mut weights, 0.25);
    let (mean, variance) = moments(&weights);
    assert!(weights.iter().all(|w| w.abs() <= 0.25));
    assert!(mean.abs() < 0.005, "mean {mean}");
    assert!((variance - 0.0208333).abs() < 0.0005, "variance {variance}");

    RunRng::from_seed(2).fill_normal(&mut weights, 0.02);
    let (mean, variance) = moments(&weights);
    assert!(weights.iter().all(|w| w.is_finite()));
    assert!(mean.abs() < 0.0005, "mean {mean}");
    assert!((variance.sqrt() - 0.02).abs() < 0.0005, "variance {variance}");
}

fn moments(values: &[f32]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
    (mean, variance)
}
