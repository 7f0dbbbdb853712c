//! The folder of a run: record, status, and checkpoints with their policies.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use simic_engine::internals::checkpoint::{
    BestCheckpoint, CheckpointName, Checkpoints, FrozenPolicy, PastRun, Progress,
};
use simic_engine::internals::engine::Prepared;
use simic_engine::internals::inspect::{DiffKind, Extent, check, diff};
use simic_engine::internals::record::{RunStatus, list_runs};
use simic_engine::internals::scenario::Override;
use simic_engine::internals::telemetry::{EventsMark, Num, RunState, Timestamp};
use simic_engine::prelude::*;
use tempfile::TempDir;

use super::found::{Folder, harms};
use super::harness::{fuzz, in_bounds, names};
use crate::recorded::{CATALOG, NOTHING, directory, play};

/// A run of two rounds of one env whose policy learns, and the folder that it is in.
fn played() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a temporary folder");
    let text = r#"(
        name: "small",
        task: preset("digits_minimal", (batches_per_step: count(1))),
        run: (rounds: 2, n_envs: 1, max_steps: 3),
        policy: (controller: "actor_critic", net_cfg: (hidden_dim: 8)),
    )"#;
    let run = directory(&play(text, place.path(), NOTHING));
    (place, run)
}

/// Everything that only reads a run, and the errors that name what is wrong with it.
fn read_all(root: &Path, run: &Path) -> Vec<String> {
    fn refusal<T, E: ToString>(read: Result<T, E>) -> Option<String> {
        read.err().map(|error| error.to_string())
    }
    let past = PastRun::open(run, CheckpointName::Last);
    let errors = [
        refusal(RunStatus::read(run)),
        refusal(list_runs(root)),
        refusal(FrozenPolicy::find(run, CheckpointName::Last)),
        refusal(FrozenPolicy::find(run, CheckpointName::Best)),
        refusal(diff(run, run, &DiffKind::ALL, Extent::OfEvery(3))),
        past.as_ref().ok().and_then(|past| refusal(past.earlier_changes())),
        past.as_ref().ok().and_then(|past| refusal(past.is_finished(2))),
        refusal(past),
    ];
    check(run, &CATALOG);
    errors.into_iter().flatten().collect()
}

#[test]
fn folders_of_runs() {
    let (place, run) = played();
    let folder = Folder::taken(place, &run);
    assert_eq!(read_all(folder.path(), &run), [""; 0]);
    fuzz(harms(), |harm| {
        let damaged = folder.damage(&harm);
        let place = run.display().to_string();
        for message in in_bounds(damaged.bytes, || read_all(folder.path(), &run))? {
            prop_assert!(message.contains(&place), "{message}");
        }
        Ok(())
    });
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let place = to.join(entry.file_name());
        let kind = entry.file_type().expect("it is there");
        if kind.is_dir() {
            copy(&entry.path(), &place);
        } else if kind.is_file() {
            fs::copy(entry.path(), place).expect("it is copied");
        }
    }
}

/// Writes the list of hashes of a checkpoint again: with it, damaged files are read instead of refused.
fn vouch_for(checkpoint: &Path) {
    let list = fs::read_to_string(checkpoint.join("b3sums")).expect("there is a list");
    let line = |line: &str| {
        let (_, file) = line.split_once("  ").expect("a sum and a name");
        let content = fs::read(checkpoint.join(file)).expect("it is listed");
        format!("{}  {file}\n", blake3::hash(&content))
    };
    let updated: String = list.lines().map(line).collect();
    fs::write(checkpoint.join("b3sums"), updated).expect("it is written");
}

/// Resumes a run, until its next round has begun.
fn resume(root: &Path, run: &Path) -> Result<(), Box<dyn Error>> {
    let past = PastRun::open(run, CheckpointName::Last)?;
    let load = |overrides: &[Override]| Prepared::from_ron("resolved.ron", &past.resolved, overrides, &CATALOG);
    let before = load(&[])?.loaded.scenario;
    let more = [Override::flag("--set", "run.rounds", 3)];
    let mut now = load(&more)?;
    now.file = past.file.clone();
    let point = past.resume(&before, &now.loaded, &more, &[])?;
    let engine = Engine::builder().threads(1).recorded(root).resumed(point);
    engine.build(&now)?.step()?;
    Ok(())
}

