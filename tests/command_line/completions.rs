//! What a shell is told when it asks: `COMPLETE=bash`.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::program::{command, ended, repository, succeeds, text};

/// What may follow these words, the last of which is being typed.
fn completed(at: &Path, words: &[&str]) -> Vec<String> {
    let all = [&["--", "simic-engine"], words].concat();
    let mut asked = command(&all);
    asked.current_dir(at).env("COMPLETE", "bash").env("_CLAP_IFS", "\n");
    asked.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    succeeds(&ended(&mut asked)).lines().map(str::to_owned).collect()
}

/// A folder with two runs, of which only the first file is written, and a sweep.
fn runs() -> tempfile::TempDir {
    let at = tempfile::tempdir().expect("a folder");
    for (folder, file) in [
        ("runs/20260101-100000-first", "resolved.ron"),
        ("runs/20260102-100000-second", "resolved.ron"),
        ("runs/notes", "notes.txt"),
        ("runs/sweeps/quick", "plan.json"),
    ] {
        let folder = at.path().join(folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(file), "()").expect("a file");
    }
    std::fs::write(at.path().join("runs/latest"), "20260102-100000-second\n").expect("a file");
    at
}

#[test]
fn runs_and_sweeps_are_completed_by_their_names() {
    let at = runs();
    let of = |words: &[&str]| completed(at.path(), words);

    for command in ["show", "resume", "eval", "diff", "export-tables"] {
        let both = ["20260102-100000-second", "20260101-100000-first"];
        assert_eq!(of(&[command, "2026"]), both, "{command}: the newest first");
    }
    assert_eq!(of(&["show", "la"]), ["latest"]);
    assert_eq!(of(&["diff", "latest", "20260101"]), ["20260101-100000-first"]);
    assert_eq!(of(&["sweep", "status", ""])[0], "quick");
    assert_eq!(of(&["compare", "q"]), ["quick"]);
    assert_eq!(of(&["show", "ru"]), ["runs/"], "a path where no run begins so");

    let elsewhere = tempfile::tempdir().expect("a folder");
    let root = at.path().join("runs").display().to_string();
    let found = completed(elsewhere.path(), &["show", "--out", &root, "20260101"]);
    assert_eq!(found, ["20260101-100000-first"]);
}

#[test]
fn fields_and_what_they_may_be_are_completed() {
    let here = repository();
    let of = |words: &[&str]| completed(here, words);

    assert_eq!(of(&["explain", "run.n_e"]), ["run.n_envs"]);
    assert_eq!(of(&["explain", "sweep.budget.le"]), ["sweep.budget.lease_s"]);
    let sections = of(&["explain", ""]);
    assert!(
        sections.contains(&"task".into()) && sections.contains(&"sweep".into()),
        "{sections:?}"
    );
    assert!(!sections.contains(&"run.n_envs".into()), "{sections:?}");
    assert_eq!(of(&["run", "--set", "run.n_e"]), ["run.n_envs="]);
    assert_eq!(of(&["run", "--set", "preset=man"]), ["preset=manual"]);
    assert_eq!(
        of(&["run", "--set", "policy.controller=heu"]),
        ["policy.controller=heuristic"]
    );
    assert_eq!(
        of(&["eval", "latest", "--set", "policy.heuristic.rotation=[norm,conv_l"]),
        ["policy.heuristic.rotation=[norm,conv_light"]
    );
    assert_eq!(of(&["run", "--set", "training.amp=b"]), ["training.amp=bf16"]);
    assert!(of(&["list", "blue"]) == ["blueprints"] && of(&["run", "--dry"]) == ["--dry-run"]);
}

#[test]
fn bash_completes_the_program_under_any_name() {
    let at = runs();
    let own = at.path().join("mycrate");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_simic-engine"), &own).expect("a link");
    let script = "source <(COMPLETE=bash ./mycrate); complete -p mycrate > /dev/null
        COMP_WORDS=(mycrate show 20260101) COMP_CWORD=2
        _clap_complete_mycrate mycrate 20260101 show; echo \"${COMPREPLY[@]}\"";

    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(at.path())
        .env_remove("SIMIC_ENGINE_RUNS")
        .output();

    let output = output.expect("bash starts");
    assert_eq!(
        text(&output.stdout).trim(),
        "20260101-100000-first",
        "{}",
        text(&output.stderr)
    );
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let registered = succeeds(&ended(command(&[]).env("COMPLETE", shell)));
        assert!(registered.contains("simic-engine"), "{shell}");
    }
}

#[test]
fn a_thousand_runs_are_completed_without_reading_them() {
    let at = tempfile::tempdir().expect("a folder");
    for number in 0..1000 {
        let run = at.path().join(format!("runs/20260101-100000-r{number:04}"));
        std::fs::create_dir_all(&run).expect("a folder");
        std::fs::write(run.join("resolved.ron"), "").expect("a file");
        // No file that could be read as one.
        std::fs::create_dir(run.join("events.jsonl")).expect("a folder");
    }
    let begun = Instant::now();

    assert_eq!(completed(at.path(), &["resume", "2026"]).len(), 1000);

    // A tenth of a second alone; other tests share the machine.
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
}
