//! The protocol of leases and results in simulated worlds: several workers, of which some are frozen or killed, a shared
//! folder that fails and shows names late, and a clock that jumps. All that happens in a world follows from its number.
//!
//! Every worker is a thread, and one of them runs at a time: one that touches the folder, or lets time pass, hands over to
//! the one that is due next. The code is that of [`Worker`]; simulated are [`Place`] and [`Player`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, MutexGuard};
use std::time::SystemTime;

use serde_json::json;

use super::*;
use crate::checkpoint::CheckpointId;
use crate::compare::TrainingRecord;
use crate::random::{Domain, Draw, RunRng};
use crate::sweep::{Shelf, SuccessiveHalving, Worker as Process, read_result};
use crate::telemetry::ReadError;

const LEASE_S: u64 = 60;
const ROUNDS: u32 = 4;
/// A round of a trial, in parts after which its worker gives a sign of life.
const ROUND_PARTS: u32 = 3;
/// Time after which nothing goes wrong in a world any more.
const TROUBLE: Duration = Duration::from_secs(1200);
/// Time after which a world that still has something left will never end.
const LONGEST: Duration = Duration::from_secs(20_000);

struct SimulatedFile {
    content: Vec<u8>,
    /// Time of the last write by the file system's clock.
    modified: SystemTime,
    /// The time at which it got its name, and the worker that gave it. Others may see it later.
    named: (Duration, usize),
}

/// A run of a trial.
#[derive(Default)]
struct SimulatedRun {
    /// Rounds before the newest checkpoint.
    checkpoint: u32,
    /// Rounds that were begun.
    begun: u32,
}

#[derive(Default)]
struct Actor {
    due: Duration,
    incarnation: u64,
    /// All of its commands have ended.
    is_over: bool,
}

struct State {
    rng: RunRng,
    now: Duration,
    /// The file system's clock, seconds before or after the time.
    skew_s: i64,
    files: BTreeMap<(Shelf, String), SimulatedFile>,
    runs: BTreeMap<String, SimulatedRun>,
    actors: Vec<Actor>,
    /// The worker that runs.
    turn: usize,
    /// Troubles so far, each of which may cost a round.
    troubles: u32,
}

struct World {
    state: Mutex<State>,
    /// One a worker.
    turns: Vec<Condvar>,
    /// `true` if things go wrong.
    is_rough: bool,
}

/// The end of a process that is killed.
struct Killed;

fn time_of(state: &State) -> SystemTime {
    // Far enough from the beginning for any jump.
    let seconds = 1_000_000 + state.now.as_secs() as i64 + state.skew_s;
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds as u64)
}

impl State {
    fn happens(&mut self, one_in: u64) -> bool {
        self.rng.below(one_in) == 0
    }

    fn seconds(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_secs(from + self.rng.below(to - from + 1))
    }
}

impl World {
    fn new(seed: u64, workers: usize, is_rough: bool) -> Self {
        Self {
            state: Mutex::new(State {
                rng: RunRng::new(seed, Domain::FaultInjection, &[0]),
                now: Duration::ZERO,
                skew_s: 0,
                files: BTreeMap::new(),
                runs: BTreeMap::new(),
                actors: (0..workers).map(|_| Actor::default()).collect(),
                turn: 0,
                troubles: 0,
            }),
            turns: (0..workers).map(|_| Condvar::new()).collect(),
            is_rough,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_rough(&self, state: &State) -> bool {
        self.is_rough && state.now < TROUBLE
    }

    /// Hands over to the worker that is due next, until this one is.
    fn hand_over<'w>(&self, mut state: MutexGuard<'w, State>, me: usize) -> MutexGuard<'w, State> {
        let next = (0..state.actors.len())
            .filter(|&actor| !state.actors[actor].is_over)
            .min_by_key(|&actor| state.actors[actor].due);
        let Some(next) = next else { return state };
        state.turn = next;
        let due = state.actors[next].due;
        state.now = state.now.max(due);
        if next != me {
            self.turns[next].notify_one();
        }
        self.wait(state, me)
    }

