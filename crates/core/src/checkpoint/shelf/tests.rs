use super::*;
use crate::storage::{Fault, StorageFaults};

pub fn progress(next_round: u32, best: Option<u32>) -> Progress {
    let accuracy = 50.0;
    Progress {
        format: Progress::FORMAT,
        engine: "0.1.0".into(),
        scenario_hash: "abcd".into(),
        data_hash: "ef01".into(),
        weights_hash: None,
        rounds: 9,
        next_round,
        step: 0,
        next_seq: 100,
        recorded: None,
        n_envs: 2,
        slots: vec!["r0c0".into()],
        controller: "random".into(),
        changes: Vec::new(),
        history: vec![0.1 + 0.2; next_round as usize],
        best: best.map(|next_round| BestCheckpoint { next_round, accuracy }),
    }
}

fn put(shelf: &Checkpoints, progress: &Progress) {
    let put = shelf.put(progress, |folder| Ok(fs::write(folder.join("state"), "1")?));
    put.unwrap();
}

/// The shelf of a new run with checkpoints before these rounds.
fn with(rounds: impl IntoIterator<Item = u32>) -> (tempfile::TempDir, Checkpoints) {
    let root = tempfile::tempdir().unwrap();
    let shelf = Checkpoints::of(root.path());
    for next_round in rounds {
        put(&shelf, &progress(next_round, None));
    }
    (root, shelf)
}