#[test]
fn checkpoints_whose_hashes_vouch_for_the_damage() {
    let (place, run) = played();
    let name = "checkpoints/round-000002";
    let folder = Folder::taken(place, &run.join(name));
    let resumed = |is_sound: bool| {
        let place = tempfile::tempdir().expect("a temporary folder");
        let copied = place.path().join("run");
        copy(&run, &copied);
        if is_sound {
            vouch_for(&copied.join(name));
        }
        check(&copied, &CATALOG);
        resume(place.path(), &copied).map_err(|error| error.to_string())
    };
    resumed(true).expect("the whole run is resumed");
    fuzz(harms(), |harm| {
        let damaged = folder.damage(&harm);
        let resumed = resumed(!damaged.path.ends_with("b3sums"));
        // A file that can be read and differs from the run is reported field by field, without the file's name.
        let of_fields = [
            "the run cannot be resumed as requested",
            "the run has learnt from other data",
        ];
        if let Err(message) = resumed
            && !of_fields.iter().any(|field| message.contains(field))
        {
            let folder = damaged.path.parent().unwrap_or(&damaged.path);
            names(&message, folder).or_else(|_| names(&message, &damaged.path))?;
        }
        Ok(())
    });
}

/// Everything of a round that is resumed inside that no hash covers.
#[test]
fn what_is_kept_of_a_round() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let mut round = UnfinishedRound::default();
    let episode = (1.5, vec![Some(3), None]);
    round.put("env0.episode", &episode).expect("RON says it");
    round.put("env0.status", &"stalled").expect("RON says it");
    let weights = Tensor::from_slice(&[1.0_f32, f32::NAN, -0.0]);
    round.put_tensor("env0.host.weight", &weights).expect("it is kept");
    round.write(place.path()).expect("it is written");
    let written = place.path().to_path_buf();
    let folder = Folder::taken(place, &written);
    fuzz(harms(), |harm| {
        let damaged = folder.damage(&harm);
        match in_bounds(damaged.bytes, || UnfinishedRound::read(folder.path()))? {
            Ok(read) => drop(read.get::<(f64, Vec<Option<u32>>)>("env0.episode")),
            Err(error) => names(&error, &damaged.path)?,
        }
        Ok(())
    });
}

fn progress() -> impl Strategy<Value = Progress> {
    let texts = || vec(any::<String>(), 0..3);
    let accuracy = || -1e300..1e300_f64;
    let best = prop::option::of((any::<u32>(), accuracy()));
    let counts = (any::<u32>(), 0_u32..900_000, any::<u64>(), any::<usize>());
    let names = (any::<String>(), any::<String>(), any::<String>());
    (counts, names, texts(), texts(), vec(accuracy(), 0..4), best).prop_map(
        |(counts, names, slots, changes, history, best)| Progress {
            format: Progress::FORMAT,
            engine: names.0,
            scenario_hash: names.1,
            data_hash: names.2.clone(),
            weights_hash: Some(names.2.clone()),
            rounds: counts.0,
            next_round: counts.1,
            step: 0,
            next_seq: counts.2,
            recorded: None,
            n_envs: counts.3,
            slots,
            controller: names.2,
            changes,
            history,
            best: best.map(|(next_round, accuracy)| BestCheckpoint { next_round, accuracy }),
        },
    )
}

#[test]
fn how_far_a_run_has_come_is_read_as_it_was_written() {
    fuzz(progress(), |progress| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let shelf = Checkpoints::of(folder.path());
        shelf.put(&progress, |_| Ok(())).expect("it is written");
        let found = shelf.find(CheckpointName::Last);
        let (_, read) = found.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(read, progress);
        Ok(())
    });
}

fn statuses() -> impl Strategy<Value = RunStatus> {
    let number = || prop::option::of(any::<f64>().prop_map(Num));
    let count = || prop::option::of(any::<u32>());
    let text = || prop::option::of(any::<String>());
    let moment = (-60_000_000_000_000_i64..250_000_000_000_000).prop_map(Timestamp::from_milliseconds);
    let counts = (any::<u32>(), any::<u64>(), count(), count(), count());
    let numbers = (number(), number(), number(), number());
    (counts, numbers, text(), text(), moment).prop_map(|(counts, numbers, scenario, error, heartbeat)| RunStatus {
        state: RunState::Running,
        pid: counts.0,
        heartbeat,
        round: counts.2.filter(|&round| round < u32::MAX),
        step: counts.3,
        scenario,
        rounds: counts.4,
        n_rounds: counts.3,
        episodes: counts.1,
        best_accuracy: numbers.0,
        env_steps_per_s: numbers.1,
        rolling_accuracy: numbers.2,
        eta_s: numbers.3,
        recorded: error.clone().map(|blake3| EventsMark {
            bytes: counts.1,
            blake3,
        }),
        error,
    })
}

#[test]
fn a_status_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fuzz(statuses(), |status| {
        status.write(folder.path()).expect("it is written");
        let read = RunStatus::read(folder.path()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(read, status);
        Ok(())
    });
}

#[test]
fn files_of_status() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let status = RunStatus::new(RunState::Completed);
    status.write(place.path()).expect("it is written");
    let root = place.path().to_owned();
    let folder = Folder::taken(place, &root);
    fuzz(harms(), |harm| {
        let damaged = folder.damage(&harm);
        let read = in_bounds(damaged.bytes, || RunStatus::read(&root))?;
        read.map_or_else(|error| names(&error, &damaged.path), |_| Ok(()))
    });
}
