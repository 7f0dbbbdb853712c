//! TensorBoard event files: the curves of a run under `tb/`, readable by `tensorboard --logdir`.
//!
//! `main/` holds what people look at, over the round as it is counted on the console. Where all is asked for, `detail/` has
//! every number of `round_finished` and `learner_update` under its key, so that no list of them can grow stale, and the steps
//! of envs over the run step.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::append::AppendFile;
use super::records::{Chart, FILE_VERSION, HParam, Record, Scalar};
use crate::health::AtPath;
use crate::scenario::TensorBoard;
use crate::storage;
use crate::telemetry::encoding::{Num, Timestamp};
use crate::telemetry::event::{Event, Payload};
use crate::telemetry::payload::{EnvStep, EpisodeFinished, GrowthCounts, RoundFinished, RunFinished};
use crate::telemetry::sink::{RunInfo, Sink, SinkError};

/// Folder of the event files inside the run directory.
const FOLDER: &str = "tb";
/// Stands where TensorBoard's own writer puts the host's name, which a run does not record.
const HOST: &str = "localhost";

/// Curves of `main/`, and the number of `round_finished` that each is.
const OF_ROUND: [(&str, &str); 3] = [
    ("accuracy", "accuracy_mean"),
    ("reward", "reward_mean"),
    ("env_steps_per_s", "perf/env_steps_per_s"),
];
/// And of `learner_update`; the variance of returns is that of steps in which there was a choice.
const OF_UPDATE: [(&str, &str); 3] = [
    ("entropy", "entropy_mean"),
    ("kl", "approx_kl"),
    ("explained_variance", "explained_variance_free"),
];
/// And of `episode_finished`, averaged over the envs that have it.
const OF_EPISODE: [(&str, &str); 4] = [
    ("test_accuracy", "test_accuracy"),
    ("accuracy_committed", "committed_accuracy"),
    ("committed_seeds", "committed"),
    ("params_ratio", "param_ratio"),
];
/// The host that never grew, behind the last round.
const HOST_ALONE: &str = "main/accuracy_host_alone";

/// Charts in which curves are compared, in the tab "Custom scalars".
const CHARTS: [Chart; 3] = [
    Chart {
        title: "accuracy (%): envs, on the test part, with committed seeds alone, host that never grew",
        tags: &[
            "main/accuracy$",
            "main/test_accuracy",
            "main/accuracy_committed",
            "main/accuracy_host_alone",
        ],
    },
    Chart {
        title: "growth: committed seeds, parameters per parameter of the host",
        tags: &["main/committed_seeds", "main/params_ratio"],
    },
    Chart {
        title: "policy: entropy, KL divergence, explained variance",
        tags: &["main/entropy", "main/kl", "main/explained_variance"],
    },
];
/// And of `detail/`.
const DETAIL_CHARTS: [Chart; 3] = [
    Chart {
        title: "validation accuracy of each env (%)",
        tags: &[r"detail/env\d+/val_accuracy"],
    },
    Chart {
        title: "train loss of each env",
        tags: &[r"detail/env\d+/train_loss"],
    },
    Chart {
        title: "entropy of each head, where there was a choice",
        tags: &["detail/policy/head_entropy_avail/.*"],
    },
];

/// Writes curves for TensorBoard.
#[derive(Default)]
pub struct TensorBoardSink {
    has_detail: bool,
    /// What was set for this run beside its scenario file, by dotted path.
    hparams: BTreeMap<String, HParam>,
    file: AppendFile,
    max_steps: Option<u32>,
    totals: Totals,
    step: Option<StepMean>,
    /// Sum and number of each curve of [`OF_EPISODE`] in the round.
    episodes: [(f64, u32); OF_EPISODE.len()],
    /// Of the newest point, as the console counts.
    round: u32,
}

/// Since the run began.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    growth: GrowthCounts,
    rollbacks: u64,
}

/// Sums over the envs that have reported one step.
#[derive(Clone, Copy, Debug)]
struct StepMean {
    round: u32,
    step: u32,
    at: Timestamp,
    envs: u32,
    sums: Curves,
}

