//! Wherever training data lie while a run trains on them, it is the same run, and it reports what happens to them there.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use simic_engine::internals::checkpoint::CheckpointName;
use simic_engine::internals::env::LoadedData;
use simic_engine::internals::health::Failure;
use simic_engine::internals::run::ChosenResidency;
use simic_engine::prelude::*;

use crate::recorded::{NOTHING, State, catalog, directory, events, load, resumed, state};
use crate::support::{builder, engine};

const IMAGES: &str = "assets/digits/optdigits-images-idx3-ubyte";
const LABELS: &str = "assets/digits/optdigits-labels-idx1-ubyte";

/// The digits as files, cropped, in more batches than one pass has.
fn images(folder: &Path) -> String {
    for (from, to) in [(IMAGES, "images"), (LABELS, "labels")] {
        std::fs::copy(from, folder.join(to)).expect("they are here");
    }
    let [images, labels] = ["images", "labels"].map(|name| folder.join(name));
    format!(
        r#"preset("digits_baseline", (
            data: idx(images: {images:?}, labels: {labels:?}, scale: 16.0), batch_size: 200, batches_per_step: count(8),
        ))"#
    )
}

/// Images of 32-bit floats in an NPY array, and labels of bytes.
fn floats(folder: &Path) -> String {
    let array = |name: &str, descr: &str, shape: &str, data: Vec<u8>| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let header = format!("{header:<117}\n");
        let head = [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes()].concat();
        let path = folder.join(name);
        std::fs::write(&path, [&head, header.as_bytes(), &data].concat()).expect("it is written");
        path
    };
    let pixels = (0..400 * 64).flat_map(|index| ((index % 17) as f32 / 16.0).to_le_bytes());
    let images = array("images.npy", "<f4", "(400, 8, 8, 1)", pixels.collect());
    let labels = array("labels.npy", "|u1", "(400,)", (0..10).cycle().take(400).collect());
    format!(
        r#"preset("digits_baseline", (data: npy(images: {images:?}, labels: {labels:?}, layout: nhwc, scale: 1.0), batch_size: 16, batches_per_step: count(1)))"#
    )
}

/// A text file.
fn text(folder: &Path) -> String {
    let file = folder.join("a.txt");
    let text: String = (0..400).map(|line| format!("line {line} of a text\n")).collect();
    std::fs::write(&file, text).expect("it is written");
    format!(
        r#"preset("bytes_lm", (
            batch_size: 4, batches_per_step: count(5), val_batches_per_step: full, data: text((path: {file:?}, block: 32)),
            host: transformer((width: 16, layers: 3, positions: rotary)),
        ))"#
    )
}

/// Tokens of 16 bits for training, and for validation in a file of their own.
fn tokens(folder: &Path) -> String {
    let [train, val] = [("train.bin", 3000), ("val.bin", 400)].map(|(name, count): (_, u32)| {
        let bytes = (0..count).flat_map(|index| ((index * index % 61) as u16).to_le_bytes());
        let path = folder.join(name);
        std::fs::write(&path, bytes.collect::<Vec<u8>>()).expect("it is written");
        path
    });
    format!(
        r#"preset("synth_tokens", (
            batch_size: 4, batches_per_step: count(5),
            data: token_files((train: {train:?}, val: Some({val:?}), vocab: 64, block: 16)),
            host: transformer((width: 16, layers: 3, block: 16)),
        ))"#
    )
}

fn scenario(task: &str, data: &str) -> String {
    format!(
        r#"(
            name: "somewhere", task: {task}, data: {data},
            run: (rounds: 2, n_envs: 2, max_steps: 2), policy: (controller: "wait"),
        )"#
    )
}

/// Losses and weights that the run comes to, and the hash of its data.
fn played(task: &str, data: &str) -> (State, String) {
    let mut engine = engine(&scenario(task, data));
    engine.run().expect("it is played");
    let hash = engine.world().resource::<LoadedData>().set.hash().to_owned();
    (state(&mut engine), hash)
}

#[test]
#[ignore = "long tier"]
fn a_run_is_the_same_wherever_its_data_lie() {
    let folder = tempfile::tempdir().expect("a folder");
    for task in [images(folder.path()), text(folder.path()), tokens(folder.path())] {
        let on_device = played(&task, "(residency: device)");
        // Guessing among 256 bytes costs 5.5 nats, among fewer classes less.
        let mut losses = on_device.0.iter().flat_map(|(losses, _)| losses.map(f64::from_bits));
        assert!(losses.all(|loss| loss < 5.6), "{task}");

        for elsewhere in [
            "(residency: host)",
            "(residency: stream, workers: 1, prefetch: 1)",
            "(residency: stream, workers: 3, prefetch: 9)",
        ] {
            assert!(played(&task, elsewhere) == on_device, "{elsewhere} of {task}");
        }
    }
}

