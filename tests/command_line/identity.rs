//! A run is resumed as the one that it was: on its own data, with its own files, from any folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use simic_engine::internals::checkpoint::{CheckpointName, Checkpoints};

use crate::program::{call, command, ended, newest, refused, repository, succeeds};
use crate::resume::{RULES, finished, resume};

/// A scenario in `scenarios/` that learns from the files in `data/`, each named relative to it.
fn write_files(folder: &Path) {
    for name in ["scenarios", "data"] {
        fs::create_dir_all(folder.join(name)).expect("a folder");
    }
    let digits = repository().join("assets/digits");
    for part in ["images", "labels"] {
        let dimensions = if part == "images" { 3 } else { 1 };
        let from = digits.join(format!("optdigits-{part}-idx{dimensions}-ubyte"));
        fs::copy(from, folder.join("data").join(part)).expect("the digits are there");
    }
    let text = format!(
        r#"(
            name: "files",
            task: preset("digits_minimal", (
                batches_per_step: count(1),
                data: idx(images: "../data/images", labels: "../data/labels", scale: 16.0),
            )),
            run: (rounds: 1, n_envs: 1, max_steps: 2),
            policy: ({RULES}),
        )"#
    );
    fs::write(folder.join("scenarios/files.ron"), text).expect("the scenario is written");
}

/// Two samples change their labels: as many of each class as before.
fn exchange_two_labels(folder: &Path) {
    let path = folder.join("data/labels");
    let mut labels = fs::read(&path).expect("the labels are there");
    let other = (9..labels.len())
        .find(|&index| labels[index] != labels[8])
        .expect("there are classes");
    labels.swap(8, other);
    fs::write(path, labels).expect("the labels are written");
}

fn engine(at: &Path, arguments: &[&str]) -> Output {
    ended(
        command(arguments)
            .current_dir(at)
            .args(["--threads", "1", "--progress", "none"]),
    )
}

/// Plays the scenario of [`write_files`], named relative to `folder`, and returns the run.
fn play(folder: &Path) -> PathBuf {
    succeeds(&engine(folder, &["run", "scenarios/files.ron", "--out", "out"]));
    newest(&folder.join("out"))
}

/// Hashes of the data sets that the parts of a run learnt from.
fn data_of(run: &Path) -> Vec<String> {
    let lines = crate::support::lines(run);
    let started = lines.iter().filter(|line| line["type"] == "run_started");
    started
        .filter_map(|line| line["data"]["dataset"]["hash"].as_str().map(String::from))
        .collect()
}

fn notes(run: &Path) -> Vec<String> {
    let lines = crate::support::lines(run);
    let notes = lines.iter().filter(|line| line["type"] == "note");
    notes
        .filter_map(|line| line["data"]["text"].as_str().map(String::from))
        .collect()
}

#[test]
fn a_run_is_resumed_with_other_data_only_where_that_is_allowed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_files(folder.path());
    let run = play(folder.path());
    let before = fs::read(run.join("events.jsonl")).expect("there are events");

    exchange_two_labels(folder.path());
    let message = refused(&resume(&run, &["--extend", "1"]));

    let saved = data_of(&run).remove(0);
    assert!(
        message.contains(&format!("the hash of its data set was {saved}, now it is ")),
        "{message}"
    );
    assert!(message.contains("by --allow data.hash"), "{message}");
    assert_eq!(fs::read(run.join("events.jsonl")).expect("there are events"), before);

    succeeds(&resume(&run, &["--extend", "1", "--allow", "data.hash"]));
    let now = data_of(&run).remove(1);
    assert_ne!(now, saved);
    let note = format!("resumed with data.hash {now} instead of {saved}");
    assert_eq!(notes(&run), ["resumed with run.rounds 2 instead of 1", note.as_str()]);
    // From then on these are the run's data.
    succeeds(&resume(&run, &["--extend", "1"]));
}

#[test]
fn a_run_finds_its_own_files_when_it_is_resumed_in_another_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_files(folder.path());
    let run = play(folder.path());
    // Holds files of the same names.
    let other = folder.path().join("other");
    write_files(&other);
    exchange_two_labels(&other);

    let text = run.to_string_lossy();
    succeeds(&engine(&other, &["resume", &text, "--extend", "1"]));
    succeeds(&engine(Path::new("/"), &["resume", &text, "--extend", "1"]));

    let data = data_of(&run);
    assert_eq!(data.len(), 3);
    assert!(data.iter().all(|hash| *hash == data[0]), "{data:?}");
}

