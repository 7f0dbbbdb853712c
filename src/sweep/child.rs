//! A process that plays a part of a trial: an ordinary `run` or `resume` of this program, watched from outside.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::file::Budget;
use super::folder::SweepFolder;
use super::plan::{Plan, Trial};
use super::state::TrialSegment;
use crate::checkpoint::Checkpoints;
use crate::compare::TrainingRecord;
use crate::health::{AtPath, FileError};
use crate::record::RunDirectory;
use crate::storage::{self, ErrorClass, File, sync_folder, sync_folder_of};

const MIB: u64 = 1 << 20;

/// The end of an attempt at a trial.
pub enum Attempt {
    /// Record of the training.
    Done(Box<TrainingRecord>),
    /// The machine didn't let it play: its process was killed, as happens when memory runs out.
    SetBack(String),
    /// Nothing can be played where it is: the place has no room, or fails, by the last error that was printed.
    Misplaced(String),
    /// The process ended by itself, or over a limit.
    Failed {
        /// The last error that was printed, or which limit.
        reason: String,
        /// It ran into `budget.time_limit_s`.
        timed_out: bool,
        /// Another attempt would end in the same way.
        is_final: bool,
    },
    /// Another worker has taken the trial over, or this one was asked to stop.
    LetGo,
}

/// Returns whether the process with this id may continue the trial. It is called at the beginning, and regularly after that.
pub type MayContinue<'a> = dyn FnMut(u32) -> Result<bool, FileError> + 'a;

/// The arguments that play a trial from where it stands up to the end of `segment`: `run` where nothing of it has lasted,
/// else `resume`. What a process that was killed at once has left is set aside. Once the file `fence` is there the trial is another worker's, and the process ends.
///
/// # Errors
/// A folder that cannot be read or set aside.
pub fn arguments(
    sweep: &SweepFolder,
    plan: &Plan,
    trial: &Trial,
    segment: TrialSegment,
    threads: usize,
    fence: &Path,
) -> Result<Vec<String>, FileError> {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let directory = sweep.trial(&trial.id);
    let has_begun = directory.try_exists().at(&directory)?;
    // If a checkpoint is damaged, `resume` reports the problem.
    let is_resumed = has_begun && !Checkpoints::of(&directory).list()?.is_empty();
    let mut arguments = Vec::new();
    if is_resumed {
        arguments.extend(["resume".into(), path(&directory)]);
    } else {
        if has_begun {
            set_aside(&sweep.trials(), &trial.id)?;
        }
        arguments.extend(["run".into(), path(&sweep.file("scenario.ron"))]);
        arguments.extend(["--out".into(), path(&sweep.trials()), "--id".into(), trial.id.clone()]);
        if let Some(folder) = &plan.folder {
            arguments.extend(["--relative-to".into(), path(folder)]);
        }
        for tag in &plan.sweep.tags {
            // One word: a tag may begin with `-`.
            arguments.push(format!("--tag={tag}"));
        }
        for setting in &trial.overrides {
            arguments.extend(["--set".into(), format!("{}={}", setting.path, setting.value.0)]);
        }
    }
    if !segment.is_last {
        arguments.extend(["--until".into(), segment.until.to_string()]);
    }
    arguments.extend(["--threads".into(), threads.to_string()]);
    arguments.extend(["--progress", "plain", "--ends-with-input", "--ends-at"].map(String::from));
    arguments.push(path(fence));
    Ok(arguments)
}

/// Moves a run without checkpoints to `ID.discarded-N`.
fn set_aside(trials: &Path, id: &str) -> Result<(), FileError> {
    let directory = trials.join(id);
    let place = (1_u32..)
        .map(|n| trials.join(format!("{id}.discarded-{n}")))
        .find(|place| !place.exists())
        .unwrap_or_else(|| trials.join(format!("{id}.discarded")));
    storage::rename(&directory, &place).at(&directory)?;
    sync_folder(trials).at(trials)
}

/// Returns whether another process still plays the run of a trial: one whose worker was killed ends a moment after it.
pub fn is_played(sweep: &SweepFolder, trial: &Trial) -> bool {
    let directory = sweep.trial(&trial.id);
    RunDirectory::is_at(&directory) && RunDirectory::open(&directory).is_ok_and(|directory| directory.claim().is_err())
}