#[test]
fn generated_data_may_lie_in_the_machine_s_memory() {
    let task = r#"preset("synth_tokens", (
        batch_size: 8, batches_per_step: count(3),
        data: synth_tokens((block: 16, train: 40, val: 24, test: 8)),
        host: transformer((width: 16, layers: 3, block: 16)),
    ))"#;

    assert!(played(task, "(residency: host)") == played(task, "(residency: device)"));
}

#[test]
fn a_run_on_streamed_data_resumes_bit_for_bit_and_its_record_says_where_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = scenario(&images(folder.path()), "(residency: stream)");
    let whole = builder().threads(1).recorded(folder.path().join("runs"));
    let mut whole = whole.from_ron(&text).expect("a sound scenario");
    let run = directory(&whole.play());
    let expected = state(&mut whole);
    drop(whole);

    let mut resumed = resumed(&run, CheckpointName::Round(1), NOTHING, 1).expect("it can be resumed");
    directory(&resumed.play());

    assert!(state(&mut resumed) == expected);
    let starts = events(&run, "run_started");
    assert_eq!(starts.len(), 2);
    for started in starts {
        let dataset = &started["data"]["dataset"];
        assert_eq!(dataset["residency"], "stream");
        assert_eq!(dataset["residency_reason"], "as data.residency says");
    }
}

#[test]
fn free_memory_decides_where_data_are_unless_the_scenario_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut engine = engine(&scenario(&images(folder.path()), "()"));

    engine.step().expect("it is played");

    let chosen = engine.world().resource::<ChosenResidency>();
    assert_eq!(chosen.residency.name(), "device");
    let reason = &chosen.reason;
    let expected = "take at most a quarter of what each device has left";
    assert!(reason.ends_with(expected), "{reason}");
}

/// The failure that ends the run.
fn failure(mut engine: Engine) -> Failure {
    engine.run().expect_err("something fails").failure
}

fn cut(file: PathBuf, length: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(file).expect("it is there");
    file.set_len(length).expect("it is cut");
}

#[test]
fn a_file_that_is_cut_while_a_run_trains_on_it_is_named_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut digits = engine(&scenario(&images(folder.path()), "(residency: stream)"));
    let mut texts = engine(&scenario(&tokens(folder.path()), "(residency: stream)"));
    assert!(digits.step().expect("it is played") && texts.step().expect("it is played"));

    cut(folder.path().join("images"), 16 + 64 * 100 + 7);
    cut(folder.path().join("train.bin"), 100);

    for (run, complaints) in [
        (digits, ["images: record ", " of 64 bytes", " at byte ", "cut short"]),
        (texts, ["train.bin: record ", " of 34 bytes", " at byte ", "cut short"]),
    ] {
        let error = failure(run).to_string();
        assert!(complaints.iter().all(|complaint| error.contains(complaint)), "{error}");
    }
}

#[test]
fn data_that_cannot_be_streamed_are_refused_with_those_that_can() {
    let digits = r#"(task: preset("digits_minimal"), data: (residency: stream))"#;
    let problems = load("x.ron", digits, &[], &catalog(NOTHING));
    insta::assert_snapshot!(problems.expect_err("it has no file").to_string());

    // Floats are rescaled when they are read.
    let folder = tempfile::tempdir().expect("a folder");
    let task = floats(folder.path());
    let error = failure(engine(&scenario(&task, "(residency: stream)"))).to_string();
    for complaint in [
        "data.residency: stream is not possible, as the training part of 'npy'",
        "valid: unpacked IDX files, NPY arrays of bytes",
    ] {
        assert!(error.contains(complaint), "{error}");
    }
}

/// Nothing of the file after its first bytes is looked at, because the file may be larger than the memory.
#[test]
fn packed_data_are_not_unpacked_to_be_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let task = images(folder.path());
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"no images at all").expect("it is packed");
    let file = folder.path().join("images");
    std::fs::write(&file, packed.finish().expect("it is packed")).expect("it is written");

    let error = failure(engine(&scenario(&task, "(residency: stream)"))).to_string();

    let expected = format!("stream is not possible, as {} is packed", file.display());
    assert!(error.contains(&expected), "{error}");
}
