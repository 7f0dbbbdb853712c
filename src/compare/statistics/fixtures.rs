//! The numbers of other implementations, and their readers. `scripts/statistics_fixtures.py` makes the file.

use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Bootstrap, Interval, Sample, Statistic, Training};
use crate::random::Draw;

static REFERENCE: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("fixtures/reference.json")).expect("the fixtures are JSON"));

/// The part of the file with this name.
pub fn reference<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_value(REFERENCE[name].clone()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Intervals, and the indices that they were computed from.
#[derive(Deserialize)]
pub struct Resampled {
    interval: Vec<(f64, f64)>,
    indices: Vec<u64>,
}

impl Resampled {
    pub fn bootstrap(&self) -> Bootstrap<Exported> {
        Bootstrap {
            resamples: reference("resamples"),
            source: Exported(self.indices.clone().into_iter()),
        }
    }

    #[track_caller]
    pub fn assert_intervals(&self, actual: impl IntoIterator<Item = Option<Interval>>) {
        let actual: Vec<Option<Interval>> = actual.into_iter().collect();
        assert_eq!(actual.len(), self.interval.len());
        for (interval, (low, high)) in actual.into_iter().zip(&self.interval) {
            let interval = interval.expect("five trainings");
            assert_close(interval.low, *low);
            assert_close(interval.high, *high);
        }
    }
}

/// Returns indices that another implementation has drawn, and expects that all of them are used.
pub struct Exported(std::vec::IntoIter<u64>);

impl Draw for Exported {
    fn next_u64(&mut self) -> u64 {
        unreachable!("resampling draws indices only")
    }

    fn below(&mut self, n: u64) -> u64 {
        let index = self.0.next().expect("as many indices as are drawn");
        assert!(index < n, "{index} of {n}");
        index
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.0.len(), 0, "indices that nothing drew");
        }
    }
}

#[track_caller]
pub fn assert_close(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-9, "{actual} is not {expected}");
}

/// The sample of these scores by task, training, seed and episode.
pub fn sample(tasks: Vec<Vec<Vec<Vec<f64>>>>) -> Sample {
    let trainings = |task: Vec<Vec<Vec<f64>>>| task.into_iter().map(|by_seed| Training { by_seed }).collect();
    Sample {
        tasks: tasks.into_iter().map(trainings).collect(),
        shares_hosts: false,
    }
}

pub fn statistic(name: &str) -> Statistic {
    match name {
        "mean" => Statistic::Mean,
        "median" => Statistic::Median,
        "iqm" => Statistic::Iqm,
        "worst_tenth" => Statistic::WorstTenth,
        _ => panic!("{name} isn't a statistic"),
    }
}
