//! The interval of a mean over few trainings, or over few hosts: Student's t with trainings and hosts crossed.
//!
//! The value of training i on host j is `mean + training_i + host_j + rest_ij`, all three drawn at random. With the mean squares
//! A of trainings, B of hosts and E of the rest, the mean over n trainings and m hosts has the variance `(A + B - E) / (n m)`, with
//! as many degrees of freedom as Satterthwaite (1946) gives such a sum (Searle, Casella, McCulloch 1992, chapter 4). A factor whose
//! mean square is below the rest adds nothing. Hosts are told apart by their evaluation seed where there are several of one size,
//! as hosts of a seed may have something in common; else one by one. Where trainings share no hosts, trainings alone are a factor:
//! the plain t interval.

use std::f64::consts::{FRAC_PI_2, PI};
use std::ops::Range;

use super::sample::{Interval, Layout};
use super::summary::{mean, squared_deviations};

/// With as many trainings and hosts percentiles of resamples come close enough.
const MANY: usize = 10;
/// Probability that an interval covers.
const COVERED: f64 = 0.95;
/// Parts that an integral is cut into.
const PARTS: usize = 1024;

/// Of the mean `value` of all scores; `None` where there are many of everything, of a single training, and over several tasks.
pub(super) fn interval(value: f64, layout: &Layout) -> Option<Interval> {
    let [task] = &layout.strata.0[..] else { return None };
    let table = table(layout, task);
    let (trainings, hosts) = (table.len(), table[0].len());
    if trainings < 2 || trainings >= MANY && !(2..MANY).contains(&hosts) {
        return None;
    }
    let (square, freedom) = mean_square(&table);
    let reach = quantile(freedom.max(1.0)) * (square / (trainings * hosts) as f64).sqrt();
    Some(Interval {
        low: value - reach,
        high: value + reach,
    })
}

/// A row a training of the task, a column a group of hosts; one column where hosts are not shared.
fn table(layout: &Layout, task: &Range<usize>) -> Vec<Vec<f64>> {
    let sizes: Vec<usize> = layout.sizes(task.start).collect();
    let is_even = sizes.len() > 1 && sizes.iter().all(|size| *size == sizes[0]);
    let row = |training| {
        let episodes = layout.episodes(training);
        match (layout.is_crossed, is_even) {
            (false, _) => vec![mean(episodes)],
            (true, true) => episodes.chunks(sizes[0]).map(mean).collect(),
            (true, false) => episodes.to_vec(),
        }
    };
    task.clone().map(row).collect()
}

/// `A + B - E` and its degrees of freedom, without a factor that is smaller than the rest.
fn mean_square(table: &[Vec<f64>]) -> (f64, f64) {
    let (n, m) = (table.len() as f64, table[0].len() as f64);
    let by_row: Vec<f64> = table.iter().map(|row| mean(row)).collect();
    let rows = (m * squared_deviations(&by_row) / (n - 1.0), n - 1.0);
    if m == 1.0 {
        return rows;
    }
    let of_column = |column: usize| mean(&table.iter().map(|row| row[column]).collect::<Vec<f64>>());
    let by_column: Vec<f64> = (0..table[0].len()).map(of_column).collect();
    let columns = (n * squared_deviations(&by_column) / (m - 1.0), m - 1.0);
    let freedom = (n - 1.0) * (m - 1.0);
    let rest = squared_deviations(&table.concat()) - rows.0 * rows.1 - columns.0 * columns.1;
    let rest = (rest.max(0.0) / freedom, freedom);
    let square = rows.0 + columns.0 - rest.0;
    let larger = if rows.0 >= columns.0 { rows } else { columns };
    if square <= larger.0 {
        return larger;
    }
    let parts = [rows, columns, rest].map(|(square, freedom)| square * square / freedom);
    (square, square * square / parts.iter().sum::<f64>())
}

/// How many standard errors either side 95 % of Student's t lie within; `freedom` may be a fraction, of at least 1. With
/// `t = sqrt(freedom) tan(angle)` the density is a power of the cosine.
fn quantile(freedom: f64) -> f64 {
    let density = 2.0 / PI.sqrt() * libm::exp(libm::lgamma((freedom + 1.0) / 2.0) - libm::lgamma(freedom / 2.0));
    let covered = |angle: f64| {
        let width = angle / PARTS as f64;
        let height = |part: usize| libm::pow(libm::cos((part as f64 + 0.5) * width), freedom - 1.0);
        density * width * (0..PARTS).map(height).sum::<f64>()
    };
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..32 {
        let middle = (low + high) / 2.0;
        *(if covered(middle) < COVERED { &mut low } else { &mut high }) = middle;
    }
    freedom.sqrt() * libm::tan(low)
}

#[cfg(test)]
mod tests;
