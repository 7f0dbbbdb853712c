//! The command `init`: from a data set to a run that grows networks on it.

use std::path::Path;

use image::{Rgb, RgbImage};

use crate::program::{command, ended, engine, refused, succeeds};

/// Photos of three classes, no two of one size, that differ by their brightest channel.
fn photos(folder: &Path) {
    for (class, name) in ["apple", "pear \"green\"", "plum"].iter().enumerate() {
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
    photos(&root.path().join("photos"));
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
