//! The program as these tests call or start it, what it says in the end, and the run that it leaves behind.
//!
//! Commands are done in the process of the tests, all of them in the root of the repository. A process of its own is for what
//! is about one: signals and kills, pipes and terminals, its environment, folder and memory, and what its manifest says of it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::Value;
use simic_engine::cli::{self, Input, Surroundings};
use simic_engine::internals::telemetry::strip_volatile;
use simic_engine::prelude::Extension;

use crate::support::{latest, lines};

/// What of the tests' own environment would change what the program does.
pub const HEEDED: [&str; 4] = ["COMPLETE", "SIMIC_ENGINE_DATA", "SIMIC_ENGINE_RUNS", "RUST_LOG"];

/// A scenario in which seeds grow and are decided over within a few batches; `run` holds the fields of its section `run`.
pub fn tiny(run: &str) -> String {
    format!(
        r#"(
    name: "tiny",
    task: preset("digits_minimal", (batches_per_step: count(2))),
    run: ({run}),
    policy: (controller: "actor_critic", preset: "lstm_small", net_cfg: (op_bias: (germinate: 4.0))),
    lifecycle: (auto_forward: (g1: true, g2: true, g3: true), gates: (min_training_steps: 1, min_gradient_health: 0.0)),
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

const PROGRAM: &str = env!("CARGO_BIN_EXE_simic-engine");

/// What these tests have done: a command in this process, or a process.
pub trait Ends {
    /// Output and exit code.
    fn end(&mut self) -> Output;
}

/// A command that is done in this process.
pub struct Call {
    arguments: Vec<OsString>,
    input: Vec<u8>,
}

/// A command in this process, not yet done.
pub fn call(arguments: &[&str]) -> Call {
    let mut call = Call {
        arguments: vec!["simic-engine".into()],
        input: Vec::new(),
    };
    call.args(arguments);
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

    /// What it reads on standard input.
    pub fn input(&mut self, input: &[u8]) -> &mut Self {
        self.input = input.into();
        self
    }
}

/// What is written to it.
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
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(repository()).args(arguments);
    for variable in HEEDED {
        command.env_remove(variable);
    }
    command
}

/// Plays the program, which ends well, and gives the largest number of bytes that it had in memory. What a parent is told when
/// a child has ended begins with the parent's own memory, so the child is asked while it plays.
#[cfg(target_os = "linux")]
pub fn peak_memory(command: &mut Command) -> u64 {
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        let told = std::fs::read_to_string(&status).unwrap_or_default();
        let line = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
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

/// Output and exit code of the engine with these arguments.
pub fn engine(arguments: &[&str]) -> Output {
    ended(&mut call(arguments))
}

/// The same of what is in the folder `at` and named by its place there; its runs are in `runs`.
pub fn engine_at(at: &Path, arguments: &[&str]) -> Output {
    let mut call = call(&[]);
    let mut is_written = false;
    for argument in arguments {
        match at.join(argument) {
            path if is_written || path.exists() => call.arg(path),
            _ => call.arg(argument),
        };
        is_written = ["-o", "--out", "--report", "--csv"].contains(argument);
    }
    if !arguments.contains(&"--out") {
        call.arg("--out").arg(at.join("runs"));
    }
    ended(&mut call)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of a command that must succeed.
pub fn succeeds(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Standard error of a command that must be refused as wrong usage, a bad scenario or a failed start-up.
pub fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    text(&output.stderr)
}

/// The folder of the newest run in `out`, by its own name.
pub fn newest(out: &Path) -> PathBuf {
    latest(out).canonicalize().expect("latest names the run")
}

/// What of a run's events must come again.
pub fn reproducible_events(run: &Path) -> Vec<Value> {
    lines(run).iter().filter_map(strip_volatile).collect()
}
