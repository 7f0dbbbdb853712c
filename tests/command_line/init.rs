//! The command `init`: from a data set to a run that grows networks on it.

use std::path::Path;

use image::{Rgb, RgbImage};

use crate::program::{assert_has, engine_at, folder, read, succeeds, write};

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

/// The scenario for data in a folder, which is written there and is valid.
fn scenario(at: &Path, data: &str) -> String {
    let scenario = succeeds(&engine_at(at, &format!("init {data}")));
    write(&at.join("mine.ron"), &scenario);
    succeeds(&engine_at(at, "validate mine.ron"));
    scenario
}

#[test]
fn photos_of_any_size_are_trained_on_by_two_commands() {
    let root = folder();
    photos(&root.path().join("photos"), CLASSES);

    let scenario = scenario(root.path(), "photos");
    let run = "run mine.ron --rounds 1 --envs 2 --steps 3 --progress none";
    let said = succeeds(&engine_at(root.path(), run));

    let classes = r#"// Classes: apple, pear \"green\", plum."#;
    let data = "/photos\", size: Some(32))";
    assert_has(&scenario, &[classes, "image_folder(path: ", data]);
    assert_has(&said, &["images: 2 envs, 3 steps a round, controller actor_critic"]);
}

/// An NPY file of version 1.0.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

#[test]
fn a_pair_of_arrays_needs_no_word_about_its_layout() {
    let root = folder();
    let pixels = (0..60 * 3 * 8 * 8).flat_map(|i| ((i % 97) as f32 / 96.0).to_le_bytes());
    let labels: Vec<u8> = (0..60_u8).map(|i| i % 3).collect();
    let images = npy("<f4", "(60, 3, 8, 8)", &pixels.collect::<Vec<u8>>());
    write(&root.path().join("images.npy"), images);
    write(&root.path().join("labels.npy"), npy("|u1", "(60,)", &labels));

    let scenario = scenario(root.path(), "images.npy labels.npy");

    let host = "in_channels: 3, base_channels: 4, pool_layers: 3, input_hw: 8";
    assert_has(&scenario, &["layout: nchw, scale: 1.0", host]);
}

#[test]
fn a_scenario_that_names_only_a_folder_of_photos_runs_with_their_classes_and_resumes() {
    let root = folder();
    photos(&root.path().join("photos"), CLASSES);
    let scenario = r#"(
        task: preset("images", (data: image_folder(path: "photos"))),
        run: (rounds: 1, n_envs: 1, max_steps: 2),
        policy: (controller: "wait"),
    )"#;
    write(&root.path().join("mine.ron"), scenario);

    succeeds(&engine_at(root.path(), "run mine.ron --id mine --progress none"));

    let resolved = read(&root.path().join("runs/mine/resolved.ron"));
    assert_has(&resolved, &["classes: 3,"]);
    succeeds(&engine_at(root.path(), "resume mine --extend 1 --progress none"));
}

#[test]
fn a_text_is_trained_on_by_two_commands() {
    let root = folder();
    let story = "the seed grows, the host learns, and so on and on. ".repeat(400);
    write(&root.path().join("story.txt"), story);

    scenario(root.path(), "story.txt");
}
