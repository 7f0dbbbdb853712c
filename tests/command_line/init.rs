//! The command `init`: from a data set to a run that grows networks on it.

use std::path::Path;

use image::{Rgb, RgbImage};

use crate::program::{command, ended, engine, refused, succeeds};

const CLASSES: [&str; 3] = ["apple", "pear \"green\"", "plum"];

/// Photos of three classes, no two of one size, that differ by their brightest channel.
pub fn photos(folder: &Path, classes: [&str; 3]) {
    for (class, name) in classes.iter().enumerate() {
        let class_folder = folder.join(name);
        std::fs::create_dir_all(&class_folder).expect("a folder");
        for index in 0..20_u32 {
            let mut pixel = [40, 50, 60];
            pixel[class] = 200 + index as u8;
            let image = RgbImage::from_fn(20 + index, 45 - index, |x, y| {
                Rgb(pixel.map(|value| value - ((x * 7 + y * 3) % 30) as u8))
            });
            image.save(class_folder.join(format!("{index}.png"))).expect("an image");
        }
    }
}

#[test]
fn photos_of_any_size_are_trained_on_by_two_commands() {
    let root = tempfile::tempdir().expect("a folder");
    photos(&root.path().join("photos"), CLASSES);
    let in_root = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.current_dir(root.path());
        ended(&mut command)
    };

    let scenario = succeeds(&in_root(&["init", "photos"]));
    std::fs::write(root.path().join("photos.ron"), &scenario).expect("a file");
    let short = [
        "--rounds",
        "1",
        "--envs",
        "2",
        "--steps",
        "3",
        "--progress",
        "none",
        "--out",
        "runs",
    ];
    let told = succeeds(&in_root(&[&["run", "photos.ron"], &short[..]].concat()));

    assert!(
        scenario.contains("// Classes: apple, pear \\\"green\\\", plum."),
        "{scenario}"
    );
    assert!(
        scenario.contains("image_folder(path: \"photos\", size: Some(32))"),
        "{scenario}"
    );
    assert!(
        told.contains("images: 2 envs, 3 steps a round, controller actor_critic"),
        "{told}"
    );
}

/// An NPY file of version 1.0.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

#[test]
fn a_pair_of_arrays_needs_no_word_about_its_layout() {
    let root = tempfile::tempdir().expect("a folder");
    let pixels: Vec<u8> = (0..60 * 3 * 8 * 8)
        .flat_map(|i| ((i % 97) as f32 / 96.0).to_le_bytes())
        .collect();
    let labels: Vec<u8> = (0..60_u8).map(|i| i % 3).collect();
    let [images, targets] = ["images.npy", "labels.npy"].map(|name| root.path().join(name));
    std::fs::write(&images, npy("<f4", "(60, 3, 8, 8)", &pixels)).expect("a file");
    std::fs::write(&targets, npy("|u1", "(60,)", &labels)).expect("a file");

    let scenario = succeeds(&engine(&[
        "init",
        &images.to_string_lossy(),
        &targets.to_string_lossy(),
    ]));
    let file = root.path().join("arrays.ron");
    std::fs::write(&file, &scenario).expect("a file");

    assert!(scenario.contains("layout: nchw, scale: 1.0"), "{scenario}");
    assert!(
        scenario.contains("in_channels: 3, base_channels: 4, pool_layers: 3, input_hw: 8"),
        "{scenario}"
    );
    succeeds(&engine(&["validate", &file.to_string_lossy()]));
}

#[test]
fn a_scenario_that_names_only_a_folder_of_photos_runs_with_their_classes_and_resumes() {
    let root = tempfile::tempdir().expect("a folder");
    photos(&root.path().join("photos"), CLASSES);
    let scenario = r#"(
        task: preset("images", (data: image_folder(path: "photos"))),
        run: (rounds: 1, n_envs: 1, max_steps: 2),
        policy: (controller: "wait"),
    )"#;
    std::fs::write(root.path().join("mine.ron"), scenario).expect("a file");
    let in_root = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.current_dir(root.path());
        ended(&mut command)
    };

    succeeds(&in_root(&[
        "run",
        "mine.ron",
        "--out",
        "runs",
        "--id",
        "mine",
        "--progress",
        "none",
    ]));

    let resolved = std::fs::read_to_string(root.path().join("runs/mine/resolved.ron")).expect("a run");
    assert!(resolved.contains("classes: 3,"), "{resolved}");
    succeeds(&in_root(&[
        "resume",
        "runs/mine",
        "--extend",
        "1",
        "--progress",
        "none",
    ]));
}

#[test]
fn a_text_is_trained_on_by_two_commands() {
    let root = tempfile::tempdir().expect("a folder");
    let story = "the seed grows, the host learns, and so on and on. ".repeat(400);
    std::fs::write(root.path().join("story.txt"), story).expect("a file");
    let story = root.path().join("story.txt");

    let scenario = succeeds(&engine(&["init", &story.to_string_lossy()]));
    let file = root.path().join("story.ron");
    std::fs::write(&file, scenario).expect("a file");

    succeeds(&engine(&["validate", &file.to_string_lossy()]));
}

#[test]
fn what_is_no_data_set_is_refused() {
    let said = refused(&engine(&["init", "Cargo.toml"]));

    assert!(said.contains("Cargo.toml"), "{said}");
}