/// Like data: every path of a scenario starts in its folder.
#[test]
fn a_replay_finds_the_run_that_it_repeats_when_it_is_resumed_in_another_folder() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_files(folder.path());
    let run = ["run", "scenarios/files.ron", "--out"];
    succeeds(&engine(folder.path(), &[&run[..], &["out", "--rounds", "2"]].concat()));
    let replay = [
        "--set",
        "policy.controller=replay",
        "--set",
        "policy.replay.run=\"../out/latest\"",
    ];
    succeeds(&engine(folder.path(), &[&run[..], &["again"], &replay[..]].concat()));

    let again = crate::support::latest(&folder.path().join("again"));
    succeeds(&engine(
        Path::new("/"),
        &["resume", &again.to_string_lossy(), "--extend", "1"],
    ));
}

#[test]
fn a_scenario_that_has_moved_is_told_from_a_file_that_is_missing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path().canonicalize().expect("it is there");
    write_files(&folder);
    let run = play(&folder);

    fs::rename(folder.join("data"), folder.join("elsewhere")).expect("the data are moved");
    let missing = refused(&resume(&run, &["--extend", "1"]));
    assert!(
        missing.contains("data file '../data/images' was not found"),
        "{missing}"
    );
    assert!(!missing.contains("is not there any more"), "{missing}");

    fs::rename(folder.join("scenarios"), folder.join("moved")).expect("the scenario is moved");
    let moved = refused(&resume(&run, &["--extend", "1"]));
    let place = folder.join("scenarios");
    let told = format!("the scenario's folder {} is not there any more", place.display());
    assert!(moved.contains(&told), "{moved}");
}

/// What the hint says of a run that ended before its first checkpoint.
#[test]
fn a_run_s_own_copy_of_its_scenario_can_be_run_from_anywhere() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_files(folder.path());
    let run = play(folder.path());
    fs::remove_dir_all(run.join("checkpoints")).expect("the checkpoints are removed");

    let message = refused(&resume(&run, &[]));
    let copy = run.join("resolved.ron");
    let hint = format!("start it again with `simic-engine run {}`", copy.display());
    assert!(message.contains(&hint), "{message}");

    let at = tempfile::tempdir().expect("another folder");
    succeeds(&engine(at.path(), &["run", &copy.to_string_lossy()]));
    let again = crate::support::latest(&at.path().join("runs"));
    assert_eq!(data_of(&again), data_of(&run));
}

#[cfg(target_os = "linux")]
#[test]
fn a_scenario_may_have_a_name_that_is_no_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().expect("a temporary folder");
    write_files(folder.path());
    let name = folder.path().join(OsStr::from_bytes(b"scenarios/\xff.ron"));
    fs::rename(folder.path().join("scenarios/files.ron"), &name).expect("the scenario is renamed");

    let mut call = call(&["run", "--progress", "none"]);
    call.arg(&name).arg("--out").arg(folder.path().join("out"));

    succeeds(&ended(&mut call));
}

#[test]
fn a_run_that_another_engine_began_says_so_when_it_is_resumed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());
    let shelf = Checkpoints::of(&run);
    let (place, mut progress) = shelf.find(CheckpointName::Last).expect("there is a checkpoint");
    let controller = fs::read(place.join("policy/controller.ron")).expect("there is a controller");
    progress.engine = "0.0.1".into();
    let fill = |fresh: &Path| {
        fs::create_dir(fresh.join("policy"))?;
        Ok(fs::write(fresh.join("policy/controller.ron"), &controller)?)
    };
    shelf.put(&progress, fill).expect("the checkpoint is replaced");

    succeeds(&resume(&run, &["--extend", "1"]));

    let expected = format!("resumed with engine {} instead of 0.0.1", env!("CARGO_PKG_VERSION"));
    assert!(notes(&run).contains(&expected), "{:?}", notes(&run));
}

#[test]
fn a_resumed_run_changes_its_precision_only_where_that_is_allowed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = finished(folder.path());

    let message = refused(&resume(&run, &["--extend", "1", "--set", "training.amp=bf16"]));
    let why = "training.amp: the run has \"off\", now \"bf16\"; --allow training.amp lets it change";
    assert!(message.contains(why), "{message}");

    let allowed = ["--extend", "1", "--set", "training.amp=bf16", "--allow", "training.amp"];
    succeeds(&resume(&run, &allowed));
    let mut starts = crate::support::lines(&run);
    starts.retain(|line| line["type"] == "run_started");
    assert_eq!(starts[1]["data"]["amp_dtype"], "bf16");
    assert!(
        notes(&run).iter().any(|note| note.contains("training.amp \"bf16\"")),
        "{:?}",
        notes(&run)
    );
}