/// Names and values of an env's curves.
type Curves = [(&'static str, f64); 6];

fn env_curves(row: &EnvStep) -> Curves {
    [
        ("train_loss", row.train_loss.0),
        ("train_accuracy", row.train_accuracy.0),
        ("val_loss", row.val_loss.0),
        ("val_accuracy", row.val_accuracy.0),
        ("params_total", row.params_total as f64),
        ("params_committed", row.params_committed as f64),
    ]
}

impl TensorBoardSink {
    /// `None` if nothing is to be written. `hparams` are what was set for this run, by dotted path.
    pub fn new(mode: TensorBoard, hparams: BTreeMap<String, HParam>) -> Option<Self> {
        (mode != TensorBoard::Off).then(|| Self {
            has_detail: mode == TensorBoard::All,
            hparams,
            ..Self::default()
        })
    }

    fn add(&mut self, record: &Record) {
        self.file.pending.extend(record.framed());
    }

    fn put(&mut self, at: Timestamp, step: u32, tag: &str, value: f64) {
        let scalar = Scalar {
            tag,
            value: value as f32,
            step: step.into(),
        };
        self.add(&Record::scalar(seconds(at), &scalar));
    }

    /// The numbers of `data` that `main` lists, and every one under `detail/{group}/{key}` where all is asked for; lists and
    /// texts are no curves.
    fn put_numbers(
        &mut self,
        event: &Event,
        (main, group): (&[(&str, &str)], &str),
        data: &impl Serialize,
    ) -> Result<(), SinkError> {
        let numbers = numbers_of(data)?;
        self.round = event.round.unwrap_or_default() + 1;
        for (name, key) in main {
            if let Some((_, value)) = numbers.iter().find(|(tag, _)| tag == key) {
                self.put(event.t, self.round, &format!("main/{name}"), *value);
            }
        }
        if self.has_detail {
            for (key, value) in numbers {
                self.put(event.t, self.round, &format!("detail/{group}/{key}"), value);
            }
        }
        Ok(())
    }

    fn take_episode(&mut self, episode: &EpisodeFinished) -> Result<(), SinkError> {
        let numbers = numbers_of(episode)?;
        for ((_, key), (sum, count)) in OF_EPISODE.iter().zip(&mut self.episodes) {
            if let Some((_, value)) = numbers.iter().find(|(tag, _)| tag == key) {
                (*sum, *count) = (*sum + value, *count + 1);
            }
        }
        Ok(())
    }

    fn put_round(&mut self, event: &Event, round: &RoundFinished) -> Result<(), SinkError> {
        self.put_numbers(event, (&OF_ROUND, "round"), round)?;
        for ((name, _), (sum, count)) in OF_EPISODE.into_iter().zip(std::mem::take(&mut self.episodes)) {
            if count > 0 {
                self.put(event.t, self.round, &format!("main/{name}"), sum / f64::from(count));
            }
        }
        for (name, value) in &round.metrics {
            self.put(event.t, self.round, &format!("main/{name}"), value.0);
        }
        if !self.has_detail {
            return Ok(());
        }
        let Totals { growth, rollbacks } = self.totals;
        for (name, total) in [
            ("germinated", growth.germinated.into()),
            ("committed", growth.committed.into()),
            ("pruned", growth.pruned.into()),
            ("rollbacks", rollbacks),
        ] {
            let tag = format!("detail/seeds/{name}_total");
            self.put(event.t, self.round, &tag, total as f64);
        }
        Ok(())
    }

    fn take_step(&mut self, event: &Event, row: &EnvStep) {
        let (true, Some(round), Some(step), Some(env)) = (self.has_detail, event.round, event.step, event.env) else {
            return;
        };
        if self.step.is_some_and(|mean| (mean.round, mean.step) != (round, step)) {
            self.put_step_means();
        }
        let curves = env_curves(row);
        let mean = self.step.get_or_insert(StepMean {
            round,
            step,
            at: event.t,
            envs: 0,
            sums: curves.map(|(name, _)| (name, 0.0)),
        });
        mean.envs += 1;
        for ((_, sum), (_, value)) in mean.sums.iter_mut().zip(curves) {
            *sum += value;
        }
        if let Some(run_step) = self.run_step(round, step) {
            for (name, value) in curves {
                self.put(event.t, run_step, &format!("detail/env{env}/{name}"), value);
            }
        }
    }

    fn put_step_means(&mut self) {
        let Some(mean) = self.step.take() else { return };
        let Some(run_step) = self.run_step(mean.round, mean.step) else {
            return;
        };
        for (name, sum) in mean.sums {
            let value = sum / f64::from(mean.envs);
            self.put(mean.at, run_step, &format!("detail/env_mean/{name}"), value);
        }
    }

    /// `round * max_steps + (step - 1)`.
    fn run_step(&self, round: u32, step: u32) -> Option<u32> {
        round.checked_mul(self.max_steps?)?.checked_add(step.checked_sub(1)?)
    }

    fn take(&mut self, event: &Event) -> Result<(), SinkError> {
        match &event.payload {
            Payload::RunStarted(run) => self.max_steps = Some(run.max_steps),
            Payload::EnvStep(row) => self.take_step(event, row),
            Payload::SeedGerminated(_) => self.totals.growth.germinated += 1,
            Payload::SeedCommitted(_) => self.totals.growth.committed += 1,
            Payload::SeedPruned(_) => self.totals.growth.pruned += 1,
            Payload::GovernorRollback(_) => self.totals.rollbacks += 1,
            Payload::LearnerUpdate(update) => {
                self.put_numbers(event, (&OF_UPDATE, "policy"), update)?;
            }
            Payload::EpisodeFinished(episode) => self.take_episode(episode)?,
            Payload::BaselineMeasured(host) => self.put(event.t, self.round, HOST_ALONE, host.val_accuracy.0),
            Payload::RoundFinished(finished) => {
                self.put_step_means();
                self.put_round(event, finished)?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Sink for TensorBoardSink {
    fn name(&self) -> &str {
        "tensorboard"
    }

    fn start(&mut self, run: &RunInfo) -> Result<(), SinkError> {
        let now = Timestamp::now();
        if let Some(earlier) = &run.earlier {
            self.totals.rollbacks = earlier.live.confounders.rollbacks;
            for round in &earlier.live.rounds {
                self.totals.growth += round.told.growth;
            }
        }
        self.file = create_in(&run.directory.join(FOLDER), now)?;
        let now = seconds(now);
        self.add(&Record::version(now, FILE_VERSION));
        // The first file of a run says it for all.
        if run.earlier.is_none() {
            let detail = self.has_detail.then_some(("detail", &DETAIL_CHARTS[..]));
            let layout: Vec<_> = [("run", &CHARTS[..])].into_iter().chain(detail).collect();
            self.add(&Record::layout(now, &layout));
            if !self.hparams.is_empty() {
                self.add(&Record::hparams(now, &self.hparams));
            }
        }
        self.file.write_out()
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
        for event in events {
            self.take(event)?;
        }
        let ends_round = |event: &Arc<Event>| matches!(event.payload, Payload::RoundFinished(_));
        if events.iter().any(ends_round) {
            self.file.write_out()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.file.write_out()
    }

    fn finish(&mut self, _run: &RunFinished) -> Result<(), SinkError> {
        self.put_step_means();
        self.file.write_out()
    }
}

/// A new file in `folder`: a resumed run adds one to those that are there.
fn create_in(folder: &Path, now: Timestamp) -> Result<AppendFile, SinkError> {
    storage::create_dir_all(folder).at(folder)?;
    let (second, pid) = (now.milliseconds() / 1000, std::process::id());
    let mut attempt = 0_u32;
    loop {
        let path = folder.join(format!("events.out.tfevents.{second}.{HOST}.{pid}.{attempt}"));
        match AppendFile::create(&path) {
            Ok(file) => return Ok(file),
            Err(error) if error.source.kind() == ErrorKind::AlreadyExists => attempt += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

fn seconds(at: Timestamp) -> f64 {
    at.milliseconds() as f64 / 1000.0
}

/// Every number and flag of `data` under its key; keys of maps behind a slash.
fn numbers_of(data: &impl Serialize) -> Result<Vec<(String, f64)>, SinkError> {
    let mut numbers = Vec::new();
    collect_numbers("", &serde_json::to_value(data)?, &mut numbers);
    Ok(numbers)
}

fn collect_numbers(path: &str, value: &Value, numbers: &mut Vec<(String, f64)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let below = match path {
                    "" => key.clone(),
                    path => format!("{path}/{key}"),
                };
                collect_numbers(&below, value, numbers);
            }
        }
        Value::Bool(flag) => numbers.push((path.to_owned(), f64::from(u8::from(*flag)))),
        number => numbers.extend(Num::deserialize(number).map(|number| (path.to_owned(), number.0))),
    }
}

#[cfg(test)]
mod tests;
