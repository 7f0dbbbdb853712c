//! Data sets on disk: what `data check` says about them, and runs that learn from them. The sets are generated ones in the
//! formats of public ones, from `scripts/fake-data.py`.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::program::{
    assert_has, copy_of, ends_with, engine, engine_at, events, folder, json, newest, played, refused, repository,
    succeeds, text, write,
};

/// Generates a set in `folder`.
fn generate(folder: &Path, format: &str, options: &str) {
    let made = Command::new("python3")
        .current_dir(repository())
        .args(["scripts/fake-data.py", format])
        .arg(folder)
        .args(options.split(' '))
        .output()
        .expect("python3 starts");
    ends_with(0, &made);
}

const SMALL: &str = "--train 400 --val 50 --test 50";

/// A folder with a small set of every format.
fn sets() -> tempfile::TempDir {
    static SETS: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            for format in ["cifar10", "cifar100", "npz"] {
                generate(folder, format, SMALL);
            }
            generate(&folder.join("mnist"), "mnist", SMALL);
            generate(&folder.join("photos"), "images", SMALL);
        })
    });
    copy_of(&SETS)
}

/// Output of `data check` for a set in a folder.
fn check(folder: &Path, set: &str) -> Output {
    engine_at(folder, &format!("data check {set}"))
}

/// The data as the newest run of a folder describes them.
fn dataset(folder: &Path) -> Value {
    events(&newest(&folder.join("runs")), "run_started")[0]["data"]["dataset"].take()
}

#[test]
fn texts_are_described_by_their_tokens() {
    let folder = folder();
    write(&folder.path().join("a.txt"), "abab".repeat(1000));
    let tokens = [7_u16, 500, 7, 7].map(u16::to_le_bytes).concat();
    write(&folder.path().join("tokens.bin"), tokens);

    let described = succeeds(&check(folder.path(), "a.txt"));
    let expected = "a.txt: text, 4000 tokens, 2 different ones, the largest 98\n\n  \
                by their frequencies alone, 0.693 nats a token (perplexity 2.0)\n\nfor a scenario";
    assert_has(&described, &[expected]);
    let described = json(&succeeds(&check(folder.path(), "tokens.bin --format tokens --json")));
    assert_eq!([&described["tokens"], &described["largest"]], [4, 500]);
    let message = refused(&check(folder.path(), "tokens.bin --format tokens --vocab 500"));
    assert_has(&message, &["tokens.bin", "500"]);
}

#[test]
#[ignore = "long tier"]
fn every_format_is_recognised_and_described() {
    let folder = sets();

    let described = ["cifar-10-binary.tar.gz", "mnist", "photos", "set.npz"].map(|set| {
        let output = check(folder.path(), set);
        format!("{}{}", succeeds(&output), text(&output.stderr))
    });
    let place = format!("{}/", folder.path().display());
    insta::assert_snapshot!(described.join("\n").replace(&place, ""));

    // Too many classes to list each.
    let hundred = succeeds(&check(folder.path(), "cifar-100-binary.tar.gz"));
    let expected = "cifar100, 32x32 pixels of 3 channels, 100 classes";
    assert_has(&hundred, &[expected, "rarest"]);
    let hundred = json(&succeeds(&check(folder.path(), "cifar-100-binary.tar.gz --json")));
    assert_eq!(hundred["classes"][7]["images"], json!([4, 1]));
    assert_eq!(hundred["classes"][7]["name"], "grating_07");
}

#[test]
fn photographs_of_any_size_are_described_with_a_task_to_paste() {
    let folder = folder();
    let cat = if cfg!(unix) { "c\nat" } else { "cat" };
    for (class, width, height) in [("ant", 40, 30), (cat, 50, 60)] {
        let place = folder.path().join("photos").join(class);
        std::fs::create_dir_all(&place).expect("a folder");
        for number in 0..5 {
            let image = image::RgbImage::from_fn(width, height, |x, y| image::Rgb([x as u8, y as u8, number]));
            image.save(place.join(format!("{number}.png"))).expect("it is written");
        }
    }

    let output = check(folder.path(), "photos");

    let described = succeeds(&output);
    let warning = "2 sizes, from 40x30 to 50x60 (width x height); 10 were cropped";
    assert_has(&text(&output.stderr), &[warning]);
    let (_, task) = described.split_once("prints a whole one):").expect("a task");
    assert_has(task, &[format!("// Classes: ant, {}.", cat.escape_debug()).as_str()]);
    assert_has(
        &described,
        &[format!("1      {}", cat.replace('\n', "\\u{a}")).as_str()],
    );
    write(&folder.path().join("mine.ron"), format!("({task})"));
    succeeds(&engine_at(folder.path(), "validate mine.ron"));
    // A fifth of four images rounds down to 0.
    std::fs::remove_file(folder.path().join("photos/ant/4.png")).expect("it is removed");
    succeeds(&engine_at(folder.path(), "validate --no-data mine.ron"));
    // Slots are the host's, whose data need not be there.
    let far = r#"(task: preset("images", (data: image_folder(path: "far"), host: resnet((blocks: [1, 1, 1])))))"#;
    write(&folder.path().join("far.ron"), far);
    succeeds(&engine_at(folder.path(), "validate --no-data far.ron"));
    let expected = ["class 0 (ant) has no sample in the validation part; give more samples of it"];
    assert_has(&refused(&engine_at(folder.path(), "validate mine.ron")), &expected);
    assert_has(&refused(&engine_at(folder.path(), "init photos")), &expected);
    assert_has(&text(&check(folder.path(), "photos").stderr), &expected);
}

