//! Two builds of the engine side by side: what a step costs each of them, at workloads that both can read.
//!
//! Every play is a child process, `BINARY run SCENARIO`, and its figures come from the events of its record, so builds
//! of any age can be compared. With `--against` plays come in pairs, the order within a pair alternates, and the ratio of
//! a pair is what is judged: other load on the machine affects both. Without `--bench`, which `cargo bench` adds, the
//! scenarios are checked and nothing is played.

mod play;
mod tables;
mod workloads;

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Parser;
use play::Binary;
use tables::{Play, SIDES};
use workloads::Workload;

/// What a step costs, for one build of the engine or for two side by side.
#[derive(Parser)]
struct Options {
    /// The program that is measured; the one that `cargo bench` has just built if left out.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_simic-engine"))]
    binary: PathBuf,
    /// Another build to compare with.
    #[arg(long, value_name = "BINARY")]
    against: Option<PathBuf>,
    /// Plays of each workload, by each program. Fewer than 5 have no interval.
    #[arg(long, value_name = "N")]
    pairs: Option<u32>,
    /// Only these workloads, e.g. T0,C1.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Set a field of the scenario, for the first program alone; may be given often.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write the figures of every play here.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// List the workloads and stop.
    #[arg(long)]
    list: bool,
    /// Added by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Plays without a comparison.
const ALONE: u32 = 1;
/// Pairs of a comparison.
const PAIRS: u32 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let workloads = chosen(&options.only)?;
    if options.list {
        for workload in &workloads {
            println!("{:<4} {}", workload.name, workload.what);
        }
        return Ok(());
    }
    let mut sides = vec![Binary::new(&options.binary, options.set)?];
    if let Some(path) = &options.against {
        sides.push(Binary::new(path, Vec::new())?);
    }
    let folder = tempfile::tempdir()?;
    for workload in &workloads {
        for side in &sides {
            side.check(workload, folder.path())?;
        }
    }
    if !options.bench {
        println!("{} scenarios are valid; `cargo bench` plays them", workloads.len());
        return Ok(());
    }
    let pairs = options.pairs.unwrap_or(if sides.len() > 1 { PAIRS } else { ALONE });
    let mut plays = Vec::new();
    for workload in &workloads {
        for pair in 0..pairs {
            plays.extend(play_pair(workload, pair, &sides, folder.path())?);
        }
    }
    if let Some(file) = &options.csv {
        std::fs::write(file, tables::csv(&plays))?;
    }
    println!("{}", tables::costs(&plays));
    if sides.len() > 1 {
        println!("{}", tables::ratios(&plays));
    }
    Ok(())
}

fn chosen(only: &[String]) -> Result<Vec<Workload>, String> {
    let mut all = workloads::all();
    let names: Vec<_> = all.iter().map(|workload| workload.name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        let names = names.join(", ");
        return Err(format!("--only {unknown}: no such workload; there are {names}"));
    }
    all.retain(|workload| only.is_empty() || only.iter().any(|name| name == workload.name));
    Ok(all)
}

/// Each program once; every other pair in the opposite order.
fn play_pair(workload: &Workload, pair: u32, sides: &[Binary], folder: &Path) -> Result<Vec<Play>, Box<dyn Error>> {
    let mut plays = Vec::new();
    let mut order: Vec<_> = SIDES.into_iter().zip(sides).collect();
    if pair % 2 == 1 {
        order.reverse();
    }
    for (side, binary) in order {
        let figures = binary.play(workload, folder)?;
        let (workload, number, rate) = (workload.name, pair + 1, figures.env_steps_per_s);
        eprintln!("{workload} pair {number} {side}: {rate:.1} env-steps/s");
        plays.push(Play {
            workload,
            pair,
            side,
            figures,
        });
    }
    Ok(plays)
}
