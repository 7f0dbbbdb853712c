//! The scripts: the one that fetches libtorch, with a Python that has no network, and the one that tries a build on a GPU,
//! with a `cargo` and an engine that do nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::{assert_has, ends_with, folder, refused, repository, succeeds, write};

fn write_program(path: &Path, content: &str) {
    write(path, content);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("it may be run");
}

fn script(name: &str) -> PathBuf {
    repository().join("scripts").join(name)
}

/// Asks for a libtorch in a folder that has one which looks complete, with a Python whose pip cannot install.
fn set_up(root: &Path, folder: &str) -> Option<i32> {
    let torch = root.join(folder).join("torch");
    write(&torch.join("version.py"), "__version__ = '2.11.0+cpu'\n");
    write(&torch.join("lib/libtorch_cpu.so"), "");
    let python = root.join("python");
    write_program(&python, "#!/bin/sh\n[ \"$3\" = --version ]\n");
    let mut sh = Command::new("sh");
    sh.arg(script("setup-libtorch.sh")).arg(torch).arg("2.11.0");
    let ended = sh.arg(python).arg("cpu").output();
    ended.expect("sh is there").status.code()
}

#[test]
fn a_download_that_was_interrupted_is_not_taken_for_complete() {
    let root = folder();

    assert_eq!(set_up(root.path(), ".libtorch"), Some(1), "it is fetched again");
    assert!(!root.path().join(".libtorch/torch").exists());

    write(&root.path().join(".libtorch/.simic-engine-cpu"), "");
    assert_eq!(set_up(root.path(), ".libtorch"), Some(0));
}

#[test]
fn a_libtorch_of_the_user_s_own_needs_no_mark_of_ours() {
    assert_eq!(set_up(folder().path(), "opt"), Some(0));
}

/// Messages where CUDA is wanted, `nvidia-smi` does this and pip cannot install; `begins` says whether it was begun.
fn set_up_with(nvidia_smi: &str, begins: bool) -> String {
    let root = folder();
    write_program(&root.path().join("bin/nvidia-smi"), nvidia_smi);
    write_program(&root.path().join("bin/cat"), "#!/bin/sh\nexit 1\n");
    let python = root.path().join("python");
    write_program(&python, "#!/bin/sh\n[ \"$3\" = --version ]\n");
    let path = std::env::var("PATH").expect("there is a path");
    let mut sh = Command::new("sh");
    sh.env("PATH", format!("{}:{path}", root.path().join("bin").display()));
    sh.arg(script("setup-libtorch.sh"))
        .arg(root.path().join(".libtorch/torch"));
    let ended = sh.arg("2.11.0").arg(python).arg("cuda").output().expect("sh is there");
    assert_eq!(ended.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&ended.stdout).contains("downloading");
    assert_eq!(printed, begins);
    String::from_utf8(ended.stderr).expect("text")
}

#[test]
fn three_gigabytes_are_not_downloaded_for_a_driver_that_is_too_old() {
    let old = set_up_with("#!/bin/sh\necho 570.86.15\necho 570.86.15\n", false);
    let expected = "driver here is 570.86.15, but libtorch 2.11.0 with CUDA 13 needs 580 or later";
    assert_has(&old, &[expected]);

    let missing = set_up_with("#!/bin/sh\necho NVIDIA-SMI has failed\nexit 9\n", true);
    assert_has(
        &missing,
        &["no NVIDIA driver was found", "pip could not install libtorch"],
    );
}

/// Says where the program lies that it was asked for.
const CARGO: &str = r#"#!/bin/sh
[ "$1" = bench ] || exit 101
echo '{"reason":"compiler-artifact","executable":"'"$BUILT/device_check-0123abcd"'","fresh":true}'
"#;

fn gpu_check(script: &Path, root: &Path, arguments: &str) -> Output {
    let path = std::env::var("PATH").expect("there is a path");
    let mut bash = Command::new("bash");
    bash.arg(script).args(arguments.split(' ')).current_dir(root);
    bash.env("PATH", format!("{}:{path}", root.join("bin").display()));
    bash.env("BUILT", root.join("built")).output().expect("bash is there")
}

/// Output of collecting a folder with the results of a build, and a `strip` that copies.
fn collected(root: &Path, cargo: &str, program: &str) -> Output {
    write(&root.join("torch/version.py"), "__version__ = '2.11.0+cu130'\n");
    write_program(&root.join("bin/cargo"), cargo);
    write_program(&root.join("bin/strip"), "#!/bin/sh\ncp \"$3\" \"$2\"\n");
    write_program(&root.join("built/device_check-0123abcd"), program);
    gpu_check(&script("gpu-check.sh"), root, "collect carried")
}

#[test]
fn what_is_collected_for_a_machine_with_a_gpu_is_played_there_with_the_libraries_of_its_torch() {
    let root = folder();
    let program = "#!/bin/sh\necho \"$LD_LIBRARY_PATH\"\necho \"$@\"\n[ -f \"$(dirname \"$0\")/eager.py\" ]\n";

    succeeds(&collected(root.path(), CARGO, program));

    let again = refused(&collected(root.path(), CARGO, program));
    assert_has(&again, &["carried exists"]);
    let carried = root.path().join("carried/gpu-check.sh");
    let said = succeeds(&gpu_check(&carried, root.path(), "run --torch torch --limit-s 9"));
    assert!(said.starts_with("torch/lib"), "{said}");
    assert!(said.ends_with("--device cuda:0 --limit-s 9\n"), "{said}");
    let without_value = gpu_check(&carried, root.path(), "run --torch").stderr;
    assert_eq!(without_value, b"gpu-check: --torch needs a value.\n");
}

#[test]
fn a_device_check_that_fails_fails_the_script() {
    let root = folder();
    collected(root.path(), CARGO, "#!/bin/sh\nexit 1\n");

    let carried = root.path().join("carried/gpu-check.sh");
    let tried = gpu_check(&carried, root.path(), "run --torch torch");

    ends_with(1, &tried);
}

#[test]
fn a_build_that_fails_is_not_carried_anywhere() {
    let root = folder();

    let collected = collected(root.path(), "#!/bin/sh\nexit 101\n", "");

    assert!(!collected.status.success());
    assert!(!root.path().join("carried").exists());
}
