//! Completions for the shell: `COMPLETE=bash`.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::program::{PROGRAM, assert_has, command, ended, folder, repository, succeeds, write};

/// Words that may follow these words, the last of which is being typed.
fn completed(at: &Path, words: &str) -> Vec<String> {
    let mut asked = command("-- simic-engine");
    asked.current_dir(at).args(words.split(' '));
    asked.env("COMPLETE", "bash").env("_CLAP_IFS", "\n");
    asked.env("_CLAP_COMPLETE_INDEX", words.split(' ').count().to_string());
    succeeds(&ended(&mut asked)).lines().map(str::to_owned).collect()
}

/// A folder with two runs, of which only the first file is written, and a sweep.
fn runs() -> tempfile::TempDir {
    let at = folder();
    for file in [
        "20260101-100000-first/resolved.ron",
        "20260102-100000-second/resolved.ron",
        "notes/notes.txt",
        "sweeps/quick/plan.json",
    ] {
        write(&at.path().join("runs").join(file), "()");
    }
    write(&at.path().join("runs/latest"), "20260102-100000-second\n");
    at
}

#[test]
#[ignore = "long tier"]
fn runs_and_sweeps_are_completed_by_their_names() {
    let at = runs();
    let of = |words: &str| completed(at.path(), words);

    for command in ["show", "resume", "eval", "diff", "export-tables"] {
        let both = ["20260102-100000-second", "20260101-100000-first"];
        assert_eq!(of(&format!("{command} 2026")), both, "{command}: the newest first");
    }
    for (words, whole) in [
        ("show la", "latest"),
        ("diff latest 20260101", "20260101-100000-first"),
        ("compare q", "quick"),
        // A path where no run begins so.
        ("show ru", "runs/"),
    ] {
        assert_eq!(of(words), [whole]);
    }
    assert_eq!(of("sweep status ")[0], "quick");

    let elsewhere = folder();
    let root = at.path().join("runs").display().to_string();
    let found = completed(elsewhere.path(), &format!("show --out {root} 20260101"));
    assert_eq!(found, ["20260101-100000-first"]);
}

#[test]
#[ignore = "long tier"]
fn fields_and_what_they_may_be_are_completed() {
    for (words, whole) in [
        ("explain run.n_e", "run.n_envs"),
        ("explain sweep.budget.le", "sweep.budget.lease_s"),
        ("run --set run.n_e", "run.n_envs="),
        ("run --set preset=man", "preset=manual"),
        ("run --set policy.controller=heu", "policy.controller=heuristic"),
        (
            "eval latest --set policy.heuristic.rotation=[norm,conv_l",
            "policy.heuristic.rotation=[norm,conv_light",
        ),
        ("run --set training.amp=b", "training.amp=bf16"),
        ("list blue", "blueprints"),
        ("run --dry", "--dry-run"),
    ] {
        assert_eq!(completed(repository(), words), [whole]);
    }
    let sections = completed(repository(), "explain ");
    let is_offered = |word: &str| sections.iter().any(|section| section == word);
    assert!(is_offered("task") && is_offered("sweep"), "{sections:?}");
    assert!(!is_offered("run.n_envs"), "{sections:?}");
}

#[test]
#[ignore = "long tier"]
fn bash_completes_the_program_under_any_name() {
    let at = runs();
    std::os::unix::fs::symlink(PROGRAM, at.path().join("mycrate")).expect("a link");
    let script = "source <(COMPLETE=bash ./mycrate); complete -p mycrate > /dev/null
        COMP_WORDS=(mycrate show 20260101) COMP_CWORD=2
        _clap_complete_mycrate mycrate 20260101 show; echo \"${COMPREPLY[@]}\"";

    let mut bash = Command::new("bash");
    bash.args(["-c", script]).current_dir(at.path());
    let output = ended(bash.env_remove("SIMIC_ENGINE_RUNS"));

    assert_eq!(succeeds(&output).trim(), "20260101-100000-first");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let registered = succeeds(&ended(command("").env("COMPLETE", shell)));
        assert_has(&registered, &["simic-engine"]);
    }
}

#[test]
fn a_thousand_runs_are_completed_without_reading_them() {
    let at = folder();
    for number in 0..1000 {
        let run = at.path().join(format!("runs/20260101-100000-r{number:04}"));
        write(&run.join("resolved.ron"), "");
        // No file that could be read as one.
        std::fs::create_dir(run.join("events.jsonl")).expect("a folder");
    }
    let begun = Instant::now();

    assert_eq!(completed(at.path(), "resume 2026").len(), 1000);

    // A tenth of a second alone; other tests share the machine.
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
}
