//! The scripts: the one that fetches libtorch, with a Python that has no network, and the one that tries a build on a GPU,
//! with a `cargo` and an engine that do nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::{refused, repository, text};

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
    make_executable(&root.join("python"));
}

fn make_executable(path: &Path) {
    let made = Command::new("chmod").arg("+x").arg(path).status();
    assert!(made.expect("chmod is there").success());
}

fn script(name: &str) -> PathBuf {
    repository().join("scripts").join(name)
}

fn set_up(root: &Path, folder: &str) -> Option<i32> {
    let ended = Command::new("sh")
        .arg(script("setup-libtorch.sh"))
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

/// Says where the program lies that it was asked for.
const CARGO: &str = r#"#!/bin/sh
[ "$1" = bench ] || exit 101
echo '{"reason":"compiler-artifact","executable":"'"$BUILT/device_check-0123abcd"'","fresh":true}'
"#;

fn gpu_check(script: &Path, root: &Path, arguments: &[&str]) -> Output {
    let path = std::env::var("PATH").expect("there is a path");
    Command::new("bash")
        .arg(script)
        .args(arguments)
        .current_dir(root)
        .env("PATH", format!("{}:{path}", root.join("bin").display()))
        .env("BUILT", root.join("built"))
        .output()
        .expect("bash is there")
}

/// A folder with what a build would have left, and a `strip` that copies.
fn built(root: &Path, cargo: &str, program: &str) {
    write(&root.join("torch/version.py"), "__version__ = '2.11.0+cu130'\n");
    for (path, content) in [
        ("bin/cargo", cargo),
        ("bin/strip", "#!/bin/sh\ncp \"$3\" \"$2\"\n"),
        ("built/device_check-0123abcd", program),
    ] {
        write(&root.join(path), content);
        make_executable(&root.join(path));
    }
}

#[test]
fn what_is_collected_for_a_machine_with_a_gpu_is_played_there_with_the_libraries_of_its_torch() {
    let root = tempfile::tempdir().expect("a folder");
    let program = "#!/bin/sh\necho \"$LD_LIBRARY_PATH\"\necho \"$@\"\n[ -f \"$(dirname \"$0\")/eager.py\" ]\n";
    built(root.path(), CARGO, program);

    let collected = gpu_check(&script("gpu-check.sh"), root.path(), &["collect", "carried"]);

    assert!(collected.status.success(), "{}", text(&collected.stderr));
    let again = gpu_check(&script("gpu-check.sh"), root.path(), &["collect", "carried"]);
    assert!(refused(&again).contains("carried is there already"));
    let carried = root.path().join("carried/gpu-check.sh");
    let tried = gpu_check(&carried, root.path(), &["run", "--torch", "torch", "--limit-s", "9"]);
    assert!(tried.status.success(), "{}", text(&tried.stderr));
    let told = text(&tried.stdout);
    assert!(told.starts_with("torch/lib"), "{told}");
    assert!(told.ends_with("--device cuda:0 --limit-s 9\n"), "{told}");
    let without_value = gpu_check(&carried, root.path(), &["run", "--torch"]);
    assert_eq!(text(&without_value.stderr), "gpu-check: --torch needs a value.\n");
}

#[test]
fn a_device_check_that_fails_fails_the_script() {
    let root = tempfile::tempdir().expect("a folder");
    built(root.path(), CARGO, "#!/bin/sh\nexit 1\n");
    gpu_check(&script("gpu-check.sh"), root.path(), &["collect", "carried"]);

    let carried = root.path().join("carried/gpu-check.sh");
    let tried = gpu_check(&carried, root.path(), &["run", "--torch", "torch"]);

    assert_eq!(tried.status.code(), Some(1));
}

#[test]
fn a_build_that_fails_is_not_carried_anywhere() {
    let root = tempfile::tempdir().expect("a folder");
    built(root.path(), "#!/bin/sh\nexit 101\n", "");

    let collected = gpu_check(&script("gpu-check.sh"), root.path(), &["collect", "carried"]);

    assert!(!collected.status.success());
    assert!(!root.path().join("carried").exists());
}
