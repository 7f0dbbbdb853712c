//! Performance profiles: how many trainings come above each threshold.

use serde::Serialize;

use super::bootstrap::Bootstrap;
use super::sample::{Drawn, Interval, Layout, Sample};
use crate::random::Draw;

/// One threshold of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProfilePoint {
    /// Threshold, in the scores' unit.
    pub tau: f64,
    /// Part of the trainings whose score is higher, in [0, 1].
    pub fraction: f64,
    /// 95 % for this threshold alone; `None` with fewer than 5 trainings.
    pub interval: Option<Interval>,
}

/// The profile of an arm over all its tasks (Agarwal et al. 2021: the run-score distribution). Profiles of two arms that
/// do not cross order them for every threshold. NaN, without intervals, where a score is missing.
pub fn performance_profile(sample: &Sample, taus: &[f64], bootstrap: Bootstrap<impl Draw>) -> Vec<ProfilePoint> {
    let Some(layout) = Layout::of(sample) else {
        let nothing = |&tau| ProfilePoint {
            tau,
            fraction: f64::NAN,
            interval: None,
        };
        return taus.iter().map(nothing).collect();
    };
    let intervals = layout.has_enough().then(|| {
        let (mut drawn, mut scores) = (Drawn::default(), Vec::new());
        bootstrap.intervals(taus.len(), |source, fractions| {
            layout.draw_scores(source, &mut drawn, &mut scores);
            for (fraction, &tau) in fractions.iter_mut().zip(taus) {
                *fraction = fraction_above(&scores, tau);
            }
        })
    });
    let scores = sample.scores();
    let points = taus.iter().enumerate();
    points
        .map(|(index, &tau)| ProfilePoint {
            tau,
            fraction: fraction_above(&scores, tau),
            interval: intervals.as_ref().map(|intervals| intervals[index]),
        })
        .collect()
}

fn fraction_above(scores: &[f64], tau: f64) -> f64 {
    let above = scores.iter().filter(|&&score| score > tau);
    above.count() as f64 / scores.len() as f64
}

#[cfg(test)]
mod tests;
