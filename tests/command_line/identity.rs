//! A run is resumed as the one that it was: on its own data, with its own files, from any folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::program::{
    assert_has, call, command, ended, engine_at, events, folder, newest, put_again, read, refused, repository,
    succeeds, write,
};
use crate::resume::{RULES, finished, notes, resume};

/// A scenario in `scenarios/` that learns from the files in `data/`, each named relative to it.
fn write_files(folder: &Path) {
    let digits = repository().join("assets/digits");
    for (part, file) in [
        ("images", "optdigits-images-idx3-ubyte"),
        ("labels", "optdigits-labels-idx1-ubyte"),
    ] {
        let content = fs::read(digits.join(file)).expect("the digits are there");
        write(&folder.join("data").join(part), content);
    }
    let text = format!(
        r#"(
            name: "files",
            task: preset("digits_minimal", (
                batches_per_step: count(1),
                data: idx(images: "../data/images", labels: "../data/labels", scale: 16.0),
            )),
            run: (rounds: 1, n_envs: 1, max_steps: 2),
            {RULES},
        )"#
    );
    write(&folder.join("scenarios/files.ron"), text);
}

/// Two samples change their labels: as many of each class as before.
fn exchange_two_labels(folder: &Path) {
    let path = folder.join("data/labels");
    let mut labels = fs::read(&path).expect("the labels are there");
    let mut others = 9..labels.len();
    let other = others.find(|&index| labels[index] != labels[8]);
    labels.swap(8, other.expect("there are classes"));
    write(&path, labels);
}

const RUN: &str = "run scenarios/files.ron --out out --threads 1 --progress none";

/// Plays the scenario of [`write_files`], and returns the run.
fn play(folder: &Path) -> PathBuf {
    write_files(folder);
    succeeds(&engine_at(folder, RUN));
    newest(&folder.join("out"))
}

/// A process in a folder.
fn process(at: &Path, line: &str) -> Output {
    ended(command(line).current_dir(at))
}

/// Hashes of the data sets that the parts of a run learnt from.
fn data_of(run: &Path) -> Vec<Value> {
    let started = events(run, "run_started").into_iter();
    started
        .map(|mut event| event["data"]["dataset"]["hash"].take())
        .collect()
}

#[test]
fn a_run_is_resumed_with_other_data_only_where_that_is_allowed() {
    let folder = folder();
    let run = play(folder.path());
    let before = read(&run.join("events.jsonl"));

    exchange_two_labels(folder.path());
    let message = refused(&resume(&run, "--extend 1"));

    let saved = data_of(&run)[0].as_str().expect("a hash").to_owned();
    let expected = format!("the hash of its data set was {saved}, now it is ");
    assert_has(&message, &[&expected, "continue with this one: --allow data.hash"]);
    assert_eq!(read(&run.join("events.jsonl")), before);

    succeeds(&resume(&run, "--extend 1 --allow data.hash"));
    let now = data_of(&run)[1].as_str().expect("a hash").to_owned();
    assert_ne!(now, saved);
    let note = format!("resumed with data.hash {now} instead of {saved}");
    assert_eq!(notes(&run), ["resumed with run.rounds 2 instead of 1", note.as_str()]);
    // From then on these are the run's data.
    succeeds(&resume(&run, "--extend 1"));
}

#[test]
fn a_run_finds_its_own_files_when_it_is_resumed_in_another_folder() {
    let folder = folder();
    write_files(folder.path());
    succeeds(&process(folder.path(), RUN));
    let run = newest(&folder.path().join("out"));
    // Holds files of the same names.
    let other = folder.path().join("other");
    write_files(&other);
    exchange_two_labels(&other);

    succeeds(&process(&other, &format!("resume '{}' --extend 1", run.display())));
    succeeds(&resume(&run, "--extend 1"));

    let data = data_of(&run);
    assert_eq!(data.len(), 3);
    assert!(data.iter().all(|hash| *hash == data[0]), "{data:?}");
}

/// Like data: every path of a scenario starts in its folder.
#[test]
fn a_replay_finds_the_run_that_it_repeats_when_it_is_resumed_in_another_folder() {
    let folder = folder();
    write_files(folder.path());
    succeeds(&engine_at(folder.path(), &format!("{RUN} --rounds 2")));
    let replay = r#"--set policy.controller=replay --set policy.replay.run="../out/latest""#;
    let again = format!("run scenarios/files.ron --out again --progress none {replay}");
    succeeds(&engine_at(folder.path(), &again));

    succeeds(&resume(&newest(&folder.path().join("again")), "--extend 1"));
}

#[test]
fn a_scenario_that_has_moved_is_distinguished_from_a_missing_file() {
    let folder = folder();
    let folder = folder.path().canonicalize().expect("it is there");
    let run = play(&folder);

    fs::rename(folder.join("data"), folder.join("elsewhere")).expect("the data are moved");
    let missing = refused(&resume(&run, "--extend 1"));
    assert_has(&missing, &["data file '../data/images' was not found"]);
    assert!(!missing.contains("the scenario's folder"), "{missing}");

    fs::rename(folder.join("scenarios"), folder.join("moved")).expect("the scenario is moved");
    let moved = refused(&resume(&run, "--extend 1"));
    let place = folder.join("scenarios").display().to_string();
    let expected = format!("the scenario's folder {place} is missing");
    assert_has(&moved, &[&expected]);
}

/// The hint for a run that ended before its first checkpoint.
#[test]
fn a_run_s_own_copy_of_its_scenario_can_be_run_from_anywhere() {
    let folder = folder();
    let run = play(folder.path());
    fs::remove_dir_all(run.join("checkpoints")).expect("the checkpoints are removed");

    let message = refused(&resume(&run, ""));
    let copy = run.join("resolved.ron").display().to_string();
    let hint = format!("start it again with `simic-engine run {copy}`");
    assert_has(&message, &[&hint]);

    succeeds(&engine_at(folder.path(), &format!("run '{copy}' --out again")));
    let again = newest(&folder.path().join("again"));
    assert_eq!(data_of(&again), data_of(&run));
}

#[cfg(target_os = "linux")]
#[test]
fn a_scenario_may_have_a_name_that_is_not_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = folder();
    write_files(folder.path());
    let name = folder.path().join(OsStr::from_bytes(b"scenarios/\xff.ron"));
    fs::rename(folder.path().join("scenarios/files.ron"), &name).expect("the scenario is renamed");

    let mut call = call("run --progress none --out");
    call.arg(folder.path().join("out")).arg(&name);

    succeeds(&ended(&mut call));
}

#[test]
fn a_run_that_another_engine_began_says_so_when_it_is_resumed() {
    let (_folder, run) = finished();
    put_again(&run, |progress| progress.engine = "0.0.1".into());

    succeeds(&resume(&run, "--extend 1"));

    let expected = format!("resumed with engine {} instead of 0.0.1", env!("CARGO_PKG_VERSION"));
    let notes = notes(&run);
    assert!(notes.iter().any(|note| *note == expected), "{notes:?}");
}

#[test]
fn a_resumed_run_changes_its_precision_where_that_is_allowed() {
    let (_folder, run) = finished();

    let allowed = "--extend 1 --set training.amp=bf16 --allow training.amp";
    succeeds(&resume(&run, allowed));

    assert_eq!(events(&run, "run_started")[1]["data"]["amp_dtype"], "bf16");
    let notes = Value::from(notes(&run)).to_string();
    assert_has(&notes, &[r#"training.amp \"bf16\""#]);
}