fn names(shelf: &Checkpoints) -> Vec<String> {
    let entries = fs::read_dir(&shelf.0).unwrap().map(Result::unwrap);
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// Names left after all but the newest few are thrown away.
fn put_and_tidy(shelf: &Checkpoints, progress: &Progress) -> Vec<String> {
    put(shelf, progress);
    shelf.tidy(progress);
    names(shelf)
}

fn target(shelf: &Checkpoints, link: &str) -> PathBuf {
    fs::read_link(shelf.0.join(link)).unwrap()
}

fn replace(path: &Path, text: &str, with: &str) {
    let whole = fs::read_to_string(path).unwrap();
    fs::write(path, whole.replace(text, with)).unwrap();
}

#[test]
fn the_newest_checkpoint_is_found_as_it_was_put() {
    assert!(with([]).1.newest().is_err());
    let (root, shelf) = with([2, 3]);

    let (folder, found) = shelf.newest().unwrap();

    assert_eq!(found, progress(3, None));
    let relative = Checkpoints::relative_path(CheckpointId::before(3));
    assert_eq!(relative, "checkpoints/round-000003");
    assert_eq!(folder, root.path().join(relative));
}

#[test]
fn the_newest_few_and_the_best_stay() {
    let (_root, shelf) = with([]);

    for next_round in 0..7 {
        put_and_tidy(&shelf, &progress(next_round, Some(next_round.min(1))));
    }

    assert_eq!(shelf.rounds(), [6, 5, 4, 1]);
    assert_eq!(target(&shelf, "best"), Path::new("round-000001"));
    assert_eq!(target(&shelf, "last"), Path::new("round-000006"));
}

/// The checkpoint was deleted by hand, or was never written.
#[cfg(unix)]
#[test]
fn the_best_that_is_there_stays_where_a_better_one_is_not() {
    let (_root, shelf) = with([]);

    for (next_round, best) in [(1, 1), (3, 2), (4, 2), (5, 2), (6, 2)] {
        put_and_tidy(&shelf, &progress(next_round, Some(best)));
    }

    assert_eq!(shelf.rounds(), [6, 5, 4, 1]);
    assert_eq!(target(&shelf, "best"), Path::new("round-000001"));
}

#[test]
fn a_checkpoint_is_found_by_its_name() {
    let (_root, shelf) = with([]);
    let find = |name: &str| shelf.find(name.parse().unwrap());
    let round_of = |name: &str| find(name).unwrap().1.next_round;
    let why = |name: &str| find(name).unwrap_err().to_string();
    assert!(why("last").ends_with("holds no checkpoint"));
    put(&shelf, &progress(0, None));
    assert!(why("best").contains("holds no best checkpoint"));

    put(&shelf, &progress(2, Some(2)));
    put(&shelf, &progress(3, Some(2)));

    assert_eq!(["last", "best", "0"].map(round_of), [3, 2, 0]);
    let missing = "holds no checkpoint after 1 round; it holds those after 0, 2, 3";
    assert!(why("1").ends_with(missing), "{}", why("1"));
    assert!("newest".parse::<CheckpointName>().is_err());
}

fn inside(next_round: u32, step: u32) -> Progress {
    let mut progress = progress(next_round, None);
    progress.step = step;
    progress
}

#[test]
fn one_inside_a_round_is_the_newest_until_there_is_a_newer_one() {
    let (_root, shelf) = with([0]);
    put_and_tidy(&shelf, &inside(0, 7));

    let left = put_and_tidy(&shelf, &inside(0, 12));

    assert_eq!(left, ["last", "round-000000", "round-000000-step-0012"]);
    assert_eq!(shelf.newest().unwrap().1, inside(0, 12));
    assert_eq!(shelf.find(CheckpointName::Round(0)).unwrap().1, progress(0, None));
    let left = put_and_tidy(&shelf, &progress(1, None));
    assert_eq!(left, ["last", "round-000000", "round-000001"]);
}

/// A run that stops inside a round writes the boundary that it still owes after it.
#[test]
fn a_boundary_that_comes_later_leaves_a_newer_one_inside_the_round() {
    let (_root, shelf) = with([]);
    for progress in [inside(3, 5), progress(3, None)] {
        put_and_tidy(&shelf, &progress);
    }

    assert_eq!(shelf.newest().unwrap().1, inside(3, 5));
    #[cfg(unix)]
    assert_eq!(target(&shelf, "last"), Path::new("round-000003-step-0005"));
}

#[test]
fn a_run_keeps_the_checkpoints_that_it_discards() {
    let (_root, shelf) = with([2, 3, 4]);

    shelf.set_aside_after(CheckpointId::before(2)).unwrap();

    assert_eq!(names(&shelf), ["discarded-1", "round-000002"]);
    assert!(shelf.0.join("discarded-1/round-000004/run.ron").is_file());
    assert!(!shelf.has(3).unwrap());
}

/// The state after a process was killed. A resume from an older checkpoint moves the newest last.
#[test]
fn a_way_back_that_breaks_off_leaves_the_run_where_it_stood() {
    let (_root, shelf) = with([1, 2, 4]);
    // Counts as the third, and cannot be moved under its name.
    fs::create_dir(shelf.0.join("round-3")).unwrap();

    shelf.set_aside_after(CheckpointId::before(1)).unwrap_err();

    assert_eq!(shelf.newest().unwrap().1.next_round, 4);
}

#[test]
fn where_no_checkpoint_is_sound_the_fault_of_the_newest_is_named() {
    let (_root, shelf) = with([1, 2]);
    for name in ["round-000001", "round-000002"] {
        let path = shelf.0.join(name).join(PROGRESS_FILE);
        replace(&path, "format: 1", "format: 2, novelty: 1");
    }

    let why = shelf.find(CheckpointName::Last).unwrap_err().to_string();

    let fault = "round-000002/run.ron has format 2; this version reads format 1";
    assert!(why.ends_with(fault), "{why}");
}

#[test]
fn leftovers_of_a_killed_writer_arent_a_checkpoint_and_files_of_others_do_no_harm() {
    let (_root, shelf) = with([2]);
    fs::write(shelf.0.join("round-000002/notes.txt"), "mine").unwrap();
    fs::create_dir(shelf.0.join(".round-000003.new")).unwrap();
    fs::create_dir(shelf.0.join("round-000004")).unwrap();
    fs::write(shelf.0.join("round-000004/run.ron"), "(format: 1, eng").unwrap();

    assert_eq!(shelf.newest().unwrap().1.next_round, 2);

    put(&shelf, &progress(3, None));
    put(&shelf, &progress(4, None));
    assert_eq!(shelf.newest().unwrap().1.next_round, 4);
    assert_eq!(names(&shelf), ["round-000002", "round-000003", "round-000004"]);
}

#[test]
fn a_checkpoint_that_cannot_be_filled_leaves_the_older_one_and_nothing_of_itself() {
    let (_root, shelf) = with([2]);

    let error = shelf.put(&progress(2, None), |_| Err(Failure::message("disk full")));

    assert!(error.unwrap_err().to_string().ends_with("disk full"));
    assert_eq!(shelf.newest().unwrap().1.next_round, 2);
    assert_eq!(names(&shelf), ["round-000002"]);
}

#[test]
fn a_checkpoint_that_cannot_be_filled_is_tried_once_more() {
    let (_root, shelf) = with([2]);
    let mut attempts = 0;

    let put = shelf.put(&progress(2, Some(2)), |folder| {
        attempts += 1;
        match attempts {
            1 => Err(Failure::message("too many open files")),
            _ => Ok(fs::write(folder.join("state"), "2")?),
        }
    });

    assert!(put.is_ok(), "{put:?}");
    assert_eq!(shelf.newest().unwrap().1, progress(2, Some(2)));
    assert_eq!(names(&shelf), ["round-000002"], "the one that had its name is gone");
}

/// Something that cannot be removed lies where the old one would go.
#[test]
fn a_checkpoint_that_cannot_get_its_name_leaves_the_one_that_has_it() {
    let (_root, shelf) = with([2]);
    fs::write(shelf.0.join(".round-000002.old"), "").unwrap();

    let error = shelf.put(&progress(2, Some(2)), |_| Ok(())).unwrap_err().to_string();

    assert!(error.contains("round-000002"), "{error}");
    assert_eq!(shelf.newest().unwrap().1, progress(2, None));
}

fn cut(path: &Path, length: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(length).unwrap();
}

/// A change in every file, and in the list of checksums.
#[test]
fn a_damaged_checkpoint_is_passed_over_and_named_where_it_is_asked_for() {
    type Damage = (&'static str, fn(&Path));
    let damages: [Damage; 7] = [
        // One flipped bit.
        ("state", |path| fs::write(path, "0").unwrap()),
        ("state", |path| cut(path, 0)),
        ("state", |path| fs::remove_file(path).unwrap()),
        ("run.ron", |path| replace(path, "next_seq: 100", "next_seq: 99")),
        ("b3sums", |path| cut(path, 0)),
        ("b3sums", |path| cut(path, 70)),
        // A file without an end, if anything read it.
        ("b3sums", |path| replace(path, "  state", "  /dev/zero")),
    ];
    for (file, damage) in damages {
        let (_root, shelf) = with([2, 3]);
        assert_eq!(shelf.newest().unwrap().1.next_round, 3);

        damage(&shelf.0.join("round-000003").join(file));

        assert_eq!(shelf.newest().unwrap().1.next_round, 2, "{file}");
        let why = shelf.find(CheckpointName::Round(3)).unwrap_err().to_string();
        assert!(why.contains(&format!("round-000003/{file}")), "{file}: {why}");
    }
}

#[test]
fn a_run_directory_that_was_deleted_does_not_come_back() {
    let (root, shelf) = with([2]);

    fs::remove_dir_all(root.path()).unwrap();

    assert!(shelf.put(&progress(3, None), |_| Ok(())).is_err());
    assert!(!root.path().exists());
}

#[cfg(unix)]
#[test]
fn what_a_killed_process_left_is_swept_and_the_links_are_set_again() {
    let (_root, shelf) = with([0, 1, 2, 3]);
    point_at(&shelf.0, "last", "round-000002");
    for leftover in [".round-000004.new", ".round-000001.old"] {
        fs::create_dir(shelf.0.join(leftover)).unwrap();
        fs::write(shelf.0.join(leftover).join("state"), "1").unwrap();
    }
    std::os::unix::fs::symlink("round-000003", shelf.0.join(".last-round-000003")).unwrap();

    shelf.sweep();
    shelf.tidy(&progress(3, Some(9)));

    assert_eq!(names(&shelf), ["last", "round-000001", "round-000002", "round-000003"]);
    assert_eq!(target(&shelf, "last"), Path::new("round-000003"));
}

/// The newest of several is damaged and the run resumes from an older one: that one must stay.
#[test]
fn checkpoints_after_the_one_in_use_do_not_push_it_out() {
    let (_root, shelf) = with([0, 1, 2, 3, 4]);

    shelf.tidy(&progress(3, None));

    assert_eq!(shelf.rounds(), [4, 3, 2, 1]);
}

/// Like a network file system with a temporary error: unreadable checkpoints must not count as missing.
#[test]
fn a_folder_that_cannot_be_read_is_an_error_that_names_it_and_not_an_empty_one() {
    assert_eq!(with([]).1.list().unwrap(), []);
    let (root, shelf) = with([2]);

    let faults = StorageFaults::under(root.path(), 1, Fault::InputOutput);
    let error = shelf.find(CheckpointName::Last).unwrap_err();
    drop(faults);

    assert!(matches!(&error, CheckpointError::File(_)), "{error:?}");
    assert!(error.to_string().contains(&*shelf.0.to_string_lossy()), "{error}");
    assert!(shelf.find(CheckpointName::Last).is_ok());
}
