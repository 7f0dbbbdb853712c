//! Data sets on disk: what `data check` says of them, and runs that learn from them. The sets are generated ones in the
//! formats of public ones, from `scripts/fake-data.py`.

use std::path::Path;
use std::process::Command;

use crate::program::{call, ended, engine, newest, refused, repository, succeeds, text};
use crate::support::lines;

/// Generates a set in `folder`.
fn generate(folder: &Path, format: &str, options: &[&str]) {
    let made = Command::new("python3")
        .current_dir(repository())
        .args(["scripts/fake-data.py", format])
        .arg(folder)
        .args(options)
        .output()
        .expect("python3 starts");
    assert!(made.status.success(), "{}", text(&made.stderr));
}

fn check(path: &Path, more: &[&str]) -> std::process::Output {
    ended(call(&["data", "check"]).arg(path).args(more))
}

const SMALL: [&str; 6] = ["--train", "400", "--val", "50", "--test", "50"];

#[test]
fn texts_are_described_by_their_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let (text_file, tokens) = (folder.path().join("a.txt"), folder.path().join("tokens.bin"));
    std::fs::write(&text_file, "abab".repeat(100)).expect("it is written");
    std::fs::write(&tokens, [7_u16, 500, 7, 7].map(u16::to_le_bytes).concat()).expect("it is written");

    let described = succeeds(&check(&text_file, &[]));
    assert!(
        described.contains(
            "a.txt: text, 400 tokens, 2 different ones, the largest 98\n\n  \
             knowing how often each is there, 0.693 nats a token (perplexity 2.0)\n\nfor a scenario"
        ),
        "{described}"
    );
    let described = succeeds(&check(&tokens, &["--format", "tokens", "--json"]));
    let parsed: serde_json::Value = serde_json::from_str(&described).expect("JSON");
    assert_eq!((&parsed["tokens"], &parsed["largest"]), (&4.into(), &500.into()));
    let message = refused(&check(&tokens, &["--format", "tokens", "--vocab", "500"]));
    assert!(message.contains("tokens.bin") && message.contains("500"), "{message}");
}

#[test]
fn every_format_is_recognised_and_described() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    generate(folder.path(), "cifar10", &SMALL);
    generate(folder.path(), "cifar100", &SMALL);
    generate(&at("mnist"), "mnist", &SMALL);
    generate(&at("photos"), "images", &SMALL);
    generate(folder.path(), "npz", &SMALL);

    let described = ["cifar-10-binary.tar.gz", "mnist", "photos", "set.npz"].map(|name| {
        let output = check(&at(name), &[]);
        let table = succeeds(&output).replace(&format!("{}/", folder.path().display()), "");
        format!("{table}{}", text(&output.stderr))
    });
    insta::assert_snapshot!(
        described
            .join("\n")
            .replace(&format!("{}/", folder.path().display()), "")
    );

    // Too many classes to list each.
    let hundred = succeeds(&check(&at("cifar-100-binary.tar.gz"), &[]));
    assert!(
        hundred.contains("cifar100, 32x32 pixels of 3 channels, 100 classes"),
        "{hundred}"
    );
    assert!(hundred.contains("rarest"), "{hundred}");
    let parsed: serde_json::Value =
        serde_json::from_str(&succeeds(&check(&at("cifar-100-binary.tar.gz"), &["--json"]))).expect("JSON");
    assert_eq!(parsed["classes"][7]["images"], serde_json::json!([4, 1]));
    assert_eq!(parsed["classes"][7]["name"], "grating_07");
}

#[test]
fn photographs_of_any_size_are_described_with_a_task_to_paste() {
    let folder = tempfile::tempdir().expect("a folder");
    let photos = folder.path().join("photos");
    for (class, width, height) in [("ant", 40, 30), ("cat", 50, 60)] {
        std::fs::create_dir_all(photos.join(class)).expect("a folder");
        let image = image::RgbImage::from_fn(width, height, |x, y| image::Rgb([x as u8, y as u8, 0]));
        image.save(photos.join(class).join("1.png")).expect("it is written");
    }

    let output = check(&photos, &[]);

    let described = succeeds(&output);
    let warned = text(&output.stderr);
    assert!(
        warned.contains("2 sizes, from 40x30 to 50x60 (width x height); 2 were cropped"),
        "{warned}"
    );
    let (_, task) = described.split_once("prints a whole one):").expect("a task");
    assert!(task.contains("// Classes: ant, cat."), "{task}");
    let scenario = folder.path().join("mine.ron");
    std::fs::write(&scenario, format!("({task})")).expect("it is written");
    // One image a class leaves nothing to validate on.
    succeeds(&ended(call(&["validate", "--no-data"]).arg(&scenario)));
    let said = refused(&ended(call(&["validate"]).arg(&scenario)));
    assert!(said.contains("validation part is empty"), "{said}");
}

