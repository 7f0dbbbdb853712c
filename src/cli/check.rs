//! `check`: whether a run or a sweep is whole, and its remaining uses.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::prepare::prepare_file;
use super::rejection::Rejection;
use super::{CheckRunOptions, Context, DiffOptions, Outcome};
use crate::checkpoint::{CheckpointName, Checkpoints, compare_inputs};
use crate::inspect::{Check, CheckVerdict, Part, Use, Weight, check as look_through, diff as compare};
use crate::record::{RESOLVED_FILE, find_run};
use crate::sweep::SweepFolder;

/// Looks through the folder and prints one line per part.
pub fn check(options: &CheckRunOptions, context: &Context) -> Result<Outcome, Rejection> {
    let mut found = look_through(&find(options)?, &context.names.catalog);
    if found.good_for.contains(&Use::Resume)
        && !found.is_played
        && let Err(why) = compare_with_place(&found.folder, context)
    {
        found = found.not_resumable(&why.to_string());
    }
    let shown = context.printer.show_either(&found, || table(&found));
    Ok(shown.unless_done(match found.verdict {
        CheckVerdict::Sound => Outcome::Done,
        CheckVerdict::Resumable => Outcome::Found,
        CheckVerdict::Usable => Outcome::OnlyUsable,
        CheckVerdict::Useless => Outcome::Useless,
    }))
}

/// A name may be a sweep's or a run's; a folder is taken as given.
fn find(options: &CheckRunOptions) -> Result<PathBuf, Rejection> {
    let (folder, out) = (&options.folder, options.out.as_deref());
    match SweepFolder::of(&folder.to_string_lossy(), out) {
        sweep if !folder.is_dir() && SweepFolder::is_at(sweep.path()) => Ok(sweep.path().into()),
        _ => Ok(find_run(folder, out)?),
    }
}

/// Checks weights and recordings outside of the run's folder as a resume will.
fn compare_with_place(run: &Path, context: &Context) -> Result<(), Rejection> {
    let newest = Checkpoints::of(run).find(CheckpointName::Last);
    let (checkpoint, progress) = newest.map_err(|error| error.to_string())?;
    let mut prepared = prepare_file(&run.join(RESOLVED_FILE), &progress.changes, context)?;
    prepared.loaded.scenario.run.rounds = progress.rounds;
    let mut engine = context.engine().build(&prepared)?;
    let compared = compare_inputs(engine.world_mut(), &checkpoint, &progress);
    Ok(compared.map_err(|failure| failure.to_string())?)
}

fn table(found: &Check) -> String {
    let width = found.parts.iter().map(|part| part.name.len()).max().unwrap_or_default();
    let mut text = found.folder.display().to_string();
    if let Some(state) = found.state {
        _ = write!(text, ": {}", state.name());
    }
    if found.is_played {
        text += " (a process is playing it: only what it has written so far was checked)";
    }
    text.push('\n');
    for part in &found.parts {
        add_part(&mut text, part, width);
    }
    let uses: Vec<&str> = found.good_for.iter().map(|good| good.name()).collect();
    let uses = if uses.is_empty() {
        "nothing".into()
    } else {
        uses.join(", ")
    };
    _ = writeln!(text, "good for: {uses}");
    text
}

fn add_part(text: &mut String, part: &Part, width: usize) {
    let word = match part.weight() {
        None => "ok",
        Some(Weight::Note) => "note",
        Some(Weight::Problem) => "problem",
    };
    let mut lines: Vec<String> = part.findings.iter().map(ToString::to_string).collect();
    if part.omitted > 0 {
        lines.push(format!("and {} more", part.omitted));
    }
    if lines.is_empty() {
        lines.push(part.seen.clone());
    }
    let mut head = format!("  {:width$}  {word:7}  ", part.name);
    for line in lines {
        _ = writeln!(text, "{head}{line}");
        head = " ".repeat(head.len());
    }
}

/// Compares two runs and prints the first difference.
pub fn diff(options: &DiffOptions, context: &Context) -> Result<Outcome, Rejection> {
    let find = |run| find_run(run, options.out.as_deref());
    let (left, right) = (find(&options.left)?, find(&options.right)?);
    let found = compare(&left, &right, &options.kinds(), options.extent())?;
    let shown = context.printer.show_either(&found, || {
        if found.differences.is_empty() {
            let compared: Vec<String> = found.compared.iter().map(ToString::to_string).collect();
            return format!("no difference in {}\n", compared.join(", "));
        }
        let lines = found.differences.iter().map(|difference| format!("{difference}\n"));
        lines.collect()
    });
    Ok(shown.unless_done(match found.differences.is_empty() {
        true => Outcome::Done,
        false => Outcome::Found,
    }))
}
