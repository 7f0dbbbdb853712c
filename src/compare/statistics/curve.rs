//! Learning curves of several trainings on one grid.

/// A measurement of a training: its progress, and its score.
pub type CurvePoint = (f64, f64);

/// The curve at `x`, linear between its points, which ascend in x; `None` before the first and after the last one.
pub fn interpolate(points: &[CurvePoint], x: f64) -> Option<f64> {
    let above = points.partition_point(|point| point.0 < x);
    let &(high_x, high_y) = points.get(above)?;
    if high_x == x {
        return Some(high_y);
    }
    let (low_x, low_y) = points[above.checked_sub(1)?];
    Some(low_y + (x - low_x) / (high_x - low_x) * (high_y - low_y))
}

/// `count` equally distant places where every curve has a value: from the latest first point to the earliest last one.
/// The list is empty where there are none, or some curve is empty.
pub fn common_grid(curves: &[Vec<CurvePoint>], count: usize) -> Vec<f64> {
    let ends = curves.iter().map(|curve| Some((curve.first()?.0, curve.last()?.0)));
    let Some(ends) = ends.collect::<Option<Vec<(f64, f64)>>>() else {
        return Vec::new();
    };
    let start = ends.iter().map(|(first, _)| *first).fold(f64::NEG_INFINITY, f64::max);
    let end = ends.iter().map(|(_, last)| *last).fold(f64::INFINITY, f64::min);
    if !(start.is_finite() && end.is_finite() && start <= end) {
        return Vec::new();
    }
    let steps = count.saturating_sub(1).max(1) as f64;
    // The ends themselves, since a rounded end may lie outside of the curves, where there is no value.
    (0..count)
        .map(|place| (start + (end - start) * (place as f64 / steps)).min(end))
        .collect()
}

#[cfg(test)]
mod tests;
