//! Completions for the shell: commands and flags by their declarations, and the words that only this program knows: runs,
//! sweeps, fields of scenarios and their values. The shell asks the program, by way of the variable `COMPLETE`, and waits for
//! it at every press of a key, so nothing here opens a device or reads more of a run than which files it has.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::CompleteEnv;

use super::list::SWEEP;
use super::options::Arguments;
use crate::engine::Extension;
use crate::record::{RunDirectory, runs_root};
use crate::scenario::{Scenario, field_paths, field_values};
use crate::sweep::{SweepFile, SweepFolder};

/// Answers a shell that asks, and ends the process; does nothing if none does.
pub fn answer(arguments: &[OsString], extension: &Extension) {
    // A user's crate is another program, with its own completions.
    let program = arguments.first().map(PathBuf::from).unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    let asked = Asked {
        root: root(arguments),
        extension: extension.clone(),
    };
    let command = || knowing(Arguments::command(), &asked).name(program.to_string());
    CompleteEnv::with_factory(command).bin(&*program).complete();
}

/// State that completions depend on besides the typed words.
#[derive(Clone)]
struct Asked {
    /// The folder of all runs.
    root: PathBuf,
    extension: Extension,
}

/// The command with the possible values of its arguments.
fn knowing(command: Command, asked: &Asked) -> Command {
    let name = command.get_name().to_owned();
    let command = command.mut_args(|argument| match words_of(&name, argument.get_id().as_str()) {
        Some(words) => {
            let asked = asked.clone();
            let complete = move |typed: &OsStr| candidates(typed, words(&typed.to_string_lossy(), &asked));
            argument.add(ArgValueCompleter::new(complete))
        }
        None => argument,
    });
    command.mut_subcommands(|below| knowing(below, asked))
}

/// All words for an argument, given its typed beginning.
fn words_of(command: &str, argument: &str) -> Option<fn(&str, &Asked) -> Vec<String>> {
    Some(match (command, argument) {
        ("explain", "path") => |typed, _| {
            let of_sweep = field_paths::<SweepFile>();
            let of_sweep = of_sweep.iter().map(|path| format!("{SWEEP}.{path}"));
            let all = of_sweep.chain(field_paths::<Scenario>()).chain([SWEEP.into()]);
            // Only sections, until a letter of one is typed.
            all.filter(|path| !typed.is_empty() || !path.contains('.')).collect()
        },
        ("compare", "by") | ("resume", "allowed") => |_, _| field_paths::<Scenario>(),
        (_, "sets") => settings,
        ("compare" | "check" | "export-tables" | "report" | "show", "sources" | "folder" | "run") => {
            |_, asked| [runs(asked), sweeps(asked)].concat()
        }
        (_, SWEEP) => |_, asked| sweeps(asked),
        (_, "run" | "left" | "right") => |_, asked| runs(asked),
        _ => return None,
    })
}

/// `PATH=`, then `PATH=VALUE`; of a list up to the entry that is being written.
fn settings(typed: &str, asked: &Asked) -> Vec<String> {
    let Some((path, value)) = typed.split_once('=') else {
        return field_paths::<Scenario>().into_iter().map(|path| path + "=").collect();
    };
    let names = asked.extension.names();
    let words = names.map_or_else(|_| Vec::new(), |names| field_values(path, &names.catalog));
    let (entries, opening) = value.rfind(',').map_or(("", ""), |comma| (&value[..=comma], "["));
    let entry = |word: &String| format!("{path}={entries}{}", word.strip_prefix(opening).unwrap_or(word));
    words.iter().map(entry).collect()
}

/// The folder of all runs, heeding the flag.
fn root(arguments: &[OsString]) -> PathBuf {
    let mut words = arguments.iter().skip_while(|word| *word != "--out").skip(1);
    runs_root(words.next().map(Path::new))
}

fn runs(asked: &Asked) -> Vec<String> {
    [named(&asked.root, RunDirectory::is_at), vec!["latest".into()]].concat()
}

fn sweeps(asked: &Asked) -> Vec<String> {
    named(SweepFolder::of("", Some(&asked.root)).path(), SweepFolder::is_at)
}

/// Names in a folder, the newest run first.
fn named(root: &Path, is_wanted: fn(&Path) -> bool) -> Vec<String> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let wanted = entries.filter(|entry| is_wanted(&entry.path()));
    let mut names: Vec<String> = wanted.flat_map(|entry| entry.file_name().into_string()).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    names
}

/// Words that begin so, in their order; folders where there is none: most of what is named so may be given by its path.
fn candidates(typed: &OsStr, mut words: Vec<String>) -> Vec<CompletionCandidate> {
    words.retain(|word| word.starts_with(&*typed.to_string_lossy()));
    if words.is_empty() {
        return PathCompleter::dir().complete(typed);
    }
    let in_order = |(place, word)| CompletionCandidate::new(word as String).display_order(Some(place));
    words.into_iter().enumerate().map(in_order).collect()
}
