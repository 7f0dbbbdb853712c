//! The command `new`: a crate of the user's own. That it builds and runs is for `.ci/crate` to show.

use std::path::Path;

use simic_engine::internals::scenario::{Input, load};
use simic_engine::prelude::*;

use crate::program::{assert_has, engine, folder, names, read, refused, repository, succeeds, write};

#[path = "../../assets/crate/main.rs"]
#[allow(dead_code, reason = "its `main` is for the crate that it is written into")]
mod own_crate;

/// `new` of a crate in a folder.
fn new(at: &Path, name: &str, more: &str) -> std::process::Output {
    engine(&format!("new '{}/{name}' {more}", at.display()))
}

#[test]
fn a_crate_is_written_that_depends_on_the_engine_that_wrote_it() {
    let at = folder();

    let said = succeeds(&new(at.path(), "mycrate", ""));

    assert_has(&said, &["/mycrate\n  cargo run -- run scenario.ron"]);
    let read = |file: &str| read(&at.path().join("mycrate").join(file));
    let manifest = read("Cargo.toml");
    let bevy = manifest.lines().find(|line| line.starts_with("bevy_ecs = "));
    assert_has(include_str!("../../Cargo.toml"), &[bevy.expect("the engine's line")]);
    let lines = [
        "name = \"mycrate\"",
        &format!("simic-engine = {{ path = {:?} }}", repository()),
        "[profile.release]\nlto = \"off\"\nopt-level = 1",
        "[profile.release.package.mycrate]\nopt-level = 3",
    ];
    assert_has(&manifest, &lines);
    assert!(!manifest.contains("[["), "targets are the engine's own: {manifest}");
    assert_eq!(read("Cargo.lock"), include_str!("../../Cargo.lock"));
    let config = read(".cargo/config.toml");
    let (_, libtorch) = config.split_once("LIBTORCH = ").expect("a line");
    let libtorch = Path::new(libtorch.trim().trim_matches('"'));
    assert!(libtorch.join("include").is_dir(), "{config}");
    for file in ["scenario.ron", "README.md", "build.rs", "src/main.rs", "src/seed.rs"] {
        assert!(!read(file).contains('@'), "{file}: every word is filled in");
    }
    assert!(!manifest.contains('@') && !config.contains('@'));
    assert_eq!(names(at.path()), ["mycrate"], "no draft is left");
}

#[test]
fn an_engine_may_be_elsewhere() {
    let at = folder();
    let url = "https://example.org/simic-engine";

    succeeds(&new(at.path(), "by_url", &format!("--engine {url}")));
    let nowhere = refused(&new(at.path(), "by_path", "--engine docs"));

    let manifest = read(&at.path().join("by_url/Cargo.toml"));
    assert_has(&manifest, &[&format!("simic-engine = {{ git = \"{url}\"")]);
    assert_has(&nowhere, &["docs doesn't hold the sources of simic-engine"]);
    assert!(!at.path().join("by_path").exists());
}

#[test]
fn what_is_there_is_left_alone_and_names_that_no_crate_can_have_are_refused() {
    let at = folder();
    write(&at.path().join("taken/notes.txt"), "mine");
    std::fs::create_dir(at.path().join("empty")).expect("a folder");

    let refusals: [(&str, &[&str]); 4] = [
        ("isn't an empty folder", &["taken"]),
        ("a crate can't have this name", &["2fast", "my crate", "..", "größe"]),
        ("choose another", &["match", "test", "simic-engine"]),
        ("no/such/place: ", &["no/such/place"]),
    ];
    for (expected, given) in refusals {
        for name in given {
            assert_has(&refused(&new(at.path(), name, "")), &["error: new ", expected]);
        }
    }
    succeeds(&new(at.path(), "empty", ""));

    assert_eq!(names(at.path()), ["empty", "taken"], "nothing half-written is left");
    assert_eq!(names(&at.path().join("taken")), ["notes.txt"]);
}

#[test]
fn what_a_crate_adds_is_listed_and_may_be_used_by_its_scenario() {
    let extension = Extension::new(own_crate::extend);
    let names = extension.names().expect("the names are free");

    let mut blueprints = names.catalog.blueprints.iter();
    assert!(blueprints.any(|blueprint| blueprint.name == "channel_scale"));
    let plugins = &names.plugins;
    assert!(plugins.iter().any(|part| part.name == "GrowthPlugin"), "{plugins:?}");
    let text = include_str!("../../assets/crate/scenario.ron").replace("@NAME@", "mycrate");
    let input = Input {
        label: "scenario.ron",
        text: &text,
        overrides: &[],
    };
    let loaded = load(&input, &names.catalog).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(loaded.warnings.problems.is_empty(), "{}", loaded.warnings);
}