    fn wait<'w>(&self, mut state: MutexGuard<'w, State>, me: usize) -> MutexGuard<'w, State> {
        while state.turn != me && !state.actors[me].is_over {
            state = self.turns[me].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Lets time pass for a worker, in which it may be frozen, and ends it if it is killed.
    fn pass(&self, me: usize, time: Duration) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let mut time = time + Duration::from_millis(1 + state.rng.below(40));
        let mut is_killed = false;
        if self.is_rough(&state) {
            if state.happens(900) {
                time += state.seconds(1, 4 * LEASE_S);
                state.troubles += 1;
            }
            if state.happens(6000) {
                let jump = state.seconds(0, 40 * LEASE_S).as_secs() as i64;
                state.skew_s += if state.happens(2) { jump } else { -jump };
                // Every lease may count as silent.
                state.troubles += state.actors.len() as u32;
            }
            is_killed = state.happens(700);
        }
        assert!(state.now < LONGEST, "the world does not end");
        state.actors[me].due = state.now + time;
        let mut state = self.hand_over(state, me);
        if is_killed {
            state.troubles += 1;
            drop(state);
            resume_unwind(Box::new(Killed));
        }
        state
    }
}

/// A worker's way to the folder.
struct Mount<'w> {
    world: &'w World,
    me: usize,
    incarnation: u64,
}

impl Mount<'_> {
    fn touch(&self, shelf: Shelf, name: &str) -> Result<MutexGuard<'_, State>, FileError> {
        let mut state = self.world.pass(self.me, Duration::ZERO);
        if self.world.is_rough(&state) && state.happens(400) {
            state.troubles += 1;
            return Err(self.error(shelf, name, io::Error::from_raw_os_error(5)));
        }
        Ok(state)
    }

    fn error(&self, shelf: Shelf, name: &str, source: io::Error) -> FileError {
        FileError {
            path: self.path_of(shelf, name),
            source,
        }
    }

    fn file<'s>(&self, state: &'s State, shelf: Shelf, name: &str) -> Result<&'s SimulatedFile, FileError> {
        let found = state.files.get(&(shelf, name.to_owned()));
        found.ok_or_else(|| self.error(shelf, name, io::ErrorKind::NotFound.into()))
    }

    fn put(&self, state: &mut State, shelf: Shelf, name: &str, content: &[u8]) {
        let named = (state.now, self.me);
        let modified = time_of(state);
        let file = state.files.entry((shelf, name.to_owned()));
        let file = file.or_insert_with(|| SimulatedFile {
            content: Vec::new(),
            modified,
            named,
        });
        (file.content, file.modified) = (content.to_vec(), modified);
    }

    fn set(&self, shelf: Shelf, name: &str, content: &[u8]) -> Result<(), FileError> {
        let mut state = self.touch(shelf, name)?;
        self.put(&mut state, shelf, name, content);
        Ok(())
    }
}

