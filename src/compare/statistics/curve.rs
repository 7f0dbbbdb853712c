//! Learning curves: the scores of an arm's trainings after equally many rounds, env steps or seconds.

use serde::Serialize;

use super::bootstrap::Bootstrap;
use super::sample::{Interval, Strata};
use super::summary::Statistic;
use crate::random::Draw;

/// One measurement of one training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// How far the training was: rounds, env steps, seconds.
    pub x: f64,
    /// Its score.
    pub y: f64,
}

/// All trainings at one place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurveBand {
    /// How far the trainings were.
    pub x: f64,
    /// Interquartile mean over trainings.
    pub iqm: f64,
    /// 95 % for this place alone; `None` with fewer than 5 trainings.
    pub interval: Option<Interval>,
}

/// The curve at `x`, linear between its points, which must ascend. `None` before the first and after the last one.
pub fn interpolate(points: &[CurvePoint], x: f64) -> Option<f64> {
    let above = points.partition_point(|point| point.x < x);
    let high = points.get(above)?;
    if high.x == x {
        return Some(high.y);
    }
    let low = points.get(above.checked_sub(1)?)?;
    Some(low.y + (x - low.x) / (high.x - low.x) * (high.y - low.y))
}

/// `count` equally distant places where every curve has a value: from the latest first point to the earliest last one.
/// Empty where there are none, or some curve is empty.
pub fn common_grid<'a>(curves: impl Iterator<Item = &'a [CurvePoint]>, count: usize) -> Vec<f64> {
    let (mut start, mut end) = (f64::NEG_INFINITY, f64::INFINITY);
    for curve in curves {
        let (Some(first), Some(last)) = (curve.first(), curve.last()) else {
            return Vec::new();
        };
        start = start.max(first.x);
        end = end.min(last.x);
    }
    if !(start.is_finite() && end.is_finite() && start <= end) {
        return Vec::new();
    }
    let steps = count.saturating_sub(1).max(1) as f64;
    // The ends themselves, not what is rounded to them: there is no value beyond.
    (0..count)
        .map(|index| (start + (end - start) * (index as f64 / steps)).min(end))
        .collect()
}

/// The arm's curve on `grid`, with a band: interquartile means over all trainings of all tasks. A resample draws whole
/// trainings, within their tasks. Places that some training did not reach are left out: nothing is extrapolated, and no
/// part of the curve is about fewer trainings than another. Points of each training must ascend in `x`.
pub fn learning_curve(tasks: &[Vec<Vec<CurvePoint>>], grid: &[f64], bootstrap: Bootstrap<impl Draw>) -> Vec<CurveBand> {
    let curves = || tasks.iter().flatten();
    let columns: Vec<(f64, Vec<f64>)> = grid
        .iter()
        .filter_map(|&x| {
            let column = curves()
                .map(|curve| interpolate(curve, x))
                .collect::<Option<Vec<f64>>>();
            column.filter(|column| !column.is_empty()).map(|column| (x, column))
        })
        .collect();
    let strata = Strata::of_sizes(tasks.iter().map(Vec::len));
    let is_sound = columns.iter().all(|(_, column)| column.iter().all(|y| y.is_finite()));
    let intervals = (is_sound && strata.has_enough()).then(|| {
        let (mut drawn, mut values) = (Vec::new(), Vec::new());
        bootstrap.intervals(columns.len(), |source, row| {
            strata.draw(source, &mut drawn);
            for (iqm, (_, column)) in row.iter_mut().zip(&columns) {
                values.clear();
                values.extend(drawn.iter().map(|&training| column[training]));
                *iqm = Statistic::Iqm.of_scratch(&mut values);
            }
        })
    });
    let bands = columns.iter().enumerate();
    bands
        .map(|(index, (x, column))| CurveBand {
            x: *x,
            iqm: Statistic::Iqm.of(column),
            interval: intervals.as_ref().map(|intervals| intervals[index]),
        })
        .collect()
}

#[cfg(test)]
mod tests;
