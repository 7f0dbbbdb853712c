use serde::Deserialize;

use super::*;
use crate::compare::statistics::fixtures::{Resampled, assert_close, reference};

#[derive(Deserialize)]
struct Case {
    tasks: Vec<Vec<Vec<(f64, f64)>>>,
    grid: Vec<f64>,
    values: Vec<f64>,
    #[serde(flatten)]
    resampled: Resampled,
}

fn curve(points: &[(f64, f64)]) -> Vec<CurvePoint> {
    points.iter().map(|&(x, y)| CurvePoint { x, y }).collect()
}

#[test]
fn curves_and_bands_are_those_of_plain_numpy() {
    let case: Case = reference("curves");
    let tasks: Vec<Vec<Vec<CurvePoint>>> = case
        .tasks
        .iter()
        .map(|trainings| trainings.iter().map(|points| curve(points)).collect())
        .collect();

    let grid = common_grid(tasks.iter().flatten().map(Vec::as_slice), case.grid.len());
    let bands = learning_curve(&tasks, &case.grid, case.resampled.bootstrap());

    for (actual, expected) in grid.into_iter().zip(&case.grid) {
        assert_close(actual, *expected);
    }
    assert_eq!(bands.len(), case.grid.len());
    for (band, (x, value)) in bands.iter().zip(case.grid.iter().zip(&case.values)) {
        assert_eq!(band.x, *x);
        assert_close(band.iqm, *value);
    }
    case.resampled.assert_intervals(bands.iter().map(|band| band.interval));
}

#[test]
fn curves_are_straight_between_their_points_and_nothing_beyond() {
    let curve = curve(&[(1.0, 10.0), (3.0, 20.0), (4.0, 0.0)]);
    assert_eq!(interpolate(&curve, 1.0), Some(10.0));
    assert_eq!(interpolate(&curve, 1.5), Some(12.5));
    assert_eq!(interpolate(&curve, 3.0), Some(20.0));
    assert_eq!(interpolate(&curve, 4.0), Some(0.0));
    assert_eq!(interpolate(&curve, 0.9), None);
    assert_eq!(interpolate(&curve, 4.1), None);
    assert_eq!(interpolate(&curve, f64::NAN), None);
    assert_eq!(interpolate(&[], 1.0), None);
}

#[test]
fn a_grid_spans_what_all_curves_have() {
    let (long, short) = (curve(&[(0.0, 0.0), (10.0, 1.0)]), curve(&[(2.0, 0.0), (6.0, 1.0)]));
    let of = |curves: &[&[CurvePoint]], count| common_grid(curves.iter().copied(), count);

    assert_eq!(of(&[&long, &short], 5), [2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(of(&[&long, &short], 1), [2.0]);
    assert!(of(&[&short, &curve(&[(7.0, 0.0)])], 5).is_empty());
    assert!(of(&[&short, &[]], 5).is_empty());
    assert!(of(&[], 5).is_empty());
}

/// A training that ended early shortens the curve of all.
#[test]
fn a_curve_ends_where_the_shortest_training_ends() {
    let whole = curve(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]);
    let mut trainings = vec![whole; 5];
    trainings[3].pop();

    let bands = learning_curve(&[trainings], &[0.0, 1.0, 2.0], Bootstrap::seeded(1));

    let expected = [(0.0, 1.0), (1.0, 2.0)].map(|(x, iqm)| CurveBand {
        x,
        iqm,
        interval: Some(Interval { low: iqm, high: iqm }),
    });
    assert_eq!(bands, expected);
}

#[test]
fn four_trainings_have_a_curve_without_a_band() {
    let bands = learning_curve(&[vec![curve(&[(0.0, 1.0)]); 4]], &[0.0], Bootstrap::seeded(1));
    assert_eq!((bands[0].iqm, bands[0].interval), (1.0, None));
    assert!(learning_curve(&[], &[0.0], Bootstrap::seeded(1)).is_empty());
}

#[test]
fn what_was_not_measured_has_no_band() {
    let bands = learning_curve(&[vec![curve(&[(0.0, f64::NAN)]); 6]], &[0.0], Bootstrap::seeded(1));
    assert!(bands[0].iqm.is_nan() && bands[0].interval.is_none());
}