impl Place for Mount<'_> {
    fn path_of(&self, shelf: Shelf, name: &str) -> PathBuf {
        PathBuf::from(format!("{shelf:?}")).join(name)
    }

    fn now(&self) -> Result<SystemTime, FileError> {
        Ok(time_of(&*self.touch(Shelf::Leases, ".clock")?))
    }

    fn names(&self, shelf: Shelf) -> Result<BTreeSet<String>, FileError> {
        let mut state = self.touch(shelf, "")?;
        let is_late = self.world.is_rough && state.happens(4);
        let late = if is_late { state.seconds(0, 30) } else { Duration::ZERO };
        let is_seen = |file: &SimulatedFile| file.named.1 == self.me || file.named.0 + late <= state.now;
        let files = state.files.iter();
        let on_shelf = files.filter(|((other, _), file)| *other == shelf && is_seen(file));
        Ok(on_shelf.map(|((_, name), _)| name.clone()).collect())
    }

    fn has(&self, shelf: Shelf, name: &str) -> Result<bool, FileError> {
        Ok(self.touch(shelf, name)?.files.contains_key(&(shelf, name.to_owned())))
    }

    fn read(&self, shelf: Shelf, name: &str) -> Result<Vec<u8>, FileError> {
        let state = self.touch(shelf, name)?;
        Ok(self.file(&state, shelf, name)?.content.clone())
    }

    fn modified(&self, shelf: Shelf, name: &str) -> Result<SystemTime, FileError> {
        let state = self.touch(shelf, name)?;
        Ok(self.file(&state, shelf, name)?.modified)
    }

    fn create(&self, shelf: Shelf, name: &str) -> Result<bool, FileError> {
        let mut state = self.touch(shelf, name)?;
        let is_free = !state.files.contains_key(&(shelf, name.to_owned()));
        if is_free {
            self.put(&mut state, shelf, name, b"");
        }
        Ok(is_free)
    }

    fn write(&self, shelf: Shelf, name: &str, content: &[u8]) -> Result<(), FileError> {
        // Truncated first: a worker that is killed or fails in between leaves half of it.
        self.set(shelf, name, &content[..content.len() / 2])?;
        self.set(shelf, name, content)
    }

    fn age(&self, shelf: Shelf, name: &str) -> Result<(), FileError> {
        let mut state = self.touch(shelf, name)?;
        if let Some(file) = state.files.get_mut(&(shelf, name.to_owned())) {
            file.modified = SystemTime::UNIX_EPOCH;
        }
        Ok(())
    }

    fn replace(&self, shelf: Shelf, name: &str, content: &[u8]) -> Result<(), FileError> {
        self.set(shelf, name, content)?;
        // It may have been written and fail nevertheless.
        self.touch(shelf, name).map(drop)
    }

    fn rename(&self, shelf: Shelf, from: &str, to: &str) -> Result<bool, FileError> {
        let mut state = self.touch(shelf, from)?;
        let file = state.files.remove(&(shelf, from.to_owned()));
        let is_there = file.is_some();
        state.files.extend(file.map(|file| ((shelf, to.to_owned()), file)));
        Ok(is_there)
    }

    /// Two workers a machine.
    fn this(&self) -> Process {
        Process {
            machine: format!("machine-{}", self.me / 2),
            pid: self.me as u32,
            started: Some(self.incarnation),
        }
    }

    fn is_gone(&self, worker: &Process) -> bool {
        let state = self.world.lock();
        let actor = &state.actors[worker.pid as usize];
        worker.machine == self.this().machine && (actor.is_over || worker.started != Some(actor.incarnation))
    }

    fn elapsed(&self) -> Duration {
        self.world.lock().now
    }

    fn pause(&self, time: Duration) {
        drop(self.world.pass(self.me, time));
    }
}

/// The score of a trial: any order that has nothing to do with that of its ids.
fn score(id: &str) -> f64 {
    let hash = blake3::hash(id.as_bytes());
    f64::from(hash.as_bytes()[0])
}

fn training_of(id: &str, rounds: u32) -> TrainingRecord {
    let episode = json!({
        "seed": 0, "round": 0, "env": 0, "accuracy": score(id), "reward": 0.0, "param_ratio": 1.0, "rollbacks": 0,
    });
    let record = json!({
        "run_id": id, "scenario": "", "task": "", "controller": "", "seed": 0, "rounds": rounds, "is_complete": true,
        "is_evaluated": false, "episodes": [episode], "curve": [],
    });
    serde_json::from_value(record).expect("a training")
}

