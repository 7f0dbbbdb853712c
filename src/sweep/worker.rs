//! Workers: they take trials that are free, have them played, and write their results, until nothing is left.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::child::Attempt;
use super::folder::SweepFolder;
use super::lease::{Lease, Leases, Setbacks};
use super::outcome::{TrialEnd, TrialResult, is_still_to_do, set_damaged_aside, write_rung};
use super::place::{Place, tidy};
use super::plan::{Plan, Trial};
use super::player::{MOST_MISPLACED, Player, Processes, WorkError};
use super::state::{SweepState, TrialSegment, TrialState};
use crate::compare::Metric;
use crate::health::FileError;
use crate::run::StopSignal;
use crate::threads::in_this_log;

/// Between two looks at a folder in which everything is being played by others.
const PAUSE: Duration = Duration::from_millis(500);

/// The part of a sweep that a worker begins with: the `index`-th of `count` equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub index: usize,
    /// At least `index`.
    pub count: usize,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    fn holds(self, trial: usize) -> bool {
        trial % self.count == self.index - 1
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .map(|(index, count)| (index.parse(), count.parse()));
        match numbers {
            Some((Ok(index), Ok(count))) if 1 <= index && index <= count => Ok(Self { index, count }),
            _ => Err(format!("`{text}` isn't a shard; valid: i/n with 1 <= i <= n, e.g. 2/8")),
        }
    }
}

/// The settings of a worker.
#[derive(Clone, Debug)]
pub struct WorkOptions {
    /// Trials that it begins with; when none of them is left it helps with the rest.
    pub shard: Shard,
    /// Only this trial.
    pub only: Option<String>,
    /// Trials at once.
    pub parallel: usize,
    /// Worker threads of a trial.
    pub threads: usize,
    /// `true` if it ends when nothing is free, instead of waiting for trials whose workers may be lost.
    pub leaves: bool,
    /// Commit of the program, which results name.
    pub commit: Option<&'static str>,
    /// This program, which plays the trials.
    pub program: PathBuf,
}

