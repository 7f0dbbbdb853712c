//! Kept state × interruption, of processes: a run and a sweep of the program itself are killed, asked to stop, or meet a fault
//! of their storage; the program says what it should and exits as documented, and the same sweep, or `resume`, comes to the
//! same end. The rest of the matrix is `tests/engine/interruptions/`, which says which of the pairs are played.
//!
//! A sweep plays its trials with the program that it is itself, so this test is that program as well: with [`ORDER`] in its
//! environment it does what its arguments say, on the storage that the order asks for. A pair that has failed is played again by
//! `cargo test --test failing_program -- --include-ignored "ROW / COLUMN"`.

#[path = "support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "this test plays no engine of its own")]
mod support;
#[path = "support/interruptions.rs"]
mod shared;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use simic_engine::cli;
use simic_engine::internals::engine::Extension;
use simic_engine::internals::random::{ContentRng, Draw};
use simic_engine::internals::storage::{Fault, StorageFaults};

use shared::{files, seed_of_commit, unpaired};
use support::{first_difference, is_long, latest};

/// `none`; [`WORKSPACE`]; or the subcommand whose storage fails, the fault, the operation and the folder: processes that a
/// command starts are others.
const ORDER: &str = "SIMIC_ENGINE_TEST_FAULT";
/// Tells the variable after the command, in the last line.
const WORKSPACE: &str = "workspace";
const VARIABLE: &str = "CUBLAS_WORKSPACE_CONFIG";

const SCENARIO: &str = r#"(
    name: "failing",
    task: preset("digits_minimal", (batches_per_step: count(1), val_batches_per_step: count(1))),
    run: (rounds: 5, n_envs: 1, max_steps: 6, seed: 7),
    policy: (controller: "actor_critic"),
)"#;
/// A trial that is killed has not failed: none may fail.
const SWEEP: &str = r#"(
    name: "failing",
    scenario: "scenario.ron",
    points: [(name: "learnt", set: []), (name: "wait", set: [(path: "policy.controller", value: "wait")])],
    replicates: 1,
    evaluation: (episodes: 1, seeds: [10007], mode: sample),
    judge: (control: "wait"),
    budget: (parallel: 1, threads: 1, retries: 0),
)"#;
/// Times and attempts of a trial in its tables: they differ between two plays.
const TIMES: [&str; 3] = ["train_s", "wall_s", "attempts"];
/// Longer than any of it takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// Moments of a play at which it may be interrupted.
const MOMENTS: u64 = 12;

/// Columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    Storage(Fault),
    /// Its process, by SIGKILL.
    Killed,
    /// The process that plays a trial of the sweep.
    TrialKilled,
    /// By SIGINT.
    AskedToStop,
}

use Interruption::{AskedToStop, Killed, Storage, TrialKilled};

/// Rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Run,
    Sweep,
}