impl Mount<'_> {
    /// Plays a trial as its process does: from its newest checkpoint on, and no further than the fence. `None`: up to its end.
    fn play_trial(&self, trial: &Trial, until: u32, lease: &mut Lease) -> Result<Option<Attempt>, WorkError> {
        loop {
            let mut state = self.world.pass(self.me, Duration::ZERO);
            let run = state.runs.entry(trial.id.clone()).or_default();
            let round = run.checkpoint;
            if round >= until {
                return Ok(None);
            }
            run.begun += 1;
            if self.world.is_rough(&state) && state.happens(30) {
                state.troubles += 1;
                let reason = "killed".to_owned();
                return Ok(Some(match state.happens(3) {
                    true => Attempt::Misplaced(reason),
                    false => Attempt::SetBack(reason),
                }));
            }
            drop(state);
            for _ in 0..ROUND_PARTS {
                self.pause(Duration::from_secs(LEASE_S / 5));
                if !lease.renew()? {
                    return Ok(Some(Attempt::LetGo));
                }
            }
            // The fence: a process that was frozen here writes nothing that its successor has not.
            if self.has(Shelf::Leases, &lease.successor())? {
                return Ok(Some(Attempt::LetGo));
            }
            let mut state = self.world.lock();
            let run = state.runs.entry(trial.id.clone()).or_default();
            run.checkpoint = run.checkpoint.max(round + 1);
        }
    }
}

impl Player for Mount<'_> {
    fn play(&self, trial: &Trial, segment: TrialSegment, lease: &mut Lease) -> Result<Attempt, WorkError> {
        let state = self.world.lock();
        let is_there = |shelf, name: String| state.files.contains_key(&(shelf, name));
        let is_mine = !is_there(Shelf::Leases, lease.successor());
        let has_ended = is_there(Shelf::Results, format!("{}.done.json", trial.id));
        let id = &trial.id;
        assert!(!(is_mine && has_ended), "trial {id} has ended and is begun again");
        drop(state);
        let done = || Attempt::Done(Box::new(training_of(id, segment.until)));
        Ok(self.play_trial(trial, segment.until, lease)?.unwrap_or_else(done))
    }

    fn newest_checkpoint(&self, trial: &Trial) -> Option<CheckpointId> {
        let state = self.world.lock();
        let rounds = state.runs.get(&trial.id)?.checkpoint;
        (rounds > 0).then(|| CheckpointId::before(rounds))
    }

    fn training(&self, trial: &Trial) -> Result<TrainingRecord, ReadError> {
        let rounds = self.world.lock().runs.get(&trial.id).map_or(0, |run| run.checkpoint);
        Ok(training_of(&trial.id, rounds))
    }
}

/// The same command again and again, until it says that nothing is left.
fn live(world: &World, plan: &Plan, me: usize, workers: usize) {
    drop(world.wait(world.lock(), me));
    loop {
        let incarnation = world.lock().actors[me].incarnation;
        let mount = Mount { world, me, incarnation };
        let command = || {
            set_damaged_aside(&mount, plan)?;
            try_misplaced_again(&mount, plan)?;
            let (index, count) = (me + 1, workers);
            let options = WorkOptions {
                shard: Shard { index, count },
                leaves: false,
                ..leaving(None)
            };
            let stop = StopSignal::default();
            Worker::new(&mount, &mount, plan, &options, &stop, &|_| {}).play_all()
        };
        let (is_over, panic) = match catch_unwind(AssertUnwindSafe(command)) {
            Ok(ended) => (ended.is_ok(), None),
            Err(panic) => (!panic.is::<Killed>(), Some(panic)),
        };
        let mut state = world.lock();
        if !is_over {
            let later = state.seconds(1, 3 * LEASE_S);
            state.actors[me].due = state.now + later;
        }
        state.actors[me].incarnation += 1;
        state.actors[me].is_over = is_over;
        drop(world.hand_over(state, me));
        match panic {
            Some(panic) if is_over => resume_unwind(panic),
            _ if is_over => return,
            _ => {}
        }
    }
}

/// A sweep of one of the kinds that there are.
fn sweep(seed: u64) -> Plan {
    let (first_rounds, factor) = (1, 2);
    let halving = SuccessiveHalving { first_rounds, factor };
    let mut plan = plan("simulated", 4, SweepFile::default());
    plan.sweep.budget.lease_s = LEASE_S;
    plan.sweep.early_stop = (seed % 2 == 1).then_some(halving);
    plan.trials.iter_mut().for_each(|trial| trial.rounds = ROUNDS);
    plan
}

