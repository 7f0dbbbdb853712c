//! The points of a sweep: which settings are tried together, in a fixed order.

use std::collections::HashSet;
use std::slice::from_ref;

use super::file::{Axis, AxisValues, Drawing, Setting, SweepFile};
use crate::random::{Domain, Draw, RunRng};
use crate::scenario::Declared;
use crate::schema::Written;

/// A sweep with more trainings than this is taken for a mistake.
const MOST_TRAININGS: u128 = 1_000_000;

/// Problems of a sweep file, by path.
pub(super) type Findings = Vec<(String, String)>;

/// The settings of a point, each with the place in the sweep file that it comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Name in `points`, with the values of the axes. `None` in a sweep without `points`.
    pub name: Option<String>,
    /// In the order of the file: those of `points`, then those of the axes.
    pub settings: Vec<Setting>,
    /// `file:line:column` of each.
    pub places: Vec<String>,
}

/// All points of a sweep. The last axis varies fastest.
///
/// # Errors
/// Axes without values, ranges that are invalid or that a grid can't try in full, more points than anyone can play.
pub(super) fn points(file: &Declared<SweepFile>) -> Result<Vec<Point>, Findings> {
    let SweepFile {
        axes,
        draw,
        points,
        replicates,
        ..
    } = &file.value;
    let mut findings = check_axes(axes, *draw);
    let together = points.len().max(1) as u128;
    let drawn: u128 = match *draw {
        Drawing::Grid => {
            let sizes = axes.iter().map(|axis| size(&axis.values) as u128);
            sizes.fold(1, u128::saturating_mul)
        }
        Drawing::Random { points, .. } => points.into(),
    };
    let trainings = together.saturating_mul(drawn).saturating_mul((*replicates).into());
    if trainings > MOST_TRAININGS {
        let message = format!(
            "these are {together} x {drawn} points, each trained {replicates} times; a sweep has at most {MOST_TRAININGS} \
             trainings"
        );
        findings.push(("axes".into(), message));
    }
    for (index, point) in points.iter().enumerate() {
        if points[..index].iter().any(|other| other.name == point.name) {
            let message = format!("two points are called \"{}\"; give each its own name", point.name);
            findings.push((format!("points[{index}].name"), message));
        }
    }
    if !findings.is_empty() {
        return Err(findings);
    }

    let place = |path: String| file.place(&path);
    let lists = points.iter().enumerate().map(|(index, point)| Point {
        name: Some(point.name.clone()),
        places: (0..point.set.len())
            .map(|entry| place(format!("points[{index}].set[{entry}].value")))
            .collect(),
        settings: point.set.clone(),
    });
    let mut lists: Vec<Point> = lists.collect();
    if lists.is_empty() {
        lists.push(Point::default());
    }
    let combinations = match *draw {
        Drawing::Grid => grid(axes),
        Drawing::Random { points, seed } => random(axes, points, seed),
    };
    let axis_places = (0..axes.len()).map(|axis| place(format!("axes[{axis}].values")));
    let axis_places: Vec<String> = axis_places.collect();
    let mut all = Vec::new();
    for list in &lists {
        let mut known = HashSet::new();
        for values in &combinations {
            // Draws from lists repeat themselves.
            if *draw != Drawing::Grid && !known.insert(values) {
                continue;
            }
            let mut point = list.clone();
            for ((axis, value), place) in axes.iter().zip(values).zip(&axis_places) {
                let setting = Setting {
                    path: axis.path.clone(),
                    value: value.clone(),
                };
                point.name = point.name.map(|name| format!("{name} {}", setting.label()));
                point.settings.push(setting);
                point.places.push(place.clone());
            }
            all.push(point);
        }
    }
    Ok(all)
}

fn check_axes(axes: &[Axis], draw: Drawing) -> Findings {
    let mut findings = Findings::new();
    for (index, axis) in axes.iter().enumerate() {
        let path = format!("axes[{index}].values");
        let problem = match axis.values {
            AxisValues::List(ref values) if values.is_empty() => Some("a list without values".into()),
            AxisValues::List(_) => None,
            AxisValues::Uniform { low, high } | AxisValues::LogUniform { low, high } if low >= high => {
                Some(format!("low {low} is not less than high {high}"))
            }
            AxisValues::Integer { low, high } if low > high => Some(format!("low {low} is more than high {high}")),
            _ if draw == Drawing::Grid => Some(format!(
                "a grid tries all values of every axis, but a range has infinitely many; write list([..]), or draw: \
                 random(points: .., seed: ..) instead of {}",
                axis.values.name()
            )),
            _ => None,
        };
        findings.extend(problem.map(|problem| (path, problem)));
    }
    findings
}

/// Values that a grid tries.
fn size(values: &AxisValues) -> usize {
    match values {
        AxisValues::List(values) => values.len(),
        _ => 1,
    }
}

fn grid(axes: &[Axis]) -> Vec<Vec<Written>> {
    let mut all = vec![Vec::new()];
    for axis in axes {
        let AxisValues::List(values) = &axis.values else {
            continue;
        };
        let with_each = |begun: Vec<Written>| values.iter().map(move |value| [&begun[..], from_ref(value)].concat());
        all = all.into_iter().flat_map(with_each).collect();
    }
    all
}

fn random(axes: &[Axis], points: u32, seed: u64) -> Vec<Vec<Written>> {
    let value = |axis: usize, point: u32| {
        let mut rng = RunRng::new(seed, Domain::SweepPoint, &[axis as u64, point.into()]);
        value_at(&axes[axis].values, rng.uniform_f64())
    };
    (0..points)
        .map(|point| (0..axes.len()).map(|axis| value(axis, point)).collect())
        .collect()
}

/// The value that lies at a share, in [0, 1), of an axis.
fn value_at(values: &AxisValues, share: f64) -> Written {
    match *values {
        AxisValues::List(ref values) => {
            let index = (share * values.len() as f64) as usize;
            values[index.min(values.len() - 1)].clone()
        }
        AxisValues::Uniform { low, high } => number(low + (high - low) * share, low, high),
        AxisValues::LogUniform { low, high } => number(low * (high / low).powf(share), low, high),
        AxisValues::Integer { low, high } => {
            let count = (i128::from(high) - i128::from(low) + 1) as f64;
            let value = i128::from(low) + (share * count) as i128;
            Written(value.min(high.into()).to_string())
        }
    }
}

/// With six significant digits: as many as anyone reads, and few enough for machines whose mathematical libraries differ in
/// the last one to draw the same trials.
fn number(value: f64, low: f64, high: f64) -> Written {
    let rounded = format!("{value:.5e}").parse().unwrap_or(value);
    Written(format!("{:?}", rounded.clamp(low, high)))
}

#[cfg(test)]
mod tests;