/// Something that a worker tells.
#[derive(Clone, Debug)]
pub enum WorkerEvent<'a> {
    /// It has taken a trial.
    Begun(&'a Trial),
    /// A trial has ended.
    Ended(&'a Trial, &'a TrialResult),
    /// A trial has reached a rung, and scored so much.
    Scored(&'a Trial, TrialSegment, f64),
    /// A trial has failed, or was killed, and is tried again.
    Again(&'a Trial, &'a str),
    /// The place did not let a trial play: the worker pauses.
    Pauses(&'a Trial, &'a str, Duration),
    /// The trial that this worker was to play is in other hands, and is left there.
    Left(&'a Trial, &'a TrialState),
}

/// Works on a sweep until nothing is left of it, or `stop` is asked for.
///
/// # Errors
/// A folder that cannot be read or written.
pub fn work(
    folder: &SweepFolder,
    plan: &Plan,
    options: &WorkOptions,
    stop: &StopSignal,
    tell: &(dyn Fn(WorkerEvent) + Sync),
) -> Result<(), WorkError> {
    tidy(folder, plan.lease())?;
    set_damaged_aside(folder, plan)?;
    let player = Processes {
        folder,
        plan,
        threads: options.threads,
        program: &options.program,
        stop,
    };
    let worker = Worker::new(folder, &player, plan, options, stop, tell);
    std::thread::scope(|scope| {
        let players: Vec<_> = (0..options.parallel)
            .map(|_| scope.spawn(in_this_log(|| worker.play_all())))
            .collect();
        let ended = players
            .into_iter()
            .map(|player| player.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

pub(super) struct Worker<'a> {
    place: &'a dyn Place,
    player: &'a dyn Player,
    plan: &'a Plan,
    options: &'a WorkOptions,
    stop: &'a StopSignal,
    tell: &'a (dyn Fn(WorkerEvent) + Sync),
    /// Trials in the order in which they are looked for.
    order: Vec<&'a Trial>,
    /// Lock of the look: one thread at a time looks for a trial, and all of them use its results.
    look: Mutex<Option<Look<'a>>>,
    /// Trials that the place did not let play since one was played.
    misplaced: AtomicU32,
}

/// The worker's own part, then what it can help with; of both all points of a replicate before the next, so that what changes on
/// a machine meanwhile meets all points alike.
fn order<'a>(plan: &'a Plan, options: &WorkOptions) -> Vec<&'a Trial> {
    let is_meant = |trial: &Trial| options.only.as_ref().is_none_or(|only| *only == trial.id);
    let meant = plan.trials.iter().enumerate().filter(|(_, trial)| is_meant(trial));
    let mut order: Vec<_> = meant.collect();
    order.sort_by_key(|(index, trial)| (!options.shard.holds(*index), trial.replicate));
    order.into_iter().map(|(_, trial)| trial).collect()
}

/// A view of the folder taken at once: the threads of a worker go through it together, each trial once. Later changes by others
/// do no harm, since a lease can be created only once.
struct Look<'a> {
    state: SweepState<'a>,
    at: Duration,
    /// Number of trials, in the worker's order, that have been gone through.
    seen: usize,
    /// `true` if all of those have ended.
    have_ended: bool,
}

/// A worker's next task: none for now, or none any more.
type Next<'a> = ControlFlow<(), Option<Task<'a>>>;

/// A segment of a trial that this worker holds.
struct Task<'a> {
    trial: &'a Trial,
    segment: TrialSegment,
    lease: Lease<'a>,
    /// Number of failures after which it fails for good.
    chances: u32,
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        place: &'a dyn Place,
        player: &'a dyn Player,
        plan: &'a Plan,
        options: &'a WorkOptions,
        stop: &'a StopSignal,
        tell: &'a (dyn Fn(WorkerEvent) + Sync),
    ) -> Self {
        Self {
            place,
            player,
            plan,
            options,
            stop,
            tell,
            order: order(plan, options),
            look: Mutex::new(None),
            misplaced: AtomicU32::new(0),
        }
    }

    /// Plays one trial at a time until nothing is left.
    pub(super) fn play_all(&self) -> Result<(), WorkError> {
        while !self.stop.is_requested() {
            match self.next()? {
                Next::Continue(Some(task)) => {
                    let trial = task.trial;
                    if let Some(reason) = self.play(task)? {
                        self.wait_for_the_place(trial, reason)?;
                    }
                    // What has just ended may let others continue.
                    *self.look.lock().unwrap_or_else(PoisonError::into_inner) = None;
                }
                Next::Continue(None) => self.place.pause(PAUSE),
                Next::Break(()) => break,
            }
        }
        Ok(())
    }

    fn next(&self) -> Result<Next<'a>, WorkError> {
        let mut shared = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.place.elapsed();
        let mut look = match shared.take().filter(|look| now < look.at + PAUSE) {
            Some(look) => look,
            None => Look {
                at: now,
                state: SweepState::read(
                    self.place,
                    self.plan,
                    Leases::read(self.place, self.plan.lease(), self.place.now()?)?,
                )?,
                seen: 0,
                have_ended: true,
            },
        };
        let next = self.search(&mut look)?;
        *shared = Some(look);
        Ok(next)
    }

    /// The next trial of a look that this process gets hold of.
    fn search(&self, look: &mut Look<'a>) -> Result<Next<'a>, WorkError> {
        while let Some(&trial) = self.order.get(look.seen) {
            look.seen += 1;
            let state = look.state.of(trial)?;
            match state {
                TrialState::Ended(_) => {}
                _ if look.state.is_given_up(trial) => look.have_ended &= self.give_up(trial, &look.state)?,
                TrialState::Waiting(segment) => match look.state.leases.take(&trial.id)? {
                    // Between the look and the lease somebody may have ended it.
                    Some(lease) if is_still_to_do(self.place, &trial.id, segment.rung)? => {
                        let retried = look.state.results.retried(&trial.id);
                        return Ok(Next::Continue(Some(Task {
                            trial,
                            segment,
                            lease,
                            chances: (retried + 1) * (self.plan.sweep.budget.retries + 1),
                        })));
                    }
                    Some(lease) => lease.release()?,
                    None => look.have_ended = false,
                },
                TrialState::Playing(_) | TrialState::AtRung(_) => {
                    look.have_ended = false;
                    if self.options.only.is_some() && self.options.leaves {
                        (self.tell)(WorkerEvent::Left(trial, &state));
                    }
                }
            }
        }
        Ok(if look.have_ended || self.options.leaves {
            Next::Break(())
        } else {
            Next::Continue(None)
        })
    }

    /// Gives up a trial that others have overtaken at a rung: every worker finds it, and one of them writes it down. Returns
    /// whether this one has.
    fn give_up(&self, trial: &Trial, state: &SweepState) -> Result<bool, WorkError> {
        let Some(lease) = state.leases.take(&trial.id)? else {
            return Ok(false);
        };
        let attempts = state.leases.newest(&trial.id);
        let result = TrialResult {
            training: Some(self.player.training(trial)?),
            ..self.result(TrialEnd::GivenUp, attempts, lease.content.played_s)
        };
        self.end(trial, &result)?;
        lease.release()?;
        Ok(true)
    }

    /// Pauses for longer after every trial that the place did not let play.
    fn wait_for_the_place(&self, trial: &Trial, reason: String) -> Result<(), WorkError> {
        let count = self.misplaced.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(pause) = pause_after(count) else {
            return Err(WorkError::Place(reason));
        };
        (self.tell)(WorkerEvent::Pauses(trial, &reason, pause));
        self.pauses(pause, || Ok(true))?;
        Ok(())
    }

    /// Plays a segment, as often as it may fail; the lease is let go at the end. Why, if the place did not let it play.
    fn play(&self, task: Task) -> Result<Option<String>, WorkError> {
        let Task {
            trial,
            segment,
            mut lease,
            chances,
        } = task;
        (self.tell)(WorkerEvent::Begun(trial));
        let mut misplaced = None;
        loop {
            let began = self.place.elapsed();
            let ended = self.player.play(trial, segment, &mut lease)?;
            lease.content.played_s += (self.place.elapsed() - began).as_secs_f64();
            if matches!(ended, Attempt::Done(_)) {
                self.misplaced.store(0, Ordering::Relaxed);
            }
            let (mut by_place, mut in_time) = (false, false);
            let (reason, pause) = match ended {
                Attempt::Done(training) if segment.is_last => {
                    let result = TrialResult {
                        training: Some(*training),
                        ..self.result(TrialEnd::Done, lease.attempt, lease.content.played_s)
                    };
                    self.end(trial, &result)?;
                    break;
                }
                Attempt::Done(training) => {
                    let score = training.score(Metric::Accuracy).unwrap_or(f64::NEG_INFINITY);
                    write_rung(self.place, &trial.id, segment.rung, score)?;
                    (self.tell)(WorkerEvent::Scored(trial, segment, score));
                    break;
                }
                Attempt::LetGo => break,
                Attempt::Misplaced(reason) => {
                    misplaced = Some(reason);
                    break;
                }
                Attempt::SetBack(reason) => {
                    by_place = true;
                    let newest = self.player.newest_checkpoint(trial);
                    match lease.content.setbacks.pause_after(newest) {
                        Some(pause) => (reason, Some(pause)),
                        None => (too_often(&reason), None),
                    }
                }
                Attempt::Failed {
                    reason,
                    timed_out,
                    is_final,
                } => {
                    in_time = timed_out;
                    lease.content.failures += 1;
                    let is_tried_again = !is_final && lease.content.failures < chances;
                    (reason, is_tried_again.then_some(Duration::ZERO))
                }
            };
            if !lease.renew()? {
                break;
            }
            if let Some(pause) = pause {
                (self.tell)(WorkerEvent::Again(trial, &reason));
                if self.pauses(pause, || lease.renew())? {
                    continue;
                }
                break;
            }
            let result = TrialResult {
                reason: Some(reason),
                timed_out: in_time,
                by_place,
                training: self.player.training(trial).ok(),
                ..self.result(TrialEnd::Failed, lease.attempt, lease.content.played_s)
            };
            self.end(trial, &result)?;
            break;
        }
        // What was played counts for any worker that continues it.
        lease.renew()?;
        lease.release()?;
        Ok(misplaced)
    }

    /// A result of this program.
    fn result(&self, end: TrialEnd, attempts: u32, wall_s: f64) -> TrialResult {
        TrialResult {
            commit: self.options.commit.map(str::to_owned),
            ..TrialResult::new(end, attempts, wall_s)
        }
    }

    fn end(&self, trial: &Trial, result: &TrialResult) -> Result<(), FileError> {
        result.write(self.place, &trial.id)?;
        (self.tell)(WorkerEvent::Ended(trial, result));
        Ok(())
    }

    /// Returns whether a pause has passed in which no stop was asked for and `may_wait` always agreed.
    fn pauses(&self, pause: Duration, may_wait: impl Fn() -> Result<bool, FileError>) -> Result<bool, FileError> {
        let until = self.place.elapsed() + pause;
        loop {
            let left = until.saturating_sub(self.place.elapsed());
            if left.is_zero() {
                return Ok(true);
            }
            if self.stop.is_requested() || !may_wait()? {
                return Ok(false);
            }
            self.place.pause(left.min(PAUSE));
        }
    }
}

/// Pause of a worker after `misplaced` trials in a row that its machine or folder did not let run; `None`: it ends.
fn pause_after(misplaced: u32) -> Option<Duration> {
    const LONGEST: u64 = 300;
    (misplaced < MOST_MISPLACED).then(|| Duration::from_secs((1 << misplaced.saturating_sub(1)).min(LONGEST)))
}

/// The reason of a failure that the machine caused.
fn too_often(reason: &str) -> String {
    format!(
        "{reason}: {} times in a row without a newer checkpoint, so the machine is the cause; to try the trial again, repeat \
         the command",
        Setbacks::MOST
    )
}

#[cfg(test)]
mod tests;
