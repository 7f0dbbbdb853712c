//! Progress: a line a round, on a terminal above two bars; JSON lines; or nothing. It goes to standard error; results go to
//! standard output and are not this sink's business.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle as BarStyle};

use super::rounds::{anomaly_lines, header, round_line, short_duration};
use super::{Output, Terminal};
use crate::scenario::printable;
use crate::telemetry::event::{Event, Payload, Severity};
use crate::telemetry::live::LiveState;
use crate::telemetry::payload::{AnomalyState, RunFinished, RunStarted};
use crate::telemetry::sink::{RunInfo, Sink, SinkError};

/// `--progress`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ProgressStyle {
    /// Bars on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// One line a round above two bars and a status line; plain lines where there is no terminal.
    Bar,
    /// A view of the whole run on the screen; plain lines where there is no terminal.
    Tui,
    /// One line a round.
    Plain,
    /// One JSON event a round.
    Json,
    /// Nothing.
    None,
}

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    /// Colours on a terminal unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Colours everywhere.
    Always,
    /// No colours.
    Never,
}

impl ColorChoice {
    /// Whether to colour what is written to a terminal or to something else.
    pub fn is_colored(self, is_terminal: bool) -> bool {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self {
            Self::Auto => is_terminal && !is_refused,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// How and where progress is shown.
#[derive(Clone, Debug, Default)]
pub struct Console {
    /// What is shown.
    pub style: ProgressStyle,
    /// Whether it is coloured.
    pub color: ColorChoice,
    /// Whether every event gets a line that is no step row.
    pub tells_events: bool,
    /// Where bars and log lines are drawn.
    pub terminal: Terminal,
}

impl Console {
    /// Shows nothing.
    pub fn silent() -> Self {
        Self {
            style: ProgressStyle::None,
            ..Self::default()
        }
    }
}

/// The progress display of a run.
pub struct ConsoleSink {
    live: LiveState,
    lines: Lines,
    view: View,
}

enum View {
    Bars(Bars),
    Plain(Output),
    Json(Output),
    Nothing,
}

impl ConsoleSink {
    /// Shows progress.
    pub fn new(console: Console) -> Self {
        let Console {
            style,
            color,
            tells_events,
            terminal,
        } = console;
        let err = terminal.stream().clone();
        let is_terminal = err.terminal().is_some();
        let view = match style {
            ProgressStyle::Auto | ProgressStyle::Bar if is_terminal => View::Bars(Bars::new(color, terminal)),
            ProgressStyle::Tui if is_terminal => View::Nothing,
            ProgressStyle::Auto | ProgressStyle::Bar | ProgressStyle::Tui | ProgressStyle::Plain => View::Plain(err),
            ProgressStyle::Json => View::Json(err),
            ProgressStyle::None => View::Nothing,
        };
        let lines = Lines {
            tells_events,
            has_no_terminal: matches!(style, ProgressStyle::Bar | ProgressStyle::Tui) && !is_terminal,
            has_header: false,
        };
        Self {
            live: LiveState::default(),
            lines,
            view,
        }
    }

    /// Shows lines; above the bars, where there are any.
    fn say(&mut self, lines: &[String]) {
        for line in lines {
            match &mut self.view {
                // A terminal that is gone is no reason to stop, and nothing to try again.
                View::Plain(out) => _ = writeln!(out, "{}", printable(line, &[])),
                View::Bars(bars) => bars.terminal.say(line),
                View::Json(_) | View::Nothing => {}
            }
        }
    }
}

impl Sink for ConsoleSink {
    fn name(&self) -> &str {
        "console"
    }

    fn start(&mut self, run: &RunInfo) -> Result<(), SinkError> {
        if let Some(earlier) = &run.earlier {
            self.live = earlier.live.clone();
        }
        let lines = self.lines.of_start(&run.directory);
        self.say(&lines);
        Ok(())
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
        for event in events {
            self.live.apply(event);
            match &mut self.view {
                View::Json(out) => _ = write_json(out, event),
                View::Nothing => {}
                View::Plain(_) | View::Bars(_) => {
                    let lines = self.lines.of_event(event, &self.live);
                    self.say(&lines);
                }
            }
        }
        if let View::Bars(bars) = &self.view {
            bars.draw(&self.live);
        }
        Ok(())
    }

    fn finish(&mut self, _run: &RunFinished) -> Result<(), SinkError> {
        match &mut self.view {
            View::Bars(bars) => bars.clear(),
            View::Plain(out) | View::Json(out) => _ = out.flush(),
            View::Nothing => {}
        }
        Ok(())
    }
}

/// What is printed in lines, on a terminal and elsewhere.
struct Lines {
    tells_events: bool,
    /// Bars were asked for.
    has_no_terminal: bool,
    /// The header of the rounds' lines was printed.
    has_header: bool,
}

impl Lines {
    /// Where the run is recorded: printed first, so that it is known even if the run fails.
    fn of_start(&self, directory: &Path) -> Vec<String> {
        let mut lines = vec![format!("run directory  {}", directory.display())];
        if self.has_no_terminal {
            lines.push("standard error is no terminal: a line a round instead".into());
        }
        lines
    }

    fn of_event(&mut self, event: &Event, live: &LiveState) -> Vec<String> {
        if let (Payload::RoundFinished(_), Some(round)) = (&event.payload, live.rounds.last()) {
            let mut lines = Vec::new();
            if !std::mem::replace(&mut self.has_header, true) {
                lines.extend(header(live));
            }
            lines.extend(anomaly_lines(round, live));
            lines.push(round_line(round, live));
            return lines;
        }
        let is_told = is_of_run(event) || self.tells_events && event.severity >= Severity::Info;
        is_told.then(|| event_line(event)).flatten().into_iter().collect()
    }
}

/// The few lines about the run as a whole: how it begins, and what changes its course. What is found of envs waits for the
/// end of their round.
fn is_of_run(event: &Event) -> bool {
    match &event.payload {
        Payload::RunStarted(_) | Payload::CheckpointLoaded(_) | Payload::Note(_) => true,
        Payload::LearnerUpdate(update) => !update.update_performed,
        Payload::Anomaly(anomaly) => anomaly.state == AnomalyState::Onset && event.env.is_none(),
        _ => false,
    }
}

fn write_json(out: &mut Output, event: &Event) -> Result<(), SinkError> {
    if matches!(event.payload, Payload::RoundFinished(_)) {
        writeln!(out, "{}", serde_json::to_string(event)?)?;
    }
    Ok(())
}

/// What happened, behind round (from 1), step, env and seed; `None` for rows that come every step.
pub fn event_line(event: &Event) -> Option<String> {
    let mut message = event
        .message
        .as_deref()
        .map(|message| format!(" ({message})"))
        .unwrap_or_default();
    let what = match &event.payload {
        Payload::Anomaly(anomaly) => {
            let of = event
                .slot
                .filter(|_| event.seed_id.is_none())
                .map(|slot| slot.to_string());
            let of = of
                .or(anomaly.head.clone())
                .map(|part| format!(" {part}"))
                .unwrap_or_default();
            message = format!(": {}", event.message.as_deref().unwrap_or_default());
            format!("{}{of}", anomaly.rule)
        }
        Payload::SeedGerminated(seed) => format!("germinated {}", seed.blueprint),
        Payload::SeedStageChanged(seed) => format!("{} -> {}", seed.from, seed.to),
        Payload::AlphaRampStarted(ramp) => {
            format!("alpha {:.2} -> {:.2} in {} steps", ramp.from.0, ramp.to.0, ramp.steps)
        }
        Payload::SeedGateEvaluated(gate) => {
            let verdict = if gate.passed { "passed" } else { "failed" };
            format!("gate {} {verdict}", gate.gate)
        }
        Payload::SeedCommitted(seed) => {
            let gain = seed
                .contribution
                .map_or_else(String::new, |points| format!(", contributes {:+.2} points", points.0));
            format!("committed {}{gain}", seed.blueprint)
        }
        Payload::SeedPruned(seed) => format!("pruned by {} ({})", seed.initiator, seed.reason),
        Payload::GovernorAlarm(alarm) => format!(
            "loss {:.3} is not healthy ({} of {} in a row)",
            alarm.loss.0, alarm.consecutive, alarm.required
        ),
        Payload::GovernorRollback(rollback) => format!(
            "rolled back to step {}, {} lost",
            rollback.snapshot_step, rollback.steps_lost
        ),
        Payload::HostStabilized(_) => "host stabilized".into(),
        Payload::EpisodeFinished(episode) => format!(
            "episode finished: acc {:.1}%, {:.2}x params",
            episode.final_accuracy.0, episode.param_ratio.0
        ),
        Payload::LearnerUpdate(update) if !update.update_performed => {
            format!("the policy was not updated: {}", update.skip_reason.describe())
        }
        Payload::BaselineMeasured(baseline) => {
            format!("host that never grew: acc {:.1}%", baseline.val_accuracy.0)
        }
        Payload::RunStarted(run) => run_line(run),
        Payload::Note(note) => format!("note: {}", note.text),
        Payload::UserEvent(user) => user.name.clone(),
        Payload::CheckpointLoaded(checkpoint) => format!("resumed from {}", checkpoint.path),
        _ => return None,
    };
    let place = [
        event.round.map(|round| format!("round {} ", round + 1)),
        event.step.map(|step| format!("step {step} ")),
        event.env.map(|env| format!("env {env} ")),
    ];
    let place: String = place.into_iter().flatten().collect();
    let seed = event
        .seed_id
        .as_ref()
        .map_or_else(String::new, |seed_id| format!("{seed_id} "));
    let severity = match &event.payload {
        Payload::Anomaly(_) => format!("{}: ", event.severity.name()),
        _ => String::new(),
    };
    Some(format!("{severity}{place}{seed}{what}{message}"))
}

fn run_line(run: &RunStarted) -> String {
    if run.n_envs == 0 {
        return format!(
            "{}: {} updates from recordings, controller {}",
            run.task, run.n_rounds, run.controller
        );
    }
    format!(
        "{}: {} envs, {} rounds of {} steps, controller {}",
        run.task, run.n_envs, run.n_rounds, run.max_steps, run.controller
    )
}

/// One bar over rounds, one over the steps of the round, and a status line.
struct Bars {
    terminal: Terminal,
    rounds: ProgressBar,
    steps: ProgressBar,
    status: ProgressBar,
}

impl Bars {
    fn new(color: ColorChoice, terminal: Terminal) -> Self {
        let is_colored = color.is_colored(terminal.stream().terminal().is_some());
        let (rounds, steps) = if is_colored {
            ("{bar:32.green/dim}", "{bar:32.cyan/dim}")
        } else {
            ("{bar:32}", "{bar:32}")
        };
        let add = |template: &str| {
            let bar = terminal.add(ProgressBar::new(0));
            // The templates are constants, so the default is never seen.
            let style = BarStyle::with_template(template)
                .unwrap_or_else(|_| BarStyle::default_bar())
                .progress_chars("━━─");
            bar.set_style(style);
            bar
        };
        Self {
            rounds: add(&format!("round {rounds} {{pos:>4}}/{{len}}  {{msg}}")),
            steps: add(&format!("step  {steps} {{pos:>4}}/{{len}}")),
            status: add("{msg}"),
            terminal,
        }
    }

    fn draw(&self, live: &LiveState) {
        if let Some(run) = live.started.as_ref() {
            self.rounds.set_length(u64::from(run.n_rounds));
            self.steps.set_length(u64::from(run.max_steps));
        }
        self.rounds.set_position(live.rounds.len() as u64);
        self.steps.set_position(u64::from(live.progress().step));
        if let Some(seconds) = live.eta_s() {
            self.rounds.set_message(format!("{} left", short_duration(seconds)));
        }
        self.status.set_message(status_line(live));
    }

    fn clear(&self) {
        for bar in [&self.rounds, &self.steps, &self.status] {
            bar.finish_and_clear();
        }
    }
}

/// `accuracy 54.3 %  germinated 3, committed 1, pruned 2  6.4 env-steps/s`
fn status_line(live: &LiveState) -> String {
    let progress = live.progress();
    let growth = live.growth_in_round;
    let mut parts = Vec::new();
    if let Some(accuracy) = progress.accuracy_mean {
        parts.push(format!("accuracy {accuracy:.1} %"));
    }
    parts.push(format!(
        "germinated {}, committed {}, pruned {}",
        growth.germinated, growth.committed, growth.pruned
    ));
    if let Some(speed) = progress.env_steps_per_s {
        parts.push(format!("{speed:.1} env-steps/s"));
    }
    parts.join("  ")
}

#[cfg(test)]
mod tests;
