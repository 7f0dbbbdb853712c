//! The program: the command line, and what it was built from.

use std::process::ExitCode;

use simic_engine::cli;
use simic_engine::extend::Build;
use simic_engine::prelude::*;

/// The findings of the build script.
const BUILD: Build = Build {
    git_commit: option_env!("SIMIC_ENGINE_GIT_COMMIT"),
    git_diff: option_env!("SIMIC_ENGINE_GIT_DIFF"),
    git_dirty: match option_env!("SIMIC_ENGINE_GIT_DIRTY") {
        Some(answer) => Some(matches!(answer.as_bytes(), b"true")),
        None => None,
    },
    rustc: option_env!("SIMIC_ENGINE_RUSTC"),
    target: option_env!("SIMIC_ENGINE_TARGET"),
    ..Build::UNKNOWN
};

pub fn main() -> ExitCode {
    cli::main(Extension::new(|app: &mut App| _ = app.insert_resource(BUILD)))
}