fn main() -> ExitCode {
    if let Ok(order) = std::env::var(ORDER) {
        return play(&order);
    }
    let faults = Fault::ALL.into_iter().map(Storage);
    let columns: Vec<Interruption> = faults.chain([Killed, AskedToStop, TrialKilled]).collect();
    let rows = [Row::Run, Row::Sweep].into_iter();
    let pairs = rows.flat_map(|row| columns.iter().map(move |&how| (row, how)));
    let pairs: Vec<_> = pairs.filter(|&pair| pair != (Row::Run, TrialKilled)).collect();
    let mut rng = ContentRng::from_seed(seed_of_commit());
    // The column that the other half of the matrix does not have, and one that it has: every row, every column.
    let drawn = pairs[rng.below(columns.len() as u64 - 1) as usize];
    let drawn = [(Row::Sweep, TrialKilled), drawn];
    let moment = rng.below(MOMENTS);
    let trial = |(row, how): (Row, Interruption)| {
        let is_drawn = drawn.contains(&(row, how));
        let moments = if is_long() { 0..MOMENTS } else { moment..moment + 1 };
        let test = move || moments.into_iter().try_for_each(|moment| compare(row, how, moment));
        Trial::test(format!("{row:?} / {how:?}"), test).with_ignored_flag(!is_drawn && !is_long())
    };
    let mut trials: Vec<Trial> = pairs.into_iter().map(trial).collect();
    let name = "the workspace of cuBLAS is fixed before a command has threads";
    trials.push(Trial::test(name, fixes_workspace));
    let name = "a run that can never be saved stops after its third checkpoint and advises no resume";
    trials.push(Trial::test(name, stops_unsaved));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Does what the process's arguments say, and leaves word of the operation that was struck and of the number of all.
fn play(order: &str) -> ExitCode {
    if order == WORKSPACE {
        let code = cli::main(Extension::default());
        println!("{}", std::env::var(VARIABLE).unwrap_or_default());
        return code;
    }
    let words: Vec<&str> = order.splitn(4, ' ').collect();
    let &[command, fault, n, root] = words.as_slice() else {
        return cli::main(Extension::default());
    };
    if std::env::args().nth(1).is_none_or(|own| own != command) {
        return cli::main(Extension::default());
    }
    let fault = Fault::ALL.into_iter().find(|known| format!("{known:?}") == fault);
    let (fault, n) = (fault.expect("a fault"), n.parse().expect("a number"));
    let faults = StorageFaults::under(Path::new(root), n, fault);
    let code = cli::main(Extension::default());
    let report = format!("{} {}", faults.operations(), faults.struck().unwrap_or_default());
    std::fs::write(Path::new(root).with_extension("struck"), report).expect("it is written");
    code
}

fn fixes_workspace() -> Result<(), libtest_mimic::Failed> {
    let place = Place::new();
    let mut command = place.command(&["list"], WORKSPACE);
    let output = command.env_remove(VARIABLE).output().expect("it starts");
    match String::from_utf8_lossy(&output.stdout).lines().next_back() {
        Some(":4096:8") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// Its checkpoints find no space: before the first round, after it, and after the second of five.
fn stops_unsaved() -> Result<(), libtest_mimic::Failed> {
    let place = Place::new();
    let run = place.runs().join("lost");
    let order = format!("run NoSpace 1 {}", run.join("checkpoints").display());
    let arguments = ["run", "scenario.ron", "--id", "lost", "--set", "policy.controller=wait"];
    let Output { status, stdout, stderr } = place.command(&arguments, &order).output().expect("it starts");
    let [shown, said] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let lines = support::lines(&run);
    let rounds = lines.iter().filter(|line| line["type"] == "round_finished").count();
    let advises = [&shown, &said].iter().any(|text| text.contains("engine resume"));
    let is_reported = said.contains("nothing of the run is on disk") && said.contains("it cannot be continued");
    match (status.code(), rounds, is_reported, advises) {
        (Some(5), 2, true, false) => Ok(()),
        ended => Err(format!("{ended:?}: {said}{shown}").into()),
    }
}

/// A folder with a scenario, a sweep of it, and what was played of them.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a temporary folder"));
        for (name, text) in [("scenario.ron", SCENARIO), ("sweep.ron", SWEEP)] {
            std::fs::write(place.0.path().join(name), text).expect("a file");
        }
        // Its name is not watched, and would be lost with the power.
        std::fs::create_dir(place.runs()).expect("a folder");
        place
    }

    fn runs(&self) -> PathBuf {
        self.0.path().join("runs")
    }

    fn command(&self, arguments: &[&str], order: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(arguments).current_dir(self.0.path()).env(ORDER, order);
        // Absolute, as the folder of the faults.
        command.env("SIMIC_ENGINE_RUNS", self.runs());
        command
    }

    fn ends(&self, arguments: &[&str]) -> Output {
        self.command(arguments, "none").output().expect("it starts")
    }

    fn succeeds(&self, arguments: &[&str]) -> Result<(), String> {
        let Output { status, stdout, stderr } = self.ends(arguments);
        let [shown, said] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let failed = format!("{arguments:?} ends with {status}: {said}{shown}");
        if status.success() { Ok(()) } else { Err(failed) }
    }

    /// Plays a row on a storage that fails at its n-th operation: how it ended, the operation, and the number of all.
    fn struck(&self, row: Row, fault: Fault, n: u64) -> (Output, String, u64) {
        let order = format!("{} {fault:?} {n} {}", row.arguments()[0], self.runs().display());
        let output = self.command(&row.arguments(), &order).output().expect("it starts");
        let place = self.runs().with_extension("struck");
        let text = std::fs::read_to_string(&place).expect("the program leaves word");
        std::fs::remove_file(place).expect("it was there");
        let (operations, struck) = text.split_once(' ').expect("two words");
        (output, struck.to_owned(), operations.parse().expect("a number"))
    }

    /// Runs that have come to the end of a round, in the order of their names; of a sweep those of trials.
    fn begun(&self, row: Row, round: u64) -> Vec<PathBuf> {
        let runs = match row {
            Row::Run => vec![latest(&self.runs())],
            Row::Sweep => folders(&row.folder(self).join("trials")),
        };
        // A name is as long as every other; the first ones are pruned once there are many.
        let checkpoint = format!("round-{round:06}");
        let has_come = |run: &PathBuf| {
            let folder = std::fs::read_dir(run.join("checkpoints"));
            let names = folder.into_iter().flatten().flatten();
            let mut rounds = names.filter_map(|entry| entry.file_name().into_string().ok());
            rounds.any(|name| name.starts_with("round-") && name >= checkpoint)
        };
        runs.into_iter().filter(has_come).collect()
    }
}

impl Row {
    fn arguments(self) -> [&'static str; 2] {
        match self {
            Self::Run => ["run", "scenario.ron"],
            Self::Sweep => ["sweep", "sweep.ron"],
        }
    }

    /// The folder that it has left.
    fn folder(self, place: &Place) -> PathBuf {
        match self {
            Self::Run => latest(&place.runs()),
            Self::Sweep => place.runs().join("sweeps/failing"),
        }
    }

    /// Plays it to its end after it was interrupted; `began`: something of it must have lasted.
    fn resume(self, place: &Place, began: bool) -> Result<(), String> {
        match self {
            Self::Sweep => {
                // By two workers at once, where there is a plan for certain.
                let mut worker = quietly(&mut place.command(&self.arguments(), "none"));
                let other = began.then(|| quietly(&mut place.command(&["sweep", "work", "failing"], "none")));
                let ended = ends_well(&mut worker);
                other.map_or(Ok(()), |mut other| ends_well(&mut other)).and(ended)?;
                place.succeeds(&["check", "failing"])
            }
            Self::Run => {
                let resumed = place.ends(&["resume", "latest"]);
                match resumed.status.code() {
                    Some(0) => {}
                    // Nothing of it had lasted: it is begun again.
                    Some(2) if !began => place.succeeds(&self.arguments())?,
                    code => {
                        let said = String::from_utf8_lossy(&resumed.stderr);
                        return Err(format!("resume ends with {code:?}: {said}"));
                    }
                }
                place.succeeds(&["check", "latest"])
            }
        }
    }

    /// The first thing in which two plays differ that are to be the same.
    fn difference(self, one: &Place, other: &Place) -> Option<String> {
        let [ours, theirs] = [one, other].map(|place| self.folder(place));
        if self == Self::Run {
            return first_difference(&ours, &theirs).map(|difference| difference.to_string());
        }
        let tables = [&ours, &theirs].map(|sweep| table(sweep));
        if tables[0] != tables[1] {
            return Some(format!("trials.csv: {tables:?}"));
        }
        let verdicts = [&ours, &theirs].map(|sweep| document(&sweep.join("sweep.json"))["judgement"].take());
        if verdicts[0] != verdicts[1] || verdicts[0].is_null() {
            return Some(format!("sweep.json: {verdicts:?}"));
        }
        let trials = [&ours, &theirs].map(|sweep| folders(&sweep.join("trials")));
        let pairs = trials[0].iter().zip(&trials[1]);
        let mut differences = pairs.filter_map(|(one, other)| first_difference(one, other));
        differences.next().map(|difference| difference.to_string())
    }
}

fn document(path: &Path) -> serde_json::Value {
    let text = std::fs::read(path).expect("it is there");
    serde_json::from_slice(&text).expect("JSON")
}

/// Begins a command that no one listens to.
fn quietly(command: &mut Command) -> Child {
    let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
    silent.spawn().expect("it starts")
}

/// Waits for a worker, but not for ever: two that take a trial from each other never end.
fn ends_well(worker: &mut Child) -> Result<(), String> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        match worker.try_wait().expect("it is awaited") {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("a worker ends with {status}")),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    let _ = worker.kill();
    Err("a worker never ends".into())
}