#[test]
fn what_is_wrong_with_data_is_told_with_file_and_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    generate(folder.path(), "mnist", &SMALL);
    let images = folder.path().join("train-images-idx3-ubyte.gz");
    let packed = std::fs::read(&images).expect("a file");
    std::fs::write(&images, &packed[..packed.len() / 2]).expect("a file");

    let cut = refused(&check(folder.path(), &[]));
    let missing = refused(&check(&folder.path().join("nothing"), &[]));
    let other = refused(&check(
        &folder.path().join("train-labels-idx1-ubyte.gz"),
        &["--format", "npz"],
    ));

    assert!(
        cut.starts_with(&format!(
            "error: data file {} (unpacked): reading failed at byte ",
            images.display()
        )),
        "{cut}"
    );
    assert!(missing.contains("nothing' was not found"), "{missing}");
    assert!(other.contains("is no zip archive"), "{other}");
    let json = engine(&["data", "check", "no-such-file", "--json"]);
    assert_eq!(json.status.code(), Some(2));
    assert!(text(&json.stdout).contains("\"severity\": \"error\""));
}

#[test]
fn presets_learn_from_the_files_that_they_are_given() {
    let folder = tempfile::tempdir().expect("a folder");
    generate(folder.path(), "cifar10", &SMALL);
    generate(&folder.path().join("clothes"), "mnist", &SMALL);
    generate(&folder.path().join("photos"), "images", &SMALL);
    generate(folder.path(), "npz", &SMALL);

    for (task, data, name, sizes, notes) in [
        (
            "cifar_impaired",
            "cifar10(path: \"cifar-10-binary.tar.gz\")",
            "cifar10",
            [380, 20, 50],
            2,
        ),
        (
            "fashion_baseline",
            "idx_folder(path: \"clothes\", scale: 255.0)",
            "idx_folder",
            [380, 20, 50],
            0,
        ),
        (
            "cifar_baseline",
            "image_folder(path: \"photos\")",
            "image_folder",
            [400, 50, 50],
            0,
        ),
        (
            "cifar_baseline",
            "npz(path: \"set.npz\", layout: nhwc, scale: 255.0)",
            "npz",
            [400, 50, 50],
            0,
        ),
    ] {
        let scenario = folder.path().join("mine.ron");
        let content = format!(
            "(task: preset(\"{task}\", (data: {data}, batch_size: 32, batches_per_step: count(1))),
              run: (rounds: 1, n_envs: 1, max_steps: 2), policy: (controller: \"wait\"))"
        );
        std::fs::write(&scenario, content).expect("a file");
        let runs = folder.path().join("runs");

        let output = ended(call(&["run"]).arg(&scenario).arg("--out").arg(&runs));

        succeeds(&output);
        let events = lines(&newest(&runs));
        let started = events.iter().find(|event| event["type"] == "run_started");
        let started = &started.expect("the run has begun")["data"]["dataset"];
        assert_eq!(started["name"], name);
        let found = ["train_n", "val_n", "test_n"].map(|part| started[part].as_u64().expect("a number"));
        assert_eq!(found, sizes, "{task}");
        assert_eq!(started["notes"].as_array().map_or(0, Vec::len), notes, "{started}");
        assert_eq!(
            text(&output.stderr).contains("400 training images; the published set has 50000"),
            notes > 0
        );
    }
}

#[test]
fn a_language_model_learns_from_files_of_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    generate(
        &folder.path().join("tinystories"),
        "tokens",
        &["--train", "40", "--val", "8", "--vocab", "64"],
    );
    let scenario = folder.path().join("mine.ron");
    let content = r#"(
        task: preset("tinystories", (
            batch_size: 4, batches_per_step: count(2), val_batch_size: 4, val_batches_per_step: full,
            data: token_files((
                train: "tinystories/TinyStories_train.bin", val: "tinystories/TinyStories_val.bin", block: 32)),
            host: transformer((width: 16, layers: 3, block: 32)),
        )),
        run: (rounds: 1, n_envs: 1, max_steps: 2),
        policy: (controller: "wait"),
    )"#;
    std::fs::write(&scenario, content).expect("a file");
    let runs = folder.path().join("runs");

    succeeds(&ended(call(&["run"]).arg(&scenario).arg("--out").arg(&runs)));

    let events = lines(&newest(&runs));
    let started = events.iter().find(|event| event["type"] == "run_started");
    let started = &started.expect("the run has begun")["data"]["dataset"];
    // 40 and 8 texts of 64 tokens, 32 to a window, which needs one more.
    assert_eq!(started["name"], "token_files");
    assert_eq!(
        ["train_n", "val_n", "test_n"].map(|part| started[part].as_u64()),
        [Some(79), Some(15), Some(0)]
    );
}

#[test]
fn a_preset_without_its_files_says_where_they_are_published() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("mine.ron");
    std::fs::write(&scenario, "(task: preset(\"cifar100_baseline\"))").expect("a file");

    let output = ended(
        call(&["run"])
            .arg(&scenario)
            .arg("--out")
            .arg(folder.path().join("runs")),
    );

    let message = refused(&output);
    assert!(
        message.contains("data file 'cifar-100-binary.tar.gz' was not found"),
        "{message}"
    );
    assert!(
        message.contains("https://www.cs.toronto.edu/~kriz/cifar.html"),
        "{message}"
    );
}
