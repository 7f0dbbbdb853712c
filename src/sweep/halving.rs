//! Successive halving: which trials continue after which rung. The decision depends on the scores of whole rungs alone.

use std::collections::BTreeMap;

use super::file::SuccessiveHalving;
use super::plan::{Plan, Trial};

/// The rounds at which trials are compared, then the last round of the scenario.
pub fn rungs(halving: SuccessiveHalving, rounds: u32) -> Vec<u32> {
    let mut rungs = Vec::new();
    let mut next = halving.first_rounds;
    while next < rounds {
        rungs.push(next);
        next = next.saturating_mul(halving.factor);
    }
    rungs.push(rounds);
    rungs
}

/// What is known of a trial at a rung.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AtRung {
    /// It is still being played up to there.
    Awaited,
    /// Its score.
    Reached(f64),
    /// It failed.
    Failed,
}

/// The points that continue after a rung, of those that reached it: the best `1 / factor` of them by the mean score of their
/// trials, at least one; of equal ones the first. `None` while a trial is awaited.
pub fn promoted(plan: &Plan, points: &[usize], factor: u32, at_rung: impl Fn(&str) -> AtRung) -> Option<Vec<usize>> {
    let mut of_point: BTreeMap<usize, Vec<&Trial>> = BTreeMap::new();
    for trial in &plan.trials {
        of_point.entry(trial.point).or_default().push(trial);
    }
    let mut means = Vec::new();
    for &point in points {
        let mut scores = Vec::new();
        for trial in of_point.get(&point).into_iter().flatten() {
            match at_rung(&trial.id) {
                AtRung::Awaited => return None,
                AtRung::Reached(score) => scores.push(score),
                AtRung::Failed => {}
            }
        }
        if !scores.is_empty() {
            means.push((point, scores.iter().sum::<f64>() / scores.len() as f64));
        }
    }
    means.sort_by(|(first, a), (second, b)| b.total_cmp(a).then(first.cmp(second)));
    means.truncate(points.len().div_ceil(factor as usize));
    let mut points: Vec<usize> = means.into_iter().map(|(point, _)| point).collect();
    points.sort_unstable();
    Some(points)
}

#[cfg(test)]
mod tests;
