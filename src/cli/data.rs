//! `data check`: what lies on disk, before a run relies on it.

use super::init;
use super::options::{CheckOptions, DataCommand};
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::data::survey;
use crate::report::survey_text;

pub fn data(command: &DataCommand, context: &Context) -> Result<Outcome, Rejection> {
    match command {
        DataCommand::Check(options) => check(options, context),
    }
}

fn check(options: &CheckOptions, context: &Context) -> Result<Outcome, Rejection> {
    let surveyed = survey(&options.path, options.labels.as_deref(), options.known())?;
    let printer = context.printer;
    // What `init` refuses is shown all the same, with the reason and without a task.
    let task = init::task(&surveyed, options).map(|task| task.ron);
    if let Err(why) = &task {
        printer.note(format_args!("warning: {why}"));
    }
    if context.global.json {
        return Ok(printer.show_json(&surveyed));
    }
    init::warn(&surveyed, printer);
    let described = survey_text(&surveyed, printer.width());
    let pasted = task.map(|ron| format!("\nfor a scenario (`simic-engine init` prints a whole one):\n\n{ron}"));
    let pasted = pasted.unwrap_or_default();
    Ok(printer.show(format_args!("{}: {described}{pasted}", options.path.display())))
}
