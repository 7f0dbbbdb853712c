use std::process::ExitCode;

use simic_engine::cli;
use simic_engine::run::NO_EXTENSION;

fn main() -> ExitCode {
    cli::main(NO_EXTENSION)
}
