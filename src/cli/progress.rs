//! What long commands show on standard error while they work: bars on a terminal and lines above them, lines alone elsewhere,
//! nothing with `--quiet`.

use indicatif::{ProgressBar, ProgressStyle};

use super::Context;
use super::output::Printer;
use crate::telemetry::sinks::Terminal;

/// Where it is shown.
pub struct Progress {
    is_quiet: bool,
    printer: Printer,
    /// Where bars are drawn.
    terminal: Option<Terminal>,
}

impl Progress {
    pub fn new(context: &Context) -> Self {
        let is_quiet = context.global.quiet;
        let is_drawn = !is_quiet && context.surroundings.err.terminal().is_some();
        Self {
            is_quiet,
            printer: context.printer.clone(),
            terminal: is_drawn.then(|| context.terminal.clone()),
        }
    }

    pub fn is_drawn(&self) -> bool {
        self.terminal.is_some()
    }

    /// A bar below those that there are; hidden where none is drawn.
    pub fn bar(&self, length: u64, template: &str) -> ProgressBar {
        let Some(terminal) = &self.terminal else {
            return ProgressBar::hidden();
        };
        // Templates are constants, so the default is never seen.
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = terminal.add(ProgressBar::new(length));
        bar.set_style(style.progress_chars("━━─"));
        bar
    }

    pub fn say(&self, line: &str) {
        match &self.terminal {
            _ if self.is_quiet => {}
            Some(terminal) => terminal.say(line),
            None => self.printer.note(line),
        }
    }
}