#[test]
fn a_mistake_in_data_is_reported_with_file_and_byte() {
    let folder = sets();
    let images = folder.path().join("mnist/train-images-idx3-ubyte.gz");
    let packed = std::fs::read(&images).expect("a file");
    write(&images, &packed[..packed.len() / 2]);

    let cut = refused(&check(folder.path(), "mnist"));
    let missing = refused(&check(folder.path(), "nothing"));
    let other = refused(&check(folder.path(), "mnist/train-labels-idx1-ubyte.gz --format npz"));

    let place = images.display();
    let expected = format!("error: data file {place} (unpacked): reading failed at byte ");
    assert!(cut.starts_with(&expected), "{cut}");
    assert_has(&missing, &["nothing' was not found"]);
    assert_has(&other, &["isn't a zip archive"]);
    let json = engine("data check no-such-file --json");
    ends_with(2, &json);
    assert_has(&text(&json.stdout), &["\"severity\": \"error\""]);
}

#[test]
#[ignore = "long tier"]
fn presets_learn_from_the_files_that_they_are_given() {
    let folder = sets();
    let cifar = r#"cifar10(path: "cifar-10-binary.tar.gz")"#;
    let idx = r#"idx_folder(path: "mnist", scale: 255.0)"#;
    let npz = r#"npz(path: "set.npz", layout: nhwc, scale: 255.0)"#;

    for (task, data, sizes, notes) in [
        ("cifar_impaired", cifar, [380, 20, 50], 2),
        ("fashion_baseline", idx, [380, 20, 50], 0),
        ("cifar_baseline", r#"image_folder(path: "photos")"#, [400, 50, 50], 0),
        ("cifar_baseline", npz, [400, 50, 50], 0),
    ] {
        let scenario = format!(
            "(task: preset(\"{task}\", (data: {data}, batch_size: 32, batches_per_step: count(1))),
              run: (rounds: 1, n_envs: 1, max_steps: 2), policy: (controller: \"wait\"))"
        );
        write(&folder.path().join("mine.ron"), scenario);

        let said = ends_with(0, &engine_at(folder.path(), "run mine.ron"));

        let dataset = dataset(folder.path());
        assert_eq!(dataset["name"].as_str(), data.split('(').next());
        let found = ["train_n", "val_n", "test_n"].map(|part| &dataset[part]);
        assert_eq!(found, sizes, "{task}");
        assert_eq!(dataset["notes"].as_array().map_or(0, Vec::len), notes, "{dataset}");
        let is_small = said.contains("400 training images; the published set has 50000");
        assert_eq!(is_small, notes > 0, "{said}");
    }
}

#[test]
#[ignore = "long tier"]
fn a_language_model_learns_from_files_of_tokens() {
    let folder = folder();
    let stories = folder.path().join("tinystories");
    generate(&stories, "tokens", "--train 40 --val 8 --vocab 64");
    let scenario = r#"(
        task: preset("tinystories", (
            batch_size: 4, batches_per_step: count(2), val_batch_size: 4, val_batches_per_step: full,
            data: token_files((
                train: "tinystories/TinyStories_train.bin", val: "tinystories/TinyStories_val.bin", block: 32)),
            host: transformer((width: 16, layers: 3, block: 32)),
        )),
        run: (rounds: 1, n_envs: 1, max_steps: 2),
        policy: (controller: "wait"),
    )"#;
    write(&folder.path().join("mine.ron"), scenario);

    succeeds(&engine_at(folder.path(), "run mine.ron"));

    // 40 and 8 texts of 64 tokens, 32 to a window, which needs one more.
    let dataset = dataset(folder.path());
    assert_eq!(dataset["name"], "token_files");
    assert_eq!(["train_n", "val_n", "test_n"].map(|part| &dataset[part]), [79, 15, 0]);
}

#[test]
fn a_preset_without_its_files_says_where_they_are_published() {
    let folder = folder();
    write(&folder.path().join("mine.ron"), "(task: preset(\"cifar100_baseline\"))");

    let message = refused(&engine_at(folder.path(), "run mine.ron"));

    let missing = "data file 'cifar-100-binary.tar.gz' was not found";
    assert_has(&message, &[missing, "https://www.cs.toronto.edu/~kriz/cifar.html"]);
}
