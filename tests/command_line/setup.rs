//! The scripts: the one that fetches libtorch, with a Python that has no network, and the one that tries a build on a GPU,
//! with a `cargo` and an engine that do nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::{refused, text};

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
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name)
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

/// Says where the programs lie that it was asked for; among those of the tests, as cargo does, the engine.
const CARGO: &str = r#"#!/bin/sh
case $1 in
    build) programs=simic-engine ;;
    test) programs="simic_engine-0123abcd engine-4567cdef simic-engine" ;;
esac
for program in $programs; do
    echo '{"reason":"compiler-artifact","executable":"'"$BUILT/$program"'","fresh":true}'
done
echo '{"reason":"build-finished","success":true}'
"#;

/// Records one round in the folder that `--out` names.
const ENGINE: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo simic-engine 0; exit; fi
while [ "$1" != --out ]; do shift; done
mkdir -p "$2/run"
echo '{"type":"round_finished","data":{"accuracy_mean":50.5,"accuracy_env":[50,51],"env_steps_per_s":12.25}}' \
    > "$2/run/events.jsonl"
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

/// A folder with what a build would have left.
fn built(root: &Path, cargo: &str, test: &str) {
    write(&root.join("torch/version.py"), "__version__ = '2.11.0+cu130'\n");
    for (program, content) in [
        ("bin/cargo", cargo),
        ("built/simic-engine", ENGINE),
        ("built/simic_engine-0123abcd", test),
        ("built/engine-4567cdef", "#!/bin/sh\n"),
    ] {
        write(&root.join(program), content);
        make_executable(&root.join(program));
    }
}

#[test]
fn what_is_collected_for_a_machine_with_a_gpu_can_be_tried_there() {
    let root = tempfile::tempdir().expect("a folder");
    built(root.path(), CARGO, "#!/bin/sh\n");

    let collected = gpu_check(&script("gpu-check.sh"), root.path(), &["collect", "carried"]);

    assert!(collected.status.success(), "{}", text(&collected.stderr));
    let carried = root.path().join("carried");
    let tests = ["simic_engine-0123abcd", "engine-4567cdef"].map(|test| carried.join("tests").join(test));
    assert!(tests.iter().all(|test| test.is_file()));
    assert!(!carried.join("tests/simic-engine").exists(), "it is no test");
    let again = gpu_check(&script("gpu-check.sh"), root.path(), &["collect", "carried"]);
    assert!(refused(&again).contains("carried is there already"));

    let try_out = |more: &[&str]| {
        let arguments = [&["run", "--device", "cpu", "--torch", "torch"], more].concat();
        gpu_check(&carried.join("gpu-check.sh"), root.path(), &arguments)
    };
    let tried = try_out(&[]);
    let table = text(&tried.stdout);
    assert!(tried.status.success(), "{table}{}", text(&tried.stderr));
    let rows = |begins: &str| table.lines().filter(|line| line.starts_with(begins)).count();
    assert_eq!((rows("| tests: "), rows("| a policy that learns")), (2, 3), "{table}");
    let played = table.lines().find(|line| line.starts_with("| seeds under rules  "));
    let cells: Vec<&str> = played.expect("it is played").split('|').map(str::trim).collect();
    assert_eq!(cells[2..5], ["ok", "12.25", "50.50"], "{table}");
    assert!(table.contains("| both reached the same in every env"), "{table}");
    assert!(!table.contains("FAILED"), "{table}");
    assert_eq!(
        text(&try_out(&["--torch"]).stderr),
        "gpu-check: --torch needs a value.\n"
    );
}

#[test]
fn a_check_that_fails_fails_the_whole_and_is_quoted() {
    let root = tempfile::tempdir().expect("a folder");
    built(root.path(), CARGO, "#!/bin/sh\necho no such device\nexit 101\n");
    gpu_check(&script("gpu-check.sh"), root.path(), &["collect", "carried"]);

    let script = root.path().join("carried/gpu-check.sh");
    let tried = gpu_check(&script, root.path(), &["run", "--device", "cpu", "--torch", "torch"]);

    assert_eq!(tried.status.code(), Some(1));
    let table = text(&tried.stdout);
    assert_eq!(table.matches("| FAILED |").count(), 1, "{table}");
    assert!(table.ends_with("--- tests: simic_engine\nno such device\n"), "{table}");
}

#[test]
fn a_build_that_fails_is_not_carried_anywhere() {
    let root = tempfile::tempdir().expect("a folder");
    built(root.path(), "#!/bin/sh\n[ \"$1\" = test ] && exit 101\n", "");

    let collected = gpu_check(&script("gpu-check.sh"), root.path(), &["collect", "carried"]);

    assert!(!collected.status.success());
    assert!(!root.path().join("carried").exists());
}
