//! The program as these tests call or start it, what it says at its end, and the run that it leaves.
//!
//! Commands are done in the process of the tests, all of them in the root of the repository. A process of its own is for what
//! is about one: signals and kills, pipes and terminals, its environment, folder and memory, and what its manifest says about it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::Value;
use simic_engine::cli::{self, Input, Surroundings};
use simic_engine::internals::checkpoint::{CheckpointName, Checkpoints, Progress};
use simic_engine::internals::telemetry::strip_volatile;
use simic_engine::prelude::Extension;

use crate::support::{latest, lines};

/// Variables of the tests' own environment that would change the program's behaviour.
#[rustfmt::skip]
pub const HEEDED: [&str; 5] = ["COMPLETE", "SIMIC_ENGINE_AMP", "SIMIC_ENGINE_DATA", "SIMIC_ENGINE_RUNS", "RUST_LOG"];

/// A scenario in which seeds grow and are decided over within a few batches; `run` holds the fields of its section `run`.
pub fn tiny(run: &str) -> String {
    format!(
        r#"(
    name: "tiny",
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: ({run}),
    policy: (controller: "actor_critic", net_cfg: (op_bias: (germinate: 4.0))),
    lifecycle: (auto_forward: true, gates: (min_training_steps: 1, min_gradient_health: 0.0)),
)"#
    )
}

/// The root of the repository.
pub fn repository() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        root.canonicalize().expect("the repository is there")
    });
    &ROOT
}

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_simic-engine");

/// A command in this process, or a process, that these tests run.
pub trait Ends {
    /// Output and exit code.
    fn end(&mut self) -> Output;
}

/// A command that is done in this process.
pub struct Call {
    arguments: Vec<OsString>,
    input: Vec<u8>,
}

/// The words of a line, as a shell takes it apart: what stands in single quotes is one word.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    let words = parts.map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().collect::<Vec<_>>(),
        _ => vec![part],
    });
    words.collect::<Vec<_>>().concat()
}

/// A command in this process, not yet done: what is typed after the name of the program.
pub fn call(line: &str) -> Call {
    let mut call = Call {
        arguments: vec!["simic-engine".into()],
        input: Vec::new(),
    };
    call.args(words(line));
    call
}

impl Call {
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.arguments.push(argument.as_ref().into());
        self
    }

    pub fn args(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        arguments.into_iter().for_each(|argument| _ = self.arg(argument));
        self
    }

    /// Its standard input.
    pub fn input(&mut self, input: &[u8]) -> &mut Self {
        self.input = input.into();
        self
    }
}

/// Bytes that are written to it.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Ends for Call {
    fn end(&mut self) -> Output {
        static AT_HOME: LazyLock<()> = LazyLock::new(|| {
            std::env::set_current_dir(repository()).expect("the repository can be entered");
        });
        LazyLock::force(&AT_HOME);
        for variable in HEEDED {
            assert!(
                std::env::var_os(variable).is_none(),
                "{variable} is set: tests cannot unset it"
            );
        }
        let [out, err] = [Written::default(), Written::default()];
        let surroundings = Surroundings {
            input: Input::of(Cursor::new(self.input.clone())),
            out: cli::Output::to(out.clone()),
            err: cli::Output::to(err.clone()),
            program: PROGRAM.into(),
            owns_process: false,
        };
        let code = cli::run(Extension::default(), &self.arguments, &surroundings);
        Output {
            status: ended_with(code),
            stdout: out.take(),
            stderr: err.take(),
        }
    }
}

/// The status of a process that ended with this exit code.
#[cfg(unix)]
fn ended_with(code: u8) -> ExitStatus {
    std::os::unix::process::ExitStatusExt::from_raw(i32::from(code) << 8)
}

#[cfg(windows)]
fn ended_with(code: u8) -> ExitStatus {
    std::os::windows::process::ExitStatusExt::from_raw(code.into())
}

impl Ends for Command {
    fn end(&mut self) -> Output {
        self.output().expect("the engine starts")
    }
}

/// The program in the root of the repository as a process of its own, not yet started.
pub fn command(line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(repository()).args(words(line));
    for variable in HEEDED {
        command.env_remove(variable);
    }
    command
}

/// Plays the program, which ends well, and gives the largest number of bytes that it had in memory. The number that a parent gets once
/// a child has ended includes the parent's own memory, so the child is asked while it plays.
#[cfg(target_os = "linux")]
pub fn peak_memory(command: &mut Command) -> u64 {
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or_default() << 10);
        if let Some(ended) = child.try_wait().expect("it is awaited") {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    assert!(ended.success());
    peak
}