/// Plays with a program and its arguments, and watches; what the process prints is added to the trial's log. `limits`: what
/// the trial may use, and the seconds that it has been played for before. `None` if the process has ended well.
///
/// # Errors
/// A log that cannot be written, a process that cannot be started; an error of `may_continue`, once the process has ended.
pub fn play(
    sweep: &SweepFolder,
    id: &str,
    program: &Path,
    arguments: &[String],
    limits: (Budget, f64),
    may_continue: &mut MayContinue,
) -> Result<Option<Attempt>, FileError> {
    let path = sweep.log(id);
    let mut log = File::append_or_create(&path).at(&path)?;
    let before = log.metadata().at(&path)?.len();
    writeln!(log, "$ simic-engine {}", arguments.join(" ")).at(&path)?;
    let mut child = start(program, arguments, &log).at(&path)?;
    let ended = watch(&mut child, limits, may_continue);
    if !matches!(ended, Ok(Ok(_))) {
        // Gone already, perhaps.
        let _ = child.kill();
        let _ = child.wait();
    }
    // Before the trial counts as ended.
    log.sync().and_then(|()| sync_folder_of(&path)).at(&path)?;
    Ok(match ended? {
        Ok(status) if status.success() => None,
        Ok(status) if status.code().is_some_and(|code| STOPPED.contains(&code)) => Some(Attempt::LetGo),
        Ok(status) if is_killed(status) => Some(Attempt::SetBack(killed(status))),
        Ok(status) => Some(match reason(&path, before, status) {
            reason if is_of_place(status.code(), &reason) => Attempt::Misplaced(reason),
            reason => Attempt::Failed {
                reason,
                timed_out: false,
                is_final: matches!(status.code(), Some(REJECTED | HALTED | ANOMALY)),
            },
        }),
        Err(attempt) => Some(attempt),
    })
}

/// Exit codes that come again: a scenario that is refused, a policy that diverged, an anomaly that ends the run.
const REJECTED: i32 = 2;
const HALTED: i32 = 4;
const ANOMALY: i32 = 8;
/// Exit codes of a run that was asked to stop: Ctrl-C reaches the processes of a terminal all at once.
const STOPPED: [i32; 3] = [129, 130, 143];

/// Exit code of a run whose record could not be written.
const RECORD_INCOMPLETE: i32 = 5;
/// Returns whether a trial ended because of the machine or folder in which it was played, not by itself.
fn is_of_place(code: Option<i32>, reason: &str) -> bool {
    let class = |rest: &str| ErrorClass::of(rest.split_once(')')?.0.parse().ok()?);
    let mut classes = reason.split("(os error ").skip(1).filter_map(class);
    code == Some(RECORD_INCOMPLETE) || classes.any(|class| class == ErrorClass::Place)
}

#[cfg(unix)]
fn is_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;

    const SIGKILL: i32 = 9;
    status.signal() == Some(SIGKILL)
}

/// Elsewhere there is no telling.
#[cfg(not(unix))]
fn is_killed(_: ExitStatus) -> bool {
    false
}

fn start(program: &Path, arguments: &[String], log: &File) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    // They would move the trial's folder, and change the trial that was planned.
    command.env_remove("SIMIC_ENGINE_RUNS").env_remove("SIMIC_ENGINE_AMP");
    // The child's input stays open for as long as this process lives: it ends with it.
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(log.handle()?)
        .stderr(log.handle()?)
        .spawn()
}

/// Returns how the process ended by itself, or why it is to be ended.
fn watch(
    child: &mut Child,
    (budget, played_s): (Budget, f64),
    may_continue: &mut MayContinue,
) -> Result<Result<ExitStatus, Attempt>, FileError> {
    const LOOK: Duration = Duration::from_millis(50);
    const ASK: Duration = Duration::from_secs(1);
    let began = Instant::now();
    let mut asked: Option<Instant> = None;
    let process = Path::new("the process of the trial");
    let over_limit = |reason, timed_out| {
        Ok(Err(Attempt::Failed {
            reason,
            timed_out,
            is_final: true,
        }))
    };
    loop {
        if let Some(status) = child.try_wait().at(process)? {
            return Ok(Ok(status));
        }
        if asked.is_some_and(|asked| asked.elapsed() < ASK) {
            std::thread::sleep(LOOK);
            continue;
        }
        asked = Some(Instant::now());
        if !may_continue(child.id())? {
            return Ok(Err(Attempt::LetGo));
        }
        let played = played_s + began.elapsed().as_secs_f64();
        if let Some(most) = budget.time_limit_s.filter(|most| played > *most as f64) {
            return over_limit(format!("it took more than budget.time_limit_s, {most} s"), true);
        }
        let used = resident_mib(child.id());
        if let (Some(most), Some(used)) = (budget.memory_mib, used)
            && used > most
        {
            let reason = format!("it took {used} MiB of memory, more than budget.memory_mib, {most} MiB");
            return over_limit(reason, false);
        }
    }
}

/// Memory of a process; `None` where the operating system does not tell.
fn resident_mib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024 / MIB)
}

fn killed(status: ExitStatus) -> String {
    format!("its process was killed ({status})")
}

/// The last error in the part of a log that begins at `from`; else how the process ended.
fn reason(log: &Path, from: u64, status: ExitStatus) -> String {
    let text = crate::files::read(log).unwrap_or_default();
    let text = text
        .get(usize::try_from(from).unwrap_or(usize::MAX)..)
        .unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let error = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
    match (error, status.code()) {
        (Some(error), _) => error.to_owned(),
        (None, Some(code)) => format!("its process ended with exit code {code}"),
        (None, None) => killed(status),
    }
}

#[cfg(test)]
mod tests;
