//! How likely a training of one arm beats one of another arm on the same task.

use super::bootstrap::{Bootstrap, Estimate};
use super::rank::wins;
use super::sample::{Drawn, Layout, Sample};
use crate::random::Draw;

/// The probability of improvement (Agarwal et al. 2021): A of Vargha and Delaney of each task, ties counting half,
/// averaged over tasks. In [0, 1]; 0.5 is no difference. Arms are drawn independently, each within its tasks. `None`
/// where the arms have unequal numbers of tasks or none, or where a task has no training of an arm or a score is missing.
pub fn probability_of_improvement(
    first: &Sample,
    second: &Sample,
    bootstrap: Bootstrap<impl Draw>,
) -> Option<Estimate> {
    let (ours, theirs) = (Layout::of(first)?, Layout::of(second)?);
    let is_missing = |sample: &Sample| sample.tasks.is_empty() || sample.tasks.iter().any(Vec::is_empty);
    if first.tasks.len() != second.tasks.len() || is_missing(first) || is_missing(second) {
        return None;
    }
    let average = |our_scores: &[f64], their_scores: &[f64]| -> f64 {
        let tasks = ours.tasks.iter().zip(&theirs.tasks);
        let sum: f64 = tasks
            .map(|(our, their)| {
                let pairs = our.len() * their.len();
                wins(&our_scores[our.clone()], &their_scores[their.clone()]) / pairs as f64
            })
            .sum();
        sum / first.tasks.len() as f64
    };
    let interval = (ours.has_enough() && theirs.has_enough()).then(|| {
        let (mut drawn, mut our_scores, mut their_scores) = (Drawn::default(), Vec::new(), Vec::new());
        bootstrap.interval(|source| {
            ours.draw_scores(source, &mut drawn, &mut our_scores);
            theirs.draw_scores(source, &mut drawn, &mut their_scores);
            average(&our_scores, &their_scores)
        })
    });
    Some(Estimate {
        value: average(&first.scores(), &second.scores()),
        interval,
    })
}

#[cfg(test)]
mod tests;