/// Runs in a folder, by name.
fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    runs.retain(|run| run.join("events.jsonl").exists() && !run.to_string_lossy().contains("discarded"));
    runs.sort();
    runs
}

/// Cells of `trials.csv` except for its times, by column.
fn table(sweep: &Path) -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(sweep.join("trials.csv")).expect("trials.csv");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let columns: Vec<String> = lines.next().expect("a head").collect();
    let rows: Vec<Vec<String>> = lines.map(Iterator::collect).collect();
    let cells = |column: usize| rows.iter().map(|row| row[column].clone()).collect();
    let columns = columns.into_iter().enumerate();
    let mut table: BTreeMap<_, _> = columns.map(|(column, name)| (name, cells(column))).collect();
    table.retain(|name, _| !TIMES.contains(&name.as_str()));
    table
}

/// The number of times that trials of a sweep were taken.
fn leases(root: &Path) -> usize {
    std::fs::read_dir(root.join("leases")).into_iter().flatten().count()
}

/// Exit codes and what goes with them; see docs/reference/telemetry-and-runs.md. Of a killed process there is no exit code.
fn is_as_documented(place: &Place, ended: &Output, fault: Fault) -> bool {
    let names_place = String::from_utf8_lossy(&ended.stderr).contains(&*place.runs().to_string_lossy());
    match ended.status.code() {
        _ if fault.is_deadly() => true,
        Some(0) => true,
        Some(2) => names_place && files(&place.runs()).is_empty(),
        Some(3 | 5) => names_place,
        _ => false,
    }
}

