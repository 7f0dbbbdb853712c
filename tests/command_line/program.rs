//! The program as these tests start it, what it says in the end, and the run that it leaves behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use simic_engine::internals::telemetry::strip_volatile;

use crate::support::{latest, lines};

/// What of the tests' own environment would change what the program does.
pub const HEEDED: [&str; 4] = ["COMPLETE", "SIMIC_ENGINE_DATA", "SIMIC_ENGINE_RUNS", "RUST_LOG"];

/// The program in the root of the repository, not yet started.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simic-engine"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    for variable in HEEDED {
        command.env_remove(variable);
    }
    command
}

/// Output and exit code of a command.
pub fn ended(command: &mut Command) -> Output {
    command.output().expect("the engine starts")
}

/// Output and exit code of the engine with these arguments.
pub fn engine(arguments: &[&str]) -> Output {
    ended(&mut command(arguments))
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
