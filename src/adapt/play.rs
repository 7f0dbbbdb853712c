//! Plays many small trainings in parallel, each on one thread, and keeps their results.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use serde::{Deserialize, Serialize};

use super::Order;
use super::folds::Folds;
use super::methods::{Method, Parts};
use crate::data::Part;
use crate::eval::{PlayEvent, Report};
use crate::files::counted;
use crate::grow::{Base, GrowError, played_files};
use crate::health::AtPath;
use crate::network::GrownNetwork;
use crate::scenario::ron_text;
use crate::storage::replace_synced;
use crate::threads::in_this_log;

/// One training.
#[derive(Clone, Copy)]
pub struct Training {
    pub method: Method,
    pub rate: f64,
    /// The fold that judges it. With `None` it learns from all images.
    pub fold: Option<usize>,
    /// The training whose network it begins with. With `None` it begins with the given one.
    pub begins: Option<usize>,
}

/// The inputs of all trainings.
pub struct Trainer<'a> {
    pub base: Base<'a>,
    pub order: &'a Order<'a>,
    pub parts: Parts,
    pub folds: Folds,
    /// Old images to learn from again.
    pub replayed: Option<Part>,
    /// Passes over the data.
    pub steps: u32,
    /// Number of trainings ordered so far. It identifies the next one.
    pub ordered: usize,
    /// Trainings in all.
    pub planned: usize,
}

/// A message of a thread about its training.
enum Said {
    Step,
    Ended(usize, Box<Result<Trained, GrowError>>),
}

impl Trainer<'_> {
    /// Plays them, unless they were played before.
    ///
    /// # Errors
    /// The first failure, or a stop.
    pub fn play(&mut self, name: &str, trainings: &[Training], report: &mut Report) -> Result<Vec<Trained>, GrowError> {
        if trainings.is_empty() {
            return Ok(Vec::new());
        }
        let first = self.ordered;
        self.ordered += trainings.len();
        report(PlayEvent::Begins {
            name: &format!("{name}, {}", counted(trainings.len(), "training")),
            share: trainings.len() as f64 / self.planned.max(1) as f64,
            steps: trainings.len() as u64 * u64::from(self.steps),
        });
        let (next, (sender, receiver)) = (AtomicUsize::new(0), mpsc::channel());
        let mut found: Vec<Option<Result<Trained, GrowError>>> = trainings.iter().map(|_| None).collect();
        let trainer = &*self;
        thread::scope(|scope| {
            for _ in 0..self.order.base.threads.clamp(1, trainings.len().max(1)) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(in_this_log(move || {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(training) = trainings.get(index) else { break };
                        let played = trainer.play_one(first + index, training, &sender);
                        let is_last = played.is_err();
                        // If the receiver is gone, no one needs the answer.
                        _ = sender.send(Said::Ended(index, Box::new(played)));
                        if is_last {
                            break;
                        }
                    }
                }));
            }
            drop(sender);
            for said in receiver {
                match said {
                    Said::Step => report(PlayEvent::Step),
                    Said::Ended(index, played) => found[index] = Some(*played),
                }
            }
        });
        let stopped = || GrowError::Stopped(self.order.place.clone());
        let trained = found.into_iter().map(|trained| trained.ok_or_else(stopped)?);
        let trained = trained.collect::<Result<Vec<_>, _>>()?;
        let right = || trained.iter().flat_map(|trained| &trained.right);
        let hits = right().filter(|right| **right).count();
        report(PlayEvent::Ends {
            accuracy: right().next().map(|_| 100.0 * hits as f64 / right().count() as f64),
            is_kept: false,
        });
        Ok(trained)
    }

    fn play_one(&self, number: usize, training: &Training, sender: &mpsc::Sender<Said>) -> Result<Trained, GrowError> {
        let (order, &Training { method, rate, fold, .. }) = (self.order, training);
        if let Some(trained) = Trained::read(order, number) {
            return Ok(trained);
        }
        // All trainings make the same number of updates: with old images a pass is twice as long.
        let steps = match method {
            Method::Replayed => self.steps.div_ceil(2),
            _ => self.steps,
        };
        let mut variant = self.parts.variant(method, rate, steps);
        if let Some(begins) = training.begins {
            let [_, path] = played_files(&order.place, begins);
            let path = ron_text(&path.display().to_string());
            variant.sets.push(("task.weights", format!("Some((path: {path}))")));
        }
        let prepared = self.base.prepare(&variant)?;
        let replayed = self.replayed.as_ref().filter(|_| method == Method::Replayed);
        let data = self.folds.data(fold, replayed)?;
        let step = |_: &mut _| _ = sender.send(Said::Step);
        let played = self.base.play(&prepared, &variant, &data, step)?;
        let played = played.ok_or_else(|| GrowError::Stopped(order.place.clone()))?;
        let mut network = played.network.ok_or_else(|| {
            let name = method.name();
            GrowError::Refused(format!("a training of `{name}` at rate {rate} produced no network"))
        })?;
        if method.moves_statistics() {
            let learnt = self.folds.learnt(fold, replayed)?;
            learnt.map(|learnt| learnt.measure(&mut network)).transpose()?;
        }
        // These are measured on images that it has learnt from, or on a fold.
        (network.measures.validation, network.data.validation) = (None, None);
        network.growth.iter_mut().for_each(|seed| seed.measures = None);
        let judges = fold.map(|fold| self.folds.judges(fold)).transpose()?.flatten();
        let right = judges.map(|judges| judges.right(&network)).transpose()?;
        let is_needed = fold.is_none() || method == Method::StatisticsAndHead;
        let trained = Trained {
            number,
            right: right.unwrap_or_default(),
            seconds: played.effort.seconds,
            has_network: is_needed,
            network: Some(network).filter(|_| is_needed),
        };
        trained.put(order)?;
        Ok(trained)
    }
}

/// A finished training.
#[derive(Serialize, Deserialize)]
pub struct Trained {
    /// Number of the training, which names its files.
    pub number: usize,
    /// One entry an image of its fold: `true` if the network classifies it correctly.
    pub right: Vec<bool>,
    /// Wall time.
    pub seconds: f64,
    has_network: bool,
    /// `None` for a fold that no other training begins with.
    #[serde(skip)]
    pub network: Option<GrownNetwork>,
}

impl Trained {
    /// Reads training `number`, if it was written whole.
    fn read(order: &Order, number: usize) -> Option<Self> {
        let [about, network] = played_files(&order.place, number);
        let mut trained: Self = serde_json::from_str(&fs::read_to_string(about).ok()?).ok()?;
        if trained.has_network {
            trained.network = Some(GrownNetwork::load(&network).ok()?);
        }
        Some(trained)
    }

    /// Writes it, its network first: the file about the training marks it as whole.
    fn put(&self, order: &Order) -> Result<(), GrowError> {
        let [about, place] = played_files(&order.place, self.number);
        if let Some(network) = &self.network {
            network.save(&place)?;
        }
        let text = serde_json::to_vec(self).at(&about)?;
        Ok(replace_synced(&about, &text).at(&about)?)
    }
}
