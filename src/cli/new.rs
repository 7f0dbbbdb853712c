//! `simic-engine new PATH`: a crate of the user's own on this engine, which builds and runs unchanged. Its files are those of
//! `assets/crate`. Its profiles and pinned versions are the engine's.

use std::ffi::OsStr;
use std::path::Path;
use std::{fs, io};

use super::options::NewOptions;
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::record::Build;
use crate::storage;

const MANIFEST: &str = include_str!("../../Cargo.toml");
/// The line of the manifest that comes before the profiles.
const PROFILES: &str = "# Profiles, of crates that `simic-engine new` writes as well.\n";

const FILES: [(&str, &str); 9] = [
    ("Cargo.toml", include_str!("../../assets/crate/manifest.toml")),
    ("Cargo.lock", include_str!("../../Cargo.lock")),
    (".cargo/config.toml", include_str!("../../assets/crate/config.toml")),
    (".gitignore", "/runs\n/target\n"),
    ("build.rs", include_str!("../../assets/crate/build.rs")),
    ("src/main.rs", include_str!("../../assets/crate/main.rs")),
    ("src/seed.rs", include_str!("../../assets/crate/seed.rs")),
    ("scenario.ron", include_str!("../../assets/crate/scenario.ron")),
    ("README.md", include_str!("../../assets/crate/README.md")),
];

/// Names that cargo or the compiler refuses for a program, and the engine's own.
const TAKEN: &str = "Self abstract alloc as async await become box break build const continue core crate deps do dyn else \
                     enum examples extern false final fn for gen if impl in incremental let loop macro match mod move mut \
                     override priv proc_macro pub ref return self simic-engine simic_engine static std struct super test \
                     trait true try type typeof unsafe unsized use virtual where while yield";

/// Writes the crate; it is there as a whole or not at all.
///
/// # Errors
/// No name for a crate, something there already, no engine, a folder that cannot be written.
pub fn new(options: &NewOptions, context: &Context) -> Result<Outcome, Rejection> {
    let path = &options.path;
    let refuse = |why: String| Rejection::Usage(format!("new {}: {why}", path.display()));
    let name = crate_name(path).map_err(refuse)?;
    let engine = dependency(options.engine.as_deref(), &context.names.build).map_err(refuse)?;
    if path.symlink_metadata().is_ok() && !storage::read_dir(path).is_ok_and(|names| names.is_empty()) {
        return Err(refuse(
            "the path exists and isn't an empty folder; choose another name".into(),
        ));
    }
    let profiles = MANIFEST.split_once(PROFILES).map_or("", |(_, profiles)| profiles);
    let words = [
        ("@NAME@", name),
        ("@ENGINE@", &engine),
        ("@PROFILES@", profiles),
        ("@LIBTORCH@", env!("SIMIC_ENGINE_LIBTORCH")),
    ];
    // In the same folder, so it is renamed within one file system.
    let draft = path.with_file_name(format!(".{name}-{}", std::process::id()));
    if let Err(error) = write(&draft, &words).and_then(|()| storage::rename(&draft, path)) {
        // The user has to know the first failure.
        _ = storage::remove_dir_all(&draft);
        return Err(refuse(error.to_string()));
    }
    let path = path.display();
    Ok(context.printer.show(format!(
        "{path} is a crate with a seed module, a system and a scenario:\n\n  cd {path}\n  cargo run -- run scenario.ron\n"
    )))
}

/// The files, with each word of the templates replaced.
fn write(folder: &Path, words: &[(&str, &str)]) -> io::Result<()> {
    for below in ["", ".cargo", "src"] {
        storage::create_dir(&folder.join(below))?;
    }
    for (file, template) in FILES {
        let filled = words
            .iter()
            .fold(template.to_owned(), |text, (word, with)| text.replace(word, with));
        storage::write_synced(&folder.join(file), filled.as_bytes())?;
    }
    Ok(())
}

fn crate_name(path: &Path) -> Result<&str, String> {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) || !name.chars().all(is_part) || name.len() > 64 {
        return Err(
            "a crate can't have this name; valid: up to 64 letters, digits, `-` and `_`, first a letter".into(),
        );
    }
    if TAKEN.split_whitespace().any(|taken| taken == name) {
        return Err("the name has a meaning in Rust or cargo; choose another".into());
    }
    Ok(name)
}

/// On the engine, as a manifest has it.
fn dependency(engine: Option<&str>, build: &Build) -> Result<String, String> {
    let engine = engine.unwrap_or(env!("CARGO_MANIFEST_DIR"));
    if engine.contains("://") {
        // The documentation of this program's own commit is true of the crate.
        let commit = build.git_commit.map(|commit| format!(", rev = {commit:?}"));
        return Ok(format!("git = {engine:?}{}", commit.unwrap_or_default()));
    }
    let manifest = fs::read_to_string(Path::new(engine).join("Cargo.toml"));
    match Path::new(engine).canonicalize() {
        Ok(folder) if manifest.is_ok_and(|text| text.contains("name = \"simic-engine\"")) => {
            Ok(format!("path = {folder:?}"))
        }
        _ => Err(format!(
            "{engine} doesn't hold the sources of simic-engine; give their folder, or the URL of a repository, by --engine"
        )),
    }
}
