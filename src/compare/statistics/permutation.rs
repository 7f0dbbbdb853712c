//! Two arms in pairs: the exact sign-flip test of their differences.

use crate::random::{Domain, Draw, RunRng};

/// Most pairs for which every assignment of signs is tried.
const LARGEST_EXACT: usize = 20;
/// Assignments that are drawn with more pairs.
const FLIPS: u32 = 100_000;
/// Two sums count as equal if their distance is so small a part of all differences' sizes: values with few decimals do tie, but
/// their binary differences do not. Sums of measurements that really differ lie much farther apart.
const TOLERANCE: f64 = 1e-10;

/// The two-sided p of the sign-flip test (Fisher 1935): if neither arm is better, each difference between pairs might as well have had
/// the other sign. It is the share of the assignments of signs whose mean is at least as far from 0, in (0, 1]: of all with at
/// most 20
/// pairs, else of 100 000 that are drawn from `seed`, where the observed one counts as one more (Phipson and Smyth 2010). `None`
/// without pairs, and where a difference is not finite.
pub fn sign_flip(differences: &[f64], seed: u64) -> Option<f64> {
    if differences.is_empty() || differences.iter().any(|difference| !difference.is_finite()) {
        return None;
    }
    let sizes: f64 = differences.iter().map(|difference| difference.abs()).sum();
    let observed: f64 = differences.iter().sum();
    let least = observed.abs() - TOLERANCE * sizes;
    Some(if differences.len() <= LARGEST_EXACT {
        exact_p(differences, least)
    } else {
        drawn_p(differences, least, seed)
    })
}

/// The sum with the sign turned of each difference whose bit is set.
fn flipped_sum(differences: &[f64], signs: u64) -> f64 {
    let flipped = differences.iter().enumerate();
    flipped
        .map(|(index, &difference)| match (signs >> index) & 1 {
            1 => -difference,
            _ => difference,
        })
        .sum()
}

/// The exact p. All signs turned give the same distance from 0, so the last difference keeps its own.
fn exact_p(differences: &[f64], least: f64) -> f64 {
    let assignments = 1_u64 << (differences.len() - 1);
    let extreme = (0..assignments).filter(|&signs| flipped_sum(differences, signs).abs() >= least);
    extreme.count() as f64 / assignments as f64
}

fn drawn_p(differences: &[f64], least: f64, seed: u64) -> f64 {
    let mut rng = RunRng::new(seed, Domain::StatisticsResampling, &[1]);
    let extreme = (0..FLIPS).filter(|_| {
        let words = differences.chunks(64);
        let sum: f64 = words.map(|chunk| flipped_sum(chunk, rng.next_u64())).sum();
        sum.abs() >= least
    });
    let extreme = extreme.count();
    (1 + extreme) as f64 / f64::from(1 + FLIPS)
}

#[cfg(test)]
mod tests;
