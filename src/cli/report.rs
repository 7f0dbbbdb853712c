//! `report`: a run as one HTML file, once or again and again while it is played.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::named::{Named, held_run};
use super::output::{print_note, show};
use super::rejection::Rejection;
use super::{Context, Outcome, ReportOptions, heeded_stop};
use crate::health::AtPath;
use crate::keep::NetworkShelf;
use crate::network::GrownNetwork;
use crate::record::{ListedState, MANIFEST_FILE, RunEntry, SOURCE_FILE};
use crate::report::{Feed, RunPage, run_page};
use crate::storage;

/// How often a record is looked at while a report follows it.
const LOOK: Duration = Duration::from_secs(2);

/// Writes the report.
pub fn report(options: &ReportOptions, context: &Context) -> Result<Outcome, Rejection> {
    let place = match Named::find(&options.run, options.out.as_deref())? {
        Named::Sweep(..) => return Err(Rejection::Usage("a report of a sweep is not there yet".into())),
        Named::Run(place) => held_run(place)?,
    };
    let output = options.output.clone().unwrap_or_else(|| PathBuf::from("report.html"));
    let mut source = RunSource::new(&place);
    source.poll();
    write(&output, &source.page(false))?;
    if options.follow {
        let stop = heeded_stop()?;
        print_note(format_args!(
            "{} is written anew as the run goes on; Ctrl-C ends it",
            output.display()
        ));
        while source.goes_on() && !stop.is_requested() {
            std::thread::sleep(LOOK);
            if source.poll() {
                write(&output, &source.page(false))?;
            }
        }
    }
    if context.global.json {
        return Ok(super::output::show_json(&serde_json::json!({ "report": output })));
    }
    Ok(show(format_args!("written to {}\n", output.display())))
}

fn write(path: &Path, page: &str) -> Result<(), Rejection> {
    Ok(storage::replace_synced(path, page.as_bytes()).at(path)?)
}

/// A run of which pages are made.
pub struct RunSource {
    feed: Feed,
    best: Option<GrownNetwork>,
    command: String,
    scenario: String,
    problem: Option<String>,
}

impl RunSource {
    /// Of the run in `place`; its events are not read yet.
    pub fn new(place: &Path) -> Self {
        #[derive(Default, Deserialize)]
        struct Typed {
            command_line: Vec<String>,
        }
        // Of a run that ended before it had written them there is nothing to show.
        let text = |file: &str| std::fs::read_to_string(place.join(file)).unwrap_or_default();
        let typed: Typed = serde_json::from_str(&text(MANIFEST_FILE)).unwrap_or_default();
        Self {
            feed: Feed::new(place),
            best: None,
            command: typed.command_line.join(" "),
            scenario: text(SOURCE_FILE),
            problem: None,
        }
    }

    /// Reads what is new; whether there is anything.
    pub fn poll(&mut self) -> bool {
        let rounds = self.feed.state.live.rounds.len();
        let is_new = match self.feed.poll() {
            Ok(is_new) => is_new,
            Err(error) => {
                let problem = error.to_string();
                let is_new = self.problem.as_deref() != Some(&problem);
                self.problem = Some(problem);
                is_new
            }
        };
        if self.best.is_none() || rounds != self.feed.state.live.rounds.len() {
            // None of a folder or of files that cannot be read; `check` says why.
            self.best = NetworkShelf::of(self.feed.folder()).best().ok().flatten();
        }
        is_new
    }

    /// Whether more is to be expected: the run is played by a process that lives.
    pub fn goes_on(&self) -> bool {
        let state = RunEntry::read(self.feed.folder()).state;
        self.problem.is_none()
            && matches!(
                state,
                ListedState::Starting | ListedState::Running | ListedState::Stopping
            )
    }

    /// The page as it stands. `is_live`: it is served.
    pub fn page(&self, is_live: bool) -> String {
        run_page(&RunPage {
            folder: self.feed.folder(),
            state: &self.feed.state,
            best: self.best.as_ref(),
            command: &self.command,
            scenario: &self.scenario,
            problem: self.problem.as_deref(),
            is_live,
        })
    }
}
