//! Worlds: each is drawn from its number alone, played twice, once undisturbed and once with interruptions and another number
//! of threads, and must come to the same end both times.

mod dice;
mod laws;
mod lives;
mod record;
mod scenario;
mod unruly;

use std::fmt;
use std::time::{Duration, Instant};

use simic_engine::internals::engine::Extension;
use simic_engine::internals::inspect::{DiffKind, Extent, diff};
use simic_engine::internals::storage::Fault;

pub use record::Sights;

use dice::Dice;
use lives::{Interruption, Lives, Played};
use record::{Record, problems};
use scenario::Drawn;

/// A scenario and what interrupts it.
pub struct World {
    pub seed: u64,
    scenario: Drawn,
    /// Of the undisturbed run, and of the other.
    threads: [usize; 2],
    interruptions: Vec<Interruption>,
}

/// What a world came to.
pub struct Story {
    /// In a few words.
    outline: String,
    /// Faults of the scenario, and interruptions that came to pass.
    pub faults: usize,
    interruptions: Vec<String>,
    /// Whether the scenario's faults ended the run.
    has_failed: bool,
    /// In both plays.
    pub seen: Sights,
    elapsed: Duration,
}

impl World {
    pub fn of(seed: u64) -> Self {
        let scenario = scenario::draw(seed);
        let dice = &mut Dice::of(seed, 1);
        let threads = if dice.one_in(2) { [1, 2] } else { [2, 1] };
        let interruptions = (0..dice.number(1..=3)).map(|_| match dice.index(6) {
            0 if scenario.rounds > 1 => Interruption::Rounds(dice.number(1..=scenario.rounds - 1) as u32),
            0 | 1 => Interruption::Steps(dice.number(1..=scenario.rounds * scenario.steps - 1)),
            _ => Interruption::Storage {
                fault: dice.one_of(&Fault::ALL),
                permille: dice.number(0..=999),
            },
        });
        Self {
            interruptions: interruptions.collect(),
            seed,
            scenario,
            threads,
        }
    }

    /// Plays it.
    ///
    /// # Errors
    /// What is wrong, with all that is needed to play it again.
    pub fn play(&self) -> Result<Story, String> {
        self.compare()
            .map_err(|what| format!("{self}: {what}\n{}", self.whole()))
    }

    fn compare(&self) -> Result<Story, String> {
        let begun = Instant::now();
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let extension = Extension::new(unruly::register);
        let names = extension.names().map_err(|error| error.to_string())?;
        let [undisturbed_threads, threads] = self.threads;
        let mut lives = Lives {
            scenario: &self.scenario.text,
            catalog: &names.catalog,
            threads: undisturbed_threads,
            expected_failure: None,
            operations: 0,
        };
        let undisturbed = lives.play(&folder.path().join("undisturbed"), &[])?;
        (lives.threads, lives.operations) = (threads, undisturbed.operations);
        lives.expected_failure = undisturbed.failure.as_deref();
        let interrupted = lives.play(&folder.path().join("interrupted"), &self.interruptions)?;
        let mut seen = Sights::default();
        for (name, played) in [("undisturbed", &undisturbed), ("interrupted", &interrupted)] {
            let record = Record::read(&played.run)?;
            let broken = record.broken_laws().into_iter();
            if let Some(what) = broken.chain(problems(&played.run, &names.catalog)).next() {
                return Err(format!("{name}: {what}"));
            }
            seen += record.sights();
        }
        require_same(&undisturbed, &interrupted)?;
        Ok(Story {
            outline: self.to_string(),
            faults: self.scenario.faults + interrupted.interruptions.len(),
            interruptions: interrupted.interruptions,
            has_failed: undisturbed.failure.is_some(),
            seen,
            elapsed: begun.elapsed(),
        })
    }

    /// Everything that was drawn, and of which build it is.
    fn whole(&self) -> String {
        let (scenario, [one, other]) = (&self.scenario.text, self.threads);
        format!(
            "{one} threads, then {other}; interruptions {:?}\n{scenario}\nplay it again with \
             `SIMIC_ENGINE_TEST_WORLD={} cargo test --test engine -- --ignored --nocapture worlds_by_number`",
            self.interruptions, self.seed
        )
    }
}

/// The number and what was drawn, in short.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "world {} {}", self.seed, self.scenario.outline)
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.has_failed { ", failed as it had to" } else { "" };
        let seconds = self.elapsed.as_secs_f64();
        write!(f, "{}: {} faults{end}, {seconds:.1} s", self.outline, self.faults)?;
        self.interruptions.iter().try_for_each(|what| write!(f, "; {what}"))
    }
}

/// Policy, learner, rounds and events are the same, and so is what they failed with.
fn require_same(undisturbed: &Played, interrupted: &Played) -> Result<(), String> {
    if undisturbed.failure != interrupted.failure {
        let [one, other] = [undisturbed, interrupted].map(|played| &played.failure);
        return Err(format!("undisturbed it fails with {one:?}, interrupted with {other:?}"));
    }
    let found = diff(&undisturbed.run, &interrupted.run, &DiffKind::ALL, Extent::First);
    let found = found.map_err(|error| error.to_string())?;
    if let Some(difference) = found.differences.first() {
        return Err(format!("undisturbed and interrupted part: {difference}"));
    }
    let checkpoints = found
        .compared
        .iter()
        .find(|compared| compared.kind == DiffKind::Checkpoints);
    match checkpoints {
        Some(compared) if compared.count > 0 => Ok(()),
        _ => Err("they have no checkpoint in common".into()),
    }
}
