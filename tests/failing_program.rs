//! The program on a storage that fails at its n-th operation: what it says and exits with, and that the same sweep, or
//! `resume`, comes to the same end once the storage is repaired.
//!
//! A sweep plays its trials with the program that it is itself, so this test is that program as well: with [`ORDER`] in its
//! environment it does what its arguments say, on the storage that the order asks for. `SIMIC_ENGINE_TEST_STORAGE=long` lets
//! every operation fail, not a sample of them.

#[path = "support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "this test plays no engine of its own")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};
use simic_engine::cli;
use simic_engine::internals::engine::Extension;
use simic_engine::internals::storage::{Fault, StorageFaults};

use support::{first_difference, latest};

/// `none`, or the subcommand whose storage fails, the fault, the operation and the folder: processes that a command starts are
/// others.
const ORDER: &str = "SIMIC_ENGINE_TEST_FAULT";

const SCENARIO: &str = r#"(
    name: "failing",
    task: preset("digits_minimal", (batches_per_step: count(1), val_batches_per_step: count(1))),
    run: (rounds: 1, n_envs: 1, max_steps: 2, seed: 7),
    policy: (controller: "heuristic"),
)"#;
const SWEEP: &str = r#"(
    name: "failing",
    scenario: "scenario.ron",
    replicates: 2,
    budget: (parallel: 1, threads: 1),
)"#;
/// What a trial took, by its tables: differs between two plays.
const TIMES: [&str; 3] = ["train_s", "wall_s", "attempts"];

fn main() -> ExitCode {
    if let Ok(order) = std::env::var(ORDER) {
        return play(&order);
    }
    let of_fault = |fault: Fault| {
        [
            Trial::test(
                format!("a_sweep_that_meets_{fault:?}_continues_to_the_same_tables"),
                move || every_operation_fails::<Sweep>(fault),
            ),
            Trial::test(
                format!("a_run_that_meets_{fault:?}_ends_as_documented_and_is_resumed"),
                move || every_operation_fails::<Run>(fault),
            ),
        ]
    };
    let trials = Fault::ALL.into_iter().flat_map(of_fault).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Does what the process's arguments say, and leaves word of the operation that was struck.
fn play(order: &str) -> ExitCode {
    let words: Vec<&str> = order.splitn(4, ' ').collect();
    let &[command, fault, n, root] = words.as_slice() else {
        return cli::main(Extension::default());
    };
    if std::env::args().nth(1).is_none_or(|own| own != command) {
        return cli::main(Extension::default());
    }
    let fault = Fault::ALL.into_iter().find(|known| format!("{known:?}") == fault);
    let (fault, n, root) = (
        fault.expect("a fault"),
        n.parse().expect("a number"),
        PathBuf::from(root),
    );
    let faults = StorageFaults::under(&root, n, fault);
    let code = cli::main(Extension::default());
    std::fs::write(root.with_extension("struck"), faults.struck().unwrap_or_default()).expect("it is written");
    code
}

/// What a command came to.
struct Ended {
    code: Option<i32>,
    shown: String,
    said: String,
}

/// A folder with a scenario, a sweep of it, and what was played of them.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a temporary folder"));
        for (name, text) in [("scenario.ron", SCENARIO), ("sweep.ron", SWEEP)] {
            std::fs::write(place.0.path().join(name), text).expect("a file");
        }
        place
    }

    fn runs(&self) -> PathBuf {
        self.0.path().join("runs")
    }

    fn ends(&self, arguments: &[&str], order: &str) -> Ended {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.0.path()).env(ORDER, order);
        // Absolute, as the folder of the faults.
        let output = command
            .env("SIMIC_ENGINE_RUNS", self.runs())
            .output()
            .expect("it starts");
        Ended {
            code: output.status.code(),
            shown: String::from_utf8_lossy(&output.stdout).into_owned(),
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn succeeds(&self, arguments: &[&str]) -> Result<(), String> {
        let Ended { code, shown, said } = self.ends(arguments, "none");
        let failed = format!("{arguments:?} ends with {code:?}: {said}{shown}");
        if code == Some(0) { Ok(()) } else { Err(failed) }
    }

    /// The operation that failed, and how the command ended; `None` once there are no more operations.
    fn is_struck(&self, arguments: &[&str], fault: Fault, n: u64) -> Option<(String, Ended)> {
        let runs = self.runs();
        let order = format!("{} {fault:?} {n} {}", arguments[0], runs.display());
        let ended = self.ends(arguments, &order);
        let place = runs.with_extension("struck");
        let struck = std::fs::read_to_string(&place).unwrap_or_else(|_| panic!("{order}: {}", ended.said));
        std::fs::remove_file(place).expect("it was there");
        (!struck.is_empty()).then_some((struck, ended))
    }
}

/// Files below `root`, but for what tells of interruptions.
fn names(root: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() && !path.is_symlink() {
                true => folders.push(path),
                // And these but for their last digits.
                false if path.parent().is_some_and(|folder| folder.ends_with("leases")) => {
                    _ = names.insert(below(root, &path.with_extension("")));
                }
                false => _ = names.insert(below(root, &path)),
            }
        }
    }
    names.retain(|name| !name.contains("discarded"));
    names
}

fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

