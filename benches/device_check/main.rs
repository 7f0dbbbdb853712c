//! Checks a device for the engine's work: whether its numbers are the CPU's, and how fast it is.
//!
//! One process plays every row, those that decide most first. A row is one line of JSON in `rows.jsonl` and one of the
//! table `table.md`; one that fails says why, and the next begins. What takes longer than the limit is cut off with what
//! there is. `scripts/gpu-check.sh` carries this program to a machine with a GPU; `docs/guide/src/gpus.md` says how to read
//! its table.
//!
//!     device_check --device cuda:0 --out FOLDER [--limit-s 480] [--first ROW] [--quick]

mod play;
mod rows;
mod table;
#[path = "../support/grown.rs"]
mod grown;
#[path = "../support/step.rs"]
mod step;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use clap::Parser;
use serde_json::{Value, json};
use simic_engine::internals::run::{StopRequest, end_at_once};
use simic_engine::internals::torch::{device_of, fix_cublas_workspace, load_cuda};
use simic_engine::prelude::*;

use rows::Played;

/// Settings of the rows.
#[derive(Clone, Debug, Parser)]
pub struct Setting {
    /// Device, named as in scenarios.
    #[arg(long, default_value = "cpu")]
    device: String,
    #[arg(long, default_value = "device-check")]
    out: PathBuf,
    /// Plays only as much as shows that each row works, to test the program itself.
    #[arg(long = "quick")]
    is_quick: bool,
    /// Time limit for everything, in seconds.
    #[arg(long, default_value_t = 480.0)]
    limit_s: f64,
    /// End of that time, in seconds since 1970, for a second process.
    #[arg(long)]
    deadline_s: Option<f64>,
    /// First row to play.
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// Only plays the run that a row kills, into this folder.
    #[arg(long, hide = true)]
    victim: Option<PathBuf>,
    /// Argument that `cargo bench` adds.
    #[arg(long = "bench", hide = true)]
    _bench: bool,
}

fn now_s() -> f64 {
    UNIX_EPOCH.elapsed().map_or(0.0, |time| time.as_secs_f64())
}

fn main() -> ExitCode {
    let setting = Setting::parse();
    // Before any thread: libtorch refuses reproducible products otherwise.
    fix_cublas_workspace();
    if let Some(folder) = &setting.victim {
        let played = rows::play_victim(&setting, folder);
        return played.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    play_all(&setting).unwrap_or_else(|error| {
        eprintln!("device_check: {}: {error}", setting.out.display());
        ExitCode::from(2)
    })
}

/// Plays the rows from the first that was asked for and writes the table of all that are there.
fn play_all(setting: &Setting) -> std::io::Result<ExitCode> {
    std::fs::create_dir_all(&setting.out)?;
    let deadline_s = setting.deadline_s.unwrap_or_else(|| now_s() + setting.limit_s);
    let playing = Arc::new(Mutex::new(String::new()));
    cut_off_at(deadline_s, setting.clone(), Arc::clone(&playing));
    let all = rows::all(setting);
    let count = all.len();
    for (index, row) in all.into_iter().enumerate().skip(setting.first) {
        let began = Instant::now();
        if let Ok(mut playing) = playing.lock() {
            playing.clone_from(&row.name);
        }
        let played = catch_unwind(AssertUnwindSafe(|| (row.play)(setting)));
        let played = played.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            Err(text.unwrap_or_else(|| "it panicked".into()).into())
        });
        let is_broken = played.is_err() && !device_works(&setting.device);
        append(setting, &line(&row.name, played, began.elapsed()))?;
        if is_broken && index + 1 < count {
            // A process cannot recover from an error of CUDA, so another one continues.
            return continue_from(setting, index + 1, deadline_s);
        }
    }
    let failed = table::write(&setting.out)?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn line(name: &str, played: Played, took: Duration) -> Value {
    let mut line = json!({"row": name, "ok": played.is_ok(), "seconds": took.as_secs_f64()});
    match played {
        Ok(figures) => line["figures"] = figures,
        Err(why) => line["why"] = why.to_string().into(),
    }
    line
}

fn append(setting: &Setting, line: &Value) -> std::io::Result<()> {
    println!("{line}");
    let rows = setting.out.join("rows.jsonl");
    let mut file = OpenOptions::new().create(true).append(true).open(rows)?;
    writeln!(file, "{line}")
}

fn device_works(device: &str) -> bool {
    device.parse().is_ok_and(|device| {
        let ones = Tensor::f_ones([2], (tch::Kind::Float, device_of(device)));
        ones.and_then(|ones| f64::try_from(ones.f_sum(tch::Kind::Float)?))
            .is_ok_and(|sum| sum == 2.0)
    })
}

fn continue_from(setting: &Setting, first: usize, deadline_s: f64) -> std::io::Result<ExitCode> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--device", &setting.device, "--deadline-s", &deadline_s.to_string()]);
    command.args(["--first", &first.to_string(), "--out"]).arg(&setting.out);
    if setting.is_quick {
        command.arg("--quick");
    }
    command.status()?;
    Ok(ExitCode::FAILURE)
}

/// Ends the process when its time is over: a row cannot be stopped, and one that hangs must not take the table with it.
fn cut_off_at(deadline_s: f64, setting: Setting, playing: Arc<Mutex<String>>) {
    thread::spawn(move || {
        thread::sleep(Duration::from_secs_f64((deadline_s - now_s()).max(0.0)));
        let name = playing.lock().map(|name| name.clone()).unwrap_or_default();
        let cut = line(&name, Err("the time limit was reached".into()), Duration::ZERO);
        let written = append(&setting, &cut).and_then(|()| table::write(&setting.out));
        if let Err(error) = written {
            eprintln!("device_check: {error}");
        }
        // Without destructors, as the row is in the middle of its work.
        end_at_once(StopRequest::Terminate);
    });
}

/// Opens libtorch's part for the device, and reports the result.
fn open_device(setting: &Setting) -> Played {
    let digits = setting.device.strip_prefix("cuda:");
    let index: Option<usize> = digits.and_then(|digits| digits.parse().ok());
    let began = Instant::now();
    load_cuda(index.as_slice(), false)?;
    let opened = began.elapsed().as_secs_f64();
    if !device_works(&setting.device) {
        return Err("the sum of two ones isn't 2".into());
    }
    let mut figures = json!({"opened s": opened, "first sum s": began.elapsed().as_secs_f64()});
    let fields = "--query-gpu=name,driver_version,compute_cap,memory.total";
    let mut query = Command::new("nvidia-smi");
    if let Ok(answer) = query.args([fields, "--format=csv,noheader"]).output() {
        figures["card"] = String::from_utf8_lossy(&answer.stdout).trim().into();
    }
    figures["cores"] = thread::available_parallelism().map_or(0, usize::from).into();
    Ok(figures)
}

/// The PyTorch script: a copy next to this program, or the file in the repository.
fn eager_script() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let carried = program.with_file_name("eager.py");
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/device_check/eager.py");
    if carried.exists() { carried } else { kept.into() }
}
