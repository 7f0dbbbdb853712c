//! The program as these tests start it, what it says in the end, and the run that it leaves behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::Value;
use simic_engine::internals::telemetry::strip_volatile;

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

/// The program in the root of the repository, not yet started.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simic-engine"));
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
