//! The interval of a mean over few trainings, or over few hosts: Student's t with trainings and hosts crossed.
//!
//! The value of training i on host j is `mean + training_i + host_j + rest_ij`, all three drawn at random. With the mean squares
//! A of trainings, B of hosts and E of the rest, the mean over n trainings and m hosts has the variance `(A + B - E) / (n m)`, with
//! as many degrees of freedom as Satterthwaite (1946) gives such a sum (Searle, Casella, McCulloch 1992, chapter 4). A factor whose
//! mean square is below the rest adds nothing. The evaluation seed distinguishes hosts if several have the same size,
//! as hosts of a seed may have something in common; else each host stands alone. If trainings share no hosts, they are the only factor:
//! the plain t interval.

use std::ops::Range;

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::sample::{Interval, Layout};
use super::summary::{mean, squared_deviations};

/// The number of trainings and hosts from which percentiles of resamples come close enough.
const MANY: usize = 10;
/// Probability that an interval covers the mean.
const COVERED: f64 = 0.95;

/// The interval of the mean `value` of all scores. `None` where there are many of everything, for a single training, and over
/// several tasks.
pub(super) fn interval(value: f64, layout: &Layout) -> Option<Interval> {
    let [task] = &layout.tasks[..] else { return None };
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

/// The table of a task with one row per training and one column per group of hosts, or one column where hosts are not shared.
fn table(layout: &Layout, task: &Range<usize>) -> Vec<Vec<f64>> {
    let sizes: Vec<usize> = layout.sizes(task.start).collect();
    let is_even = sizes.len() > 1 && sizes.iter().all(|size| *size == sizes[0]);
    let row = |by_seed: &Vec<Vec<f64>>| match (layout.is_crossed, is_even) {
        (false, _) => vec![mean(&by_seed.concat())],
        (true, true) => by_seed.iter().map(|episodes| mean(episodes)).collect(),
        (true, false) => by_seed.concat(),
    };
    layout.trainings[task.clone()].iter().map(row).collect()
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

/// Mean of independent values and half the width of its interval. `None` with fewer than two.
pub fn mean_and_interval(values: &[f64]) -> Option<(f64, f64)> {
    let freedom = values.len().checked_sub(1).filter(|&freedom| freedom > 0)? as f64;
    let square = squared_deviations(values) / freedom;
    Some((mean(values), quantile(freedom) * (square / (freedom + 1.0)).sqrt()))
}

/// The number of standard errors to either side that hold 95 % of Student's t. `freedom` may be a fraction. NaN without any.
fn quantile(freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom);
    student.map_or(f64::NAN, |student| student.inverse_cdf((1.0 + COVERED) / 2.0))
}

#[cfg(test)]
mod tests;
