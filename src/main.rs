use std::process::ExitCode;

use simic_engine::cli;
use simic_engine::scenario::Catalog;

fn main() -> ExitCode {
    cli::main(&Catalog::default())
}
