//! The script that fetches libtorch, with a Python that has no network.

use std::path::Path;
use std::process::Command;

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
    std::fs::write(path, content).expect("the file can be written");
}

/// A folder with a libtorch that looks complete, and a Python whose pip cannot install.
fn kit(root: &Path, folder: &str) {
    write(
        &root.join(folder).join("torch/version.py"),
        "__version__ = '2.11.0+cpu'\n",
    );
    write(&root.join(folder).join("torch/lib/libtorch_cpu.so"), "");
    write(&root.join("python"), "#!/bin/sh\n[ \"$3\" = --version ]\n");
    let made = Command::new("chmod").arg("+x").arg(root.join("python")).status();
    assert!(made.expect("chmod is there").success());
}

fn set_up(root: &Path, folder: &str) -> Option<i32> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/setup-libtorch.sh");
    let ended = Command::new("sh")
        .arg(script)
        .args([
            root.join(folder).join("torch"),
            "2.11.0".into(),
            root.join("python"),
            "cpu".into(),
        ])
        .output();
    ended.expect("sh is there").status.code()
}

#[test]
fn a_download_that_was_interrupted_is_not_taken_for_complete() {
    let root = tempfile::tempdir().expect("a folder");
    kit(root.path(), ".libtorch");

    assert_eq!(set_up(root.path(), ".libtorch"), Some(1), "it is fetched again");
    assert!(!root.path().join(".libtorch/torch").exists());

    kit(root.path(), ".libtorch");
    write(&root.path().join(".libtorch/.simic-engine-cpu"), "");
    assert_eq!(set_up(root.path(), ".libtorch"), Some(0));
}

#[test]
fn a_libtorch_of_the_user_s_own_needs_no_mark_of_ours() {
    let root = tempfile::tempdir().expect("a folder");
    kit(root.path(), "opt");

    assert_eq!(set_up(root.path(), "opt"), Some(0));
}