/// The end of every trial with its training, the amount that was played for it, and the problems.
#[derive(Debug, PartialEq)]
struct Outcome {
    ends: Vec<(TrialEnd, Option<TrainingRecord>)>,
    begun: u32,
    troubles: u32,
    /// Names of results. A trial has one.
    results: usize,
}

fn play(seed: u64, plan: &Plan, is_rough: bool) -> Outcome {
    let workers = 2 + (seed / 2 % 3) as usize;
    let world = World::new(seed, workers, is_rough);
    std::thread::scope(|scope| {
        for me in 0..workers {
            let world = &world;
            scope.spawn(move || live(world, plan, me, workers));
        }
    });
    let begun = world.lock().runs.values().map(|run| run.begun).sum();
    let troubles = world.lock().troubles;
    world.lock().actors[0].is_over = false;
    let is_rough = false;
    let world = &World { is_rough, ..world };
    let (me, incarnation) = (0, 0);
    let mount = Mount { world, me, incarnation };
    let results = Results::read(&mount).unwrap();
    let suffixes = [".done.json", ".given_up.json", ".failed.json"];
    let is_end = |name: &&String| suffixes.iter().any(|end| name.ends_with(end));
    let names = mount.names(Shelf::Results).unwrap();
    let ends = plan.trials.iter().map(|trial| {
        let end = results.end(&trial.id);
        let end = end.unwrap_or_else(|| panic!("world {seed}: trial {} has no result", trial.id));
        (end, read_result(&mount, &trial.id, end).unwrap().training)
    });
    Outcome {
        ends: ends.collect(),
        begun,
        troubles,
        results: names.iter().filter(is_end).count(),
    }
}

#[test]
fn in_a_hundred_worlds_every_trial_ends_as_if_nothing_had_gone_wrong() {
    trials_end_as_if_nothing_had_gone_wrong(0..100);
}

#[test]
#[ignore = "long tier"]
fn in_a_thousand_worlds_every_trial_ends_as_if_nothing_had_gone_wrong() {
    trials_end_as_if_nothing_had_gone_wrong(100..1_100);
}

fn trials_end_as_if_nothing_had_gone_wrong(worlds: Range<u64>) {
    let calm: Vec<Outcome> = (0..2).map(|kind| play(kind, &sweep(kind), false)).collect();
    let mut troubles = 0;
    for seed in worlds.clone() {
        let plan = sweep(seed);
        let undisturbed = &calm[(seed % 2) as usize];

        let outcome = play(seed, &plan, true);

        assert_eq!(outcome.ends, undisturbed.ends, "world {seed}");
        assert_eq!(outcome.results, plan.trials.len(), "world {seed}: one result a trial");
        let (begun, wrong, played) = (outcome.begun, outcome.troubles, undisturbed.begun);
        assert!(
            begun <= played + wrong,
            "world {seed}: {begun} rounds were begun where {played} are to be played and {wrong} things went wrong"
        );
        troubles += wrong;
    }
    let worlds = worlds.count();
    assert!(
        troubles as usize > worlds,
        "{troubles} things went wrong in {worlds} worlds"
    );
}

#[test]
fn where_nothing_goes_wrong_every_round_is_played_once() {
    for seed in 0..9 {
        let outcome = play(seed, &sweep(seed), false);

        // Of four trials half continue after each of two rungs: 4 + 2 + 2 rounds and a last one.
        let expected = if seed % 2 == 1 { 4 + 2 + 2 } else { 4 * ROUNDS };
        assert_eq!((outcome.begun, outcome.troubles), (expected, 0), "world {seed}");
    }
}

#[test]
fn a_world_is_the_same_whenever_it_is_played() {
    let [one, other] = [7, 7].map(|seed| play(seed, &sweep(seed), true));

    assert_eq!(one, other);
}