/// Output and exit code of a command.
pub fn ended(command: &mut impl Ends) -> Output {
    command.end()
}

/// Output and exit code of the engine with these words.
pub fn engine(line: &str) -> Output {
    ended(&mut call(line))
}

/// Commands that look for no runs.
const WITHOUT_RUNS: [&str; 6] = ["adapt", "data", "grow", "init", "reward-audit", "validate"];

/// The same of what is in the folder `at` and named by its place there; its runs are in `runs`.
pub fn engine_at(at: &Path, line: &str) -> Output {
    const WRITTEN: [&str; 6] = ["-o", "--out", "--report", "--csv", "--save", "--log-file"];
    let words = words(line);
    let mut call = call(words[0]);
    for pair in words.windows(2) {
        match at.join(pair[1]) {
            path if WRITTEN.contains(&pair[0]) || path.exists() => call.arg(path),
            _ => call.arg(pair[1]),
        };
    }
    if !WITHOUT_RUNS.contains(&words[0]) && !words.contains(&"--out") {
        call.arg("--out").arg(at.join("runs"));
    }
    ended(&mut call)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard error of a command that must end with this code.
#[track_caller]
pub fn ends_with(code: i32, output: &Output) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}{}", text(&output.stdout));
    said
}

/// Standard output of a command that must succeed.
#[track_caller]
pub fn succeeds(output: &Output) -> String {
    ends_with(0, output);
    text(&output.stdout)
}

/// Standard error of a command that must be refused as wrong usage, a bad scenario or a failed start-up.
#[track_caller]
pub fn refused(output: &Output) -> String {
    let said = ends_with(2, output);
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    said
}

/// The text has all of these parts.
#[track_caller]
pub fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// The text as one JSON document.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// This field of all members of a list.
pub fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a Value> {
    let members = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    members.iter().map(|member| &member[field]).collect()
}

pub fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A file, in a folder that is made if it is not there.
pub fn write(file: &Path, content: impl AsRef<[u8]>) {
    let folder = file.parent().expect("a file is in a folder");
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(file, content));
    written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// Names in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// A folder that ends with the test.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Copies a folder with all that is in it to a place where there is none.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let place = to.join(entry.file_name());
        let kind = entry.file_type().expect("it is there");
        if kind.is_dir() {
            copy(&entry.path(), &place);
        } else if kind.is_symlink() {
            #[cfg(unix)]
            std::os::unix::fs::symlink(fs::read_link(entry.path()).expect("a link"), place).expect("a link");
        } else {
            fs::copy(entry.path(), place).expect("it is copied");
        }
    }
}

/// Content of a folder after `play`, kept in memory as an archive: many tests begin with a run that was played once.
pub fn played(play: impl FnOnce(&Path)) -> Vec<u8> {
    let folder = folder();
    play(folder.path());
    let mut archive = tar::Builder::new(Vec::new());
    archive.follow_symlinks(false);
    archive.append_dir_all("", folder.path()).expect("it is read");
    archive.into_inner().expect("it is in memory")
}

/// A folder of the test's own with what was played.
pub fn copy_of(played: &[u8]) -> tempfile::TempDir {
    let folder = folder();
    tar::Archive::new(played).unpack(folder.path()).expect("it is written");
    folder
}

/// The folder of the newest run in `out`, by its own name.
pub fn newest(out: &Path) -> PathBuf {
    latest(out).canonicalize().expect("latest names the run")
}

/// Puts the newest checkpoint of a run on its shelf again, with another progress.
pub fn put_again(run: &Path, change: impl FnOnce(&mut Progress)) {
    let shelf = Checkpoints::of(run);
    let (newest, mut progress) = shelf.find(CheckpointName::Last).expect("there is a checkpoint");
    change(&mut progress);
    let fill = |fresh: &Path| {
        copy(&newest.join("policy"), &fresh.join("policy"));
        Ok(())
    };
    shelf.put(&progress, fill).expect("the checkpoint is written");
}

/// Events of a kind.
pub fn events(run: &Path, kind: &str) -> Vec<Value> {
    let mut events = lines(run);
    events.retain(|event| event["type"] == kind);
    events
}

/// Events of a run that must be the same again.
pub fn reproducible_events(run: &Path) -> Vec<Value> {
    lines(run).iter().filter_map(strip_volatile).collect()
}