/// Something that is played, interrupted by a failure and continued.
trait Played {
    /// An ordinary test fails one of this number of operations.
    const STRIDE: u64;
    const ARGUMENTS: [&'static str; 2];

    /// What it has left behind.
    fn folder(place: &Place) -> PathBuf;

    /// Plays it to its end after it was struck.
    fn mend(place: &Place) -> Result<(), String>;

    /// The first thing in which two plays differ that are to be the same.
    fn difference(one: &Place, other: &Place) -> Option<String>;
}

struct Sweep;

impl Sweep {
    /// Cells of `trials.csv` but for its times, by column.
    fn table(place: &Place) -> BTreeMap<String, Vec<String>> {
        let text = std::fs::read_to_string(Self::folder(place).join("trials.csv")).expect("trials.csv");
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
        let columns: Vec<String> = lines.next().expect("a head").collect();
        let rows: Vec<Vec<String>> = lines.map(Iterator::collect).collect();
        let cells = |column: usize| rows.iter().map(|row| row[column].clone()).collect();
        let columns = columns.into_iter().enumerate();
        let columns = columns.filter(|(_, name)| !TIMES.contains(&name.as_str()));
        columns.map(|(column, name)| (name, cells(column))).collect()
    }

    fn trials(place: &Place) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(Self::folder(place).join("trials")).expect("trials");
        let mut trials: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        trials.retain(|trial| trial.join("events.jsonl").exists());
        trials.sort();
        trials
    }
}

impl Played for Sweep {
    const STRIDE: u64 = 29;
    const ARGUMENTS: [&'static str; 2] = ["sweep", "sweep.ron"];

    fn folder(place: &Place) -> PathBuf {
        place.runs().join("sweeps/failing")
    }

    fn mend(place: &Place) -> Result<(), String> {
        place.succeeds(&Self::ARGUMENTS)?;
        place.succeeds(&["check", "failing"])
    }

    fn difference(one: &Place, other: &Place) -> Option<String> {
        let (ours, theirs) = (Self::table(one), Self::table(other));
        if ours != theirs {
            return Some(format!("trials.csv: {ours:?} and {theirs:?}"));
        }
        let pairs = Self::trials(one).into_iter().zip(Self::trials(other));
        let mut differences = pairs.filter_map(|(one, other)| first_difference(&one, &other));
        differences.next().map(|difference| difference.to_string())
    }
}

struct Run;

impl Played for Run {
    const STRIDE: u64 = 41;
    const ARGUMENTS: [&'static str; 2] = ["run", "scenario.ron"];

    fn folder(place: &Place) -> PathBuf {
        latest(&place.runs())
    }

    fn mend(place: &Place) -> Result<(), String> {
        let resumed = place.ends(&["resume", "latest"], "none");
        match resumed.code {
            Some(0) => {}
            // Nothing of it had lasted: it is begun again.
            Some(2) => place.succeeds(&Self::ARGUMENTS)?,
            code => return Err(format!("resume ends with {code:?}: {}", resumed.said)),
        }
        place.succeeds(&["check", "latest"])
    }

    fn difference(one: &Place, other: &Place) -> Option<String> {
        let difference = first_difference(&Self::folder(one), &Self::folder(other));
        difference.map(|difference| difference.to_string())
    }
}

/// Exit codes and what goes with them; see docs/reference/training-loop.md. Of a killed process there is no exit code.
fn is_as_documented(place: &Place, ended: &Ended, fault: Fault) -> bool {
    let names_place = ended.said.contains(&*place.runs().to_string_lossy());
    match ended.code {
        _ if fault.is_deadly() => true,
        Some(0) => true,
        Some(2) => names_place && names(&place.runs()).is_empty(),
        Some(3 | 5) => names_place,
        _ => false,
    }
}

/// Lets operations fail, each in a play of its own, until a play gets through without meeting the fault.
fn every_operation_fails<P: Played>(fault: Fault) -> Result<(), libtest_mimic::Failed> {
    let undisturbed = Place::new();
    undisturbed.succeeds(&P::ARGUMENTS)?;
    let is_long = std::env::var("SIMIC_ENGINE_TEST_STORAGE").is_ok_and(|length| length == "long");
    let stride = if is_long { 1 } else { P::STRIDE };
    // Other operations for other faults.
    let first = 1 + fault as u64 % stride;

    let mut struck = 0;
    for n in (first..).step_by(stride as usize) {
        let place = Place::new();
        let Some((operation, ended)) = place.is_struck(&P::ARGUMENTS, fault, n) else {
            break;
        };
        let failed = |why: String| format!("{fault:?} at operation {n}, {operation}: {why}");
        if !is_as_documented(&place, &ended, fault) {
            let left = names(&place.runs());
            let why = format!("exit code {:?}, {left:?} is left: {}", ended.code, ended.said);
            return Err(failed(why).into());
        }
        P::mend(&place).map_err(failed)?;
        if let Some(difference) = P::difference(&undisturbed, &place) {
            return Err(failed(difference).into());
        }
        let (ours, theirs) = (names(&P::folder(&undisturbed)), names(&P::folder(&place)));
        let left: Vec<&String> = ours.symmetric_difference(&theirs).collect();
        if !left.is_empty() {
            return Err(failed(format!("too many or too few of {left:?}")).into());
        }
        struck += 1;
    }
    println!("{fault:?}: {struck} operations struck");
    if struck * stride < 20 {
        return Err(format!("only {struck} operations, one of {stride}, go through the storage").into());
    }
    Ok(())
}
