//! The command `new`: a crate of the user's own. That it builds and runs is for `.ci/crate` to show.

use std::path::Path;

use simic_engine::internals::scenario::{Input, load};
use simic_engine::prelude::*;

use crate::program::{command, ended, refused, repository, succeeds};

#[path = "../../assets/crate/main.rs"]
#[allow(dead_code, reason = "its `main` is for the crate that it is written into")]
mod own_crate;

fn new(at: &Path, arguments: &[&str]) -> std::process::Output {
    ended(command(&[&["new"], arguments].concat()).current_dir(at))
}

#[test]
fn a_crate_is_written_that_depends_on_the_engine_that_wrote_it() {
    let at = tempfile::tempdir().expect("a folder");

    let told = succeeds(&new(at.path(), &["mycrate"]));

    assert!(told.contains("cd mycrate\n  cargo run -- run scenario.ron"), "{told}");
    let read = |file: &str| std::fs::read_to_string(at.path().join("mycrate").join(file)).expect("it is written");
    let manifest = read("Cargo.toml");
    assert!(manifest.contains("name = \"mycrate\""), "{manifest}");
    let engine = format!("simic-engine = {{ path = {:?} }}", repository());
    assert!(manifest.contains(&engine), "{manifest}");
    let bevy = manifest
        .lines()
        .find(|line| line.starts_with("bevy_ecs = "))
        .expect("a line");
    assert!(
        include_str!("../../Cargo.toml").contains(bevy),
        "{bevy}: not the engine's"
    );
    assert!(manifest.contains("[profile.release.package.simic-engine]\nopt-level = 3"));
    assert!(manifest.contains("[profile.release.package.mycrate]\nopt-level = 3"));
    assert!(!manifest.contains("[["), "targets are the engine's own: {manifest}");
    assert_eq!(read("Cargo.lock"), include_str!("../../Cargo.lock"));
    let config = read(".cargo/config.toml");
    let (_, libtorch) = config.split_once("LIBTORCH = ").expect("a line");
    assert!(
        Path::new(libtorch.trim().trim_matches('"')).join("include").is_dir(),
        "{config}"
    );
    for file in [
        "Cargo.toml",
        ".cargo/config.toml",
        "scenario.ron",
        "README.md",
        "build.rs",
        "src/main.rs",
    ] {
        assert!(!read(file).contains('@'), "{file}: every word is filled in");
    }
    let left = std::fs::read_dir(at.path()).expect("a folder").count();
    assert_eq!(left, 1, "no draft is left");
}

#[test]
fn an_engine_may_be_elsewhere() {
    let at = tempfile::tempdir().expect("a folder");
    let url = "https://example.org/simic-engine";

    succeeds(&new(at.path(), &["by_url", "--engine", url]));
    let nowhere = refused(&new(at.path(), &["by_path", "--engine", "."]));

    let manifest = std::fs::read_to_string(at.path().join("by_url/Cargo.toml")).expect("it is written");
    assert!(
        manifest.contains(&format!("simic-engine = {{ git = \"{url}\"")),
        "{manifest}"
    );
    assert!(
        nowhere.contains("the sources of simic-engine are not in ."),
        "{nowhere}"
    );
    assert!(!at.path().join("by_path").exists());
}

#[test]
fn what_is_there_is_left_alone_and_names_that_no_crate_can_have_are_refused() {
    let at = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(at.path().join("taken")).expect("a folder");
    std::fs::write(at.path().join("taken/notes.txt"), "mine").expect("a file");
    std::fs::create_dir(at.path().join("empty")).expect("a folder");

    assert!(refused(&new(at.path(), &["taken"])).contains("is no empty folder"));
    for name in ["2fast", "my crate", "..", "größe"] {
        assert!(
            refused(&new(at.path(), &[name])).contains("no crate can have this name"),
            "{name}"
        );
    }
    for name in ["match", "test", "simic-engine"] {
        assert!(refused(&new(at.path(), &[name])).contains("choose another"), "{name}");
    }
    assert!(refused(&new(at.path(), &["no/such/place"])).starts_with("error: new no/such/place: "));
    succeeds(&new(at.path(), &["empty"]));

    let names = std::fs::read_dir(at.path()).expect("a folder");
    let mut names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["empty", "taken"], "nothing half-written is left");
    assert_eq!(std::fs::read_dir(at.path().join("taken")).expect("a folder").count(), 1);
}

#[test]
fn what_a_crate_adds_is_listed_and_may_be_used_by_its_scenario() {
    let extension = Extension::new(own_crate::extend);
    let names = extension.names().expect("the names are free");

    assert!(
        names
            .catalog
            .blueprints
            .iter()
            .any(|blueprint| blueprint.name == "channel_scale")
    );
    assert!(
        names.plugins.iter().any(|part| part.name == "GrowthPlugin"),
        "{:?}",
        names.plugins
    );
    let text = include_str!("../../assets/crate/scenario.ron").replace("@NAME@", "mycrate");
    let input = Input {
        label: "scenario.ron",
        text: &text,
        overrides: &[],
    };
    let loaded = load(&input, &names.catalog).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(loaded.warnings.problems.is_empty(), "{}", loaded.warnings);
}
