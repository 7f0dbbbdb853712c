//! Plays many small trainings side by side, each on one thread, and keeps what they come to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::Order;
use super::folds::Folds;
use super::methods::{Method, Parts};
use crate::data::Part;
use crate::eval::{PlayEvent, Report};
use crate::grow::{Base, GrowError, Played, put_played, read_played};
use crate::network::GrownNetwork;
use crate::scenario::ron_text;
use crate::threads::in_this_log;

/// One training.
#[derive(Clone, Copy)]
pub struct Training {
    pub method: Method,
    pub rate: f64,
    /// The fold that judges it; `None`: it learns from all images.
    pub fold: Option<usize>,
}

/// All that trainings follow from.
pub struct Trainer<'a> {
    pub base: Base<'a>,
    pub order: &'a Order<'a>,
    pub parts: Parts,
    pub folds: Folds,
    /// Old images that are learnt from again.
    pub replayed: Option<Part>,
    /// Passes over the data.
    pub steps: u32,
    /// Trainings that have been ordered so far, by which they are kept.
    pub ordered: usize,
}

/// What a thread says of its training.
enum Said {
    Step,
    Ended(usize, Box<Result<Played, GrowError>>),
}

impl Trainer<'_> {
    /// Plays them, unless they were played before, in the order of the list; `begins` are the networks that each starts from, and
    /// the given one where there is none.
    ///
    /// # Errors
    /// The first failure; that it was stopped.
    pub fn play(
        &mut self,
        name: &str,
        trainings: &[Training],
        begins: &dyn Fn(&Training) -> Option<usize>,
        report: &mut Report,
    ) -> Result<Vec<Trained>, GrowError> {
        let first = self.ordered;
        self.ordered += trainings.len();
        report(PlayEvent::Begins {
            name,
            share: 0.0,
            steps: trainings.len() as u64 * u64::from(self.steps),
        });
        let starts: Vec<Option<usize>> = trainings.iter().map(begins).collect();
        let (next, (sender, receiver)) = (AtomicUsize::new(0), mpsc::channel());
        let mut found: Vec<Option<Result<Played, GrowError>>> = trainings.iter().map(|_| None).collect();
        let trainer = &*self;
        thread::scope(|scope| {
            for _ in 0..self.order.base.threads.clamp(1, trainings.len().max(1)) {
                let (sender, next, starts) = (sender.clone(), &next, &starts);
                scope.spawn(in_this_log(move || {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(training) = trainings.get(index) else { break };
                        let played = trainer.play_one(first + index, training, starts[index], &sender);
                        let is_last = played.is_err();
                        // Who listens no longer needs no answer.
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
        let mut trained = Vec::new();
        for (index, played) in found.into_iter().enumerate() {
            let stopped = || GrowError::Stopped(self.order.place.clone());
            let played = played.ok_or_else(stopped)??;
            let network = played.network.ok_or_else(|| {
                let Training { method, rate, .. } = trainings[index];
                GrowError::Refused(format!(
                    "a training of `{}` at rate {rate} came to no network",
                    method.name()
                ))
            })?;
            trained.push(Trained {
                number: first + index,
                network,
                diverged: played.diverged > 0,
                macs: played.effort.macs,
                seconds: played.effort.seconds,
            });
        }
        report(PlayEvent::Ends {
            accuracy: None,
            is_kept: false,
        });
        Ok(trained)
    }

    fn play_one(
        &self,
        number: usize,
        training: &Training,
        start: Option<usize>,
        sender: &mpsc::Sender<Said>,
    ) -> Result<Played, GrowError> {
        let (order, &Training { method, rate, fold }) = (self.order, training);
        if let Some(played) = read_played(&order.place, number) {
            return Ok(played);
        }
        let mut variant = self.parts.variant(method, rate, self.steps);
        if let Some(start) = start {
            let path = network_path(order, start);
            variant
                .sets
                .push(("task.weights", format!("Some((path: {}))", ron_text(&path))));
        }
        let prepared = self.base.prepare(&variant)?;
        let replayed = self.replayed.as_ref().filter(|_| method == Method::Replayed);
        let data = self.folds.data(fold, replayed)?;
        let step = |_: &mut _| _ = sender.send(Said::Step);
        let played = self.base.play(&prepared, &variant, &data, step)?;
        let played = played.ok_or_else(|| GrowError::Stopped(order.place.clone()))?;
        put_played(&order.place, number, &played)?;
        Ok(played)
    }
}

/// Where the network of training `number` is kept until the end.
fn network_path(order: &Order, number: usize) -> String {
    let [_, network] = crate::grow::played_files(&order.place, number);
    network.display().to_string()
}

/// What became of a training.
pub struct Trained {
    /// By which it is kept.
    pub number: usize,
    pub network: GrownNetwork,
    /// The governor put an earlier state back.
    pub diverged: bool,
    /// Multiply-accumulates of it.
    pub macs: u64,
    /// Wall time.
    pub seconds: f64,
}
