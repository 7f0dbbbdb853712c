use std::collections::BTreeMap;
use std::io::Write;

use super::*;
use crate::storage::{self, File};

/// All files below `root` and what they hold; folders end in `/`.
fn content(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let inside = content(&path).into_iter();
            found.extend(inside.map(|(inner, text)| (format!("{name}/{inner}"), text)));
            found.insert(format!("{name}/"), Vec::new());
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

fn files(expected: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    let file = |&(name, text): &(&str, &str)| (name.into(), text.into());
    expected.iter().map(file).collect()
}

/// A folder with a file `old`, and what is left of it after `operations` under a fault that strikes their `n`-th.
fn after(n: u64, fault: Fault, operations: impl Fn(&Path) -> io::Result<()>) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("old"), "before").unwrap();
    let faults = StorageFaults::under(&root, n, fault);
    let done = operations(&root);
    assert_eq!(done.is_err(), faults.struck().is_some(), "{done:?}");
    drop(faults);
    content(&root)
}

fn replace(root: &Path) -> io::Result<()> {
    storage::replace_synced(&root.join("old"), b"behind")
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all_wherever_the_power_fails() {
    // Create, write, sync, rename, sync of the folder.
    for n in 1..=5 {
        let left = after(n, Fault::PowerCut, replace);
        assert_eq!(left["old"], b"before", "{n}: {left:?}");
    }
    assert_eq!(after(6, Fault::PowerCut, replace), files(&[("old", "behind")]));
}

#[test]
fn a_process_that_is_killed_leaves_what_it_had_done() {
    let half_done = |text| files(&[("old", "before"), ("old.tmp", text)]);
    assert_eq!(after(2, Fault::Kill, replace), half_done(""));
    assert_eq!(after(2, Fault::Torn, replace), half_done("beh"));
    assert_eq!(after(5, Fault::Kill, replace), files(&[("old", "behind")]));
}

#[test]
fn an_error_strikes_once_and_a_full_or_protected_disk_stays_so() {
    let twice = |root: &Path| {
        let _ = storage::write_synced(&root.join("one"), b"1111");
        storage::write_synced(&root.join("two"), b"2222").and(Err(ErrorKind::Other.into()))
    };

    assert_eq!(after(2, Fault::InputOutput, twice)["two"], b"2222");
    let half_written = files(&[("old", "before"), ("one", "11")]);
    assert_eq!(after(2, Fault::NoSpace, twice), half_written);
    assert_eq!(after(1, Fault::ReadOnly, twice), files(&[("old", "before")]));
}

#[test]
fn what_finds_no_space_leaves_what_was_there_and_nothing_beside_it() {
    // A file: create, write.
    for n in 1..=2 {
        assert_eq!(after(n, Fault::NoSpace, replace), files(&[("old", "before")]), "{n}");
    }
    let replace_folder = |root: &Path| {
        let folder = root.join("folder");
        storage::create_dir(&folder)?;
        storage::write_synced(&folder.join("a"), b"before")?;
        let fresh = b"behind".as_slice();
        storage::replace_folder(&folder, &[("a", fresh), ("b", fresh)])
    };
    // After the four operations that make it: a folder, and for each file create, write, sync.
    let kept = files(&[("folder/", ""), ("folder/a", "before"), ("old", "before")]);
    for n in 5..=10 {
        assert_eq!(after(n, Fault::NoSpace, replace_folder), kept, "{n}");
    }
}

type Operations = fn(&Path) -> io::Result<()>;

/// The last operation is struck, so everything that was not synchronised is lost.
fn lost(operations: impl Fn(&Path) -> io::Result<()>) -> BTreeMap<String, Vec<u8>> {
    let count = {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("old"), "before").unwrap();
        let faults = StorageFaults::under(folder.path(), u64::MAX, Fault::PowerCut);
        operations(folder.path()).unwrap();
        faults.operations()
    };
    after(count + 1, Fault::PowerCut, |root| {
        operations(root)?;
        storage::create_dir(&root.join("struck"))
    })
}

#[test]
fn a_power_cut_takes_back_everything_that_was_not_synchronised() {
    let unsynced: [(&str, Operations); 7] = [
        ("a name", |root| storage::write_synced(&root.join("new"), b"1")),
        ("a folder and what is in it", |root| {
            storage::create_dir_all(&root.join("a/b"))?;
            storage::write_synced(&root.join("a/b/new"), b"1")?;
            storage::sync_folder(&root.join("a/b"))
        }),
        ("what was added", |root| {
            File::append(&root.join("old"))?.write_all(b"more")
        }),
        ("a cut", |root| File::change(&root.join("old"))?.set_len(2)),
        ("what was written over", |root| {
            File::create(&root.join("old"))?.write_all(b"x")
        }),
        ("a removal", |root| storage::remove_file(&root.join("old"))),
        ("a chain of names", |root| {
            storage::rename(&root.join("old"), &root.join("newer"))?;
            storage::write_synced(&root.join("old"), b"2")?;
            storage::rename(&root.join("old"), &root.join("newer"))
        }),
    ];
    for (what, operations) in unsynced {
        assert_eq!(lost(operations), files(&[("old", "before")]), "{what}");
    }
}

#[test]
fn what_was_synchronised_survives_a_power_cut_under_its_last_name() {
    let left = lost(|root| {
        let mut file = File::append(&root.join("old"))?;
        file.write_all(b" and")?;
        file.sync()?;
        file.write_all(b" lost")?;
        storage::create_dir(&root.join("draft"))?;
        storage::write_synced(&root.join("draft/a"), b"a")?;
        storage::sync_folder(&root.join("draft"))?;
        storage::write_synced(&root.join("draft/b"), b"b")?;
        storage::rename(&root.join("draft"), &root.join("done"))?;
        storage::sync_folder(root)
    });

    assert_eq!(left, files(&[("old", "before and"), ("done/", ""), ("done/a", "a")]));
}