/// A row that is interrupted and resumed comes to the same end as one that is left alone.
fn compare(row: Row, how: Interruption, moment: u64) -> Result<(), libtest_mimic::Failed> {
    let (alone, place) = (Place::new(), Place::new());
    let (ended, _, operations) = alone.struck(row, Fault::InputOutput, u64::MAX);
    if !ended.status.success() {
        return Err(String::from_utf8_lossy(&ended.stderr).into_owned().into());
    }
    let what = match how {
        Storage(fault) => {
            let n = 1 + (operations - 1) * moment / MOMENTS;
            let (ended, operation, _) = place.struck(row, fault, n);
            if operation.is_empty() {
                return Err(format!("of {operations} operations {n} was not struck").into());
            }
            if !is_as_documented(&place, &ended, fault) {
                return Err(format!("{operation}: {ended:?}, {:?} is left", files(&place.runs()).keys()).into());
            }
            operation
        }
        Killed | AskedToStop | TrialKilled => signal(&place, row, how, moment)?,
    };
    let failed = |why: String| format!("moment {moment}, {what}: {why}");
    row.resume(&place, !matches!(how, Storage(_))).map_err(failed)?;
    if let Some(difference) = row.difference(&alone, &place) {
        return Err(failed(difference).into());
    }
    let folders = [&alone, &place].map(|place| row.folder(place));
    let [ours, theirs] = folders.each_ref().map(|folder| {
        let mut files = files(folder);
        // Their numbers are compared.
        files.retain(|name, _| !name.starts_with("leases/"));
        files
    });
    let left = unpaired(&ours, &theirs);
    if !left.is_empty() {
        return Err(failed(format!("too many or too few of {left:?}")).into());
    }
    let [once, taken] = folders.each_ref().map(|folder| leases(folder));
    if taken > once + 1 {
        return Err(failed(format!("{taken} times a trial was taken, left alone {once}")).into());
    }
    Ok(())
}

/// Begins a row and sends a signal once a round is over, of a sweep in one of its trials.
fn signal(place: &Place, row: Row, how: Interruption, moment: u64) -> Result<String, String> {
    let round = 1 + moment % 3;
    let trials = if row == Row::Sweep { 1 + moment as usize % 2 } else { 1 };
    let mut child = quietly(&mut place.command(&row.arguments(), "none"));
    let begun = Instant::now();
    let comes_so_far = || loop {
        if place.begun(row, round).len() >= trials {
            break true;
        }
        if begun.elapsed() > PATIENCE {
            break false;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let (name, id) = match how {
        _ if !comes_so_far() => ("KILL", Err("it never came so far".into())),
        AskedToStop => ("INT", Ok(child.id())),
        TrialKilled => ("KILL", player(place, row)),
        _ => ("KILL", Ok(child.id())),
    };
    // Where none is found, the program itself is ended.
    let target = id.as_ref().unwrap_or(&child.id()).to_string();
    let sent = Command::new("kill").args(["-s", name, &target]).status();
    let sent = sent.expect("kill is there");
    let code = child.wait().expect("it ends").code();
    id?;
    let expected = match how {
        AskedToStop => Some(130),
        TrialKilled => Some(0),
        _ => None,
    };
    let what = format!("SIG{name} after round {round} of {trials} runs");
    if sent.success() && code == expected {
        Ok(what)
    } else {
        Err(format!("{what}: it ends with {code:?}"))
    }
}

/// The process that plays a trial, by its lease: the newest that names one.
fn player(place: &Place, row: Row) -> Result<u32, String> {
    let leases = std::fs::read_dir(row.folder(place).join("leases"))
        .expect("leases")
        .flatten();
    let pids = leases.filter_map(|lease| {
        let text = std::fs::read(lease.path()).ok()?;
        let lease_of = serde_json::from_slice::<serde_json::Value>(&text).ok()?;
        let pid = lease_of["player"]["pid"].as_u64()? as u32;
        Path::new(&format!("/proc/{pid}")).exists().then_some(pid)
    });
    pids.last().ok_or_else(|| "no lease names its player".into())
}
