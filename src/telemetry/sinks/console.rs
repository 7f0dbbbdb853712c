//! Progress on the terminal: two bars, one plain line a round, JSON lines, or nothing. It goes to standard
//! error; results go to standard output and are not this sink's business.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle as BarStyle};

use super::Terminal;
use crate::telemetry::event::{Event, Payload, Severity};
use crate::telemetry::live::{LiveState, RoundResult};
use crate::telemetry::payload::{RunFinished, RunStarted, SinkClass};
use crate::telemetry::sink::{RunInfo, Sink, SinkError};

/// `--progress`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ProgressStyle {
    /// A bar on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// Two bars and a status line.
    Bar,
    /// One line a round and one per event that is no step row.
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
    view: View,
}

enum View {
    Bars(Bars),
    Plain(Box<dyn Write + Send>),
    Json(Box<dyn Write + Send>),
    Nothing,
}

impl ConsoleSink {
    /// Shows progress on standard error.
    pub fn new(console: Console) -> Self {
        let Console { style, color, terminal } = console;
        let is_terminal = std::io::stderr().is_terminal();
        let view = match style {
            ProgressStyle::Auto if is_terminal => View::Bars(Bars::new(color, terminal)),
            ProgressStyle::Bar => View::Bars(Bars::new(color, terminal)),
            ProgressStyle::Auto | ProgressStyle::Plain => View::Plain(Box::new(std::io::stderr())),
            ProgressStyle::Json => View::Json(Box::new(std::io::stderr())),
            ProgressStyle::None => View::Nothing,
        };
        Self {
            live: LiveState::default(),
            view,
        }
    }
}

impl Sink for ConsoleSink {
    fn name(&self) -> &str {
        "console"
    }

    fn class(&self) -> SinkClass {
        SinkClass::Live
    }

    fn start(&mut self, run: &RunInfo) -> Result<(), SinkError> {
        if let Some(earlier) = &run.earlier {
            self.live = earlier.live.clone();
        }
        Ok(())
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), SinkError> {
        for event in events {
            self.live.apply(event);
            match &mut self.view {
                // A terminal that is gone is no reason to stop, and nothing to try again.
                View::Plain(out) => _ = write_plain(out, event, &self.live),
                View::Json(out) => _ = write_json(out, event),
                View::Bars(bars) => bars.announce(event),
                View::Nothing => {}
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

fn write_plain(out: &mut dyn Write, event: &Event, live: &LiveState) -> Result<(), SinkError> {
    if let (Payload::RoundFinished(_), Some(round)) = (&event.payload, live.rounds.last()) {
        writeln!(out, "{}", round_line(round, live))?;
    } else if event.severity >= Severity::Info
        && let Some(line) = event_line(event)
    {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn write_json(out: &mut dyn Write, event: &Event) -> Result<(), SinkError> {
    if matches!(event.payload, Payload::RoundFinished(_)) {
        writeln!(out, "{}", serde_json::to_string(event)?)?;
    }
    Ok(())
}

/// `round 12/200 acc 54.3% (roll 53.8) best 61.0% rew +1.92 H 0.71 kl 0.008 G3 F1 P2 6.4 env-steps/s eta 1h12m`
fn round_line(round: &RoundResult, live: &LiveState) -> String {
    let total = live
        .started
        .as_ref()
        .map_or_else(|| "?".into(), |run| run.n_rounds.to_string());
    let told = &round.told;
    let rolling = told
        .rolling_accuracy
        .map_or_else(|| "n/a".into(), |accuracy| format!("{:.1}", accuracy.0));
    let eta = live.eta_s().map_or_else(|| "n/a".into(), short_duration);
    let learning = learning(round, live);
    format!(
        "round {}/{total} acc {:.1}% (roll {rolling}) best {:.1}% {learning}G{} F{} P{} {:.1} env-steps/s eta {eta}",
        round.round + 1,
        told.accuracy_mean.0,
        told.accuracy_best.0,
        told.growth.germinated,
        told.growth.fossilized,
        told.growth.pruned,
        told.perf.env_steps_per_s.0,
    )
}

/// What the round was paid and what the policy learnt of it; empty where nothing pays.
fn learning(round: &RoundResult, live: &LiveState) -> String {
    let reward = round
        .reward_mean()
        .map_or_else(String::new, |reward| format!("rew {reward:+.2} "));
    let update = live.update_of_round(round.round);
    let entropy = update.and_then(|update| update.entropy.entropy_mean);
    let entropy = entropy.map_or_else(String::new, |entropy| format!("H {:.2} ", entropy.0));
    let kl = update.and_then(|update| update.trust.approx_kl);
    let kl = kl.map_or_else(String::new, |kl| format!("kl {:.3} ", kl.0));
    format!("{reward}{entropy}{kl}")
}

/// What happened, behind env and seed; `None` for rows that come every step.
fn event_line(event: &Event) -> Option<String> {
    let what = match &event.payload {
        Payload::SeedGerminated(seed) => format!("germinated {}", seed.blueprint),
        Payload::SeedStageChanged(seed) => format!("{} -> {}", seed.from, seed.to),
        Payload::SeedAlphaRetargeted(ramp) => {
            format!("alpha {:.2} -> {:.2} in {} steps", ramp.from.0, ramp.to.0, ramp.steps)
        }
        Payload::SeedGateEvaluated(gate) => {
            let verdict = if gate.passed { "passed" } else { "failed" };
            format!("gate {} {verdict}", gate.gate)
        }
        Payload::SeedFossilized(seed) => {
            let gain = seed
                .contribution
                .map_or_else(String::new, |points| format!(", contributes {:+.2} points", points.0));
            format!("fossilized {}{gain}", seed.blueprint)
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
        Payload::RoundRestarted(restart) => format!(
            "the round begins anew with batches in {} parts: {}",
            restart.micro_batches, restart.error
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
        Payload::CheckpointLoaded(checkpoint) => format!("goes on from {}", checkpoint.path),
        _ => return None,
    };
    let env = event.env.map_or_else(String::new, |env| format!("env {env} "));
    let seed = event
        .seed_id
        .as_ref()
        .map_or_else(String::new, |seed_id| format!("{seed_id} "));
    let message = event
        .message
        .as_ref()
        .map_or_else(String::new, |message| format!(" ({message})"));
    Some(format!("{env}{seed}{what}{message}"))
}

fn run_line(run: &RunStarted) -> String {
    format!(
        "{}: {} envs, {} rounds of {} steps, controller {}, host with {} params",
        run.task, run.n_envs, run.n_rounds, run.max_steps, run.controller, run.host_params
    )
}

/// `42s`, `3m05s`, `1h12m`.
fn short_duration(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds.round())
        .unwrap_or(Duration::MAX)
        .as_secs();
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole / 60 % 60),
    }
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
        let is_colored = color.is_colored(std::io::stderr().is_terminal());
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
            rounds: add(&format!("round {rounds} {{pos:>4}}/{{len}}")),
            steps: add(&format!("step  {steps} {{pos:>4}}/{{len}}")),
            status: add("{msg}"),
            terminal,
        }
    }

    /// Prints warnings above the bars.
    fn announce(&self, event: &Event) {
        if event.severity >= Severity::Warning
            && let Some(line) = event_line(event)
        {
            self.terminal.say(&line);
        }
    }

    fn draw(&self, live: &LiveState) {
        if let Some(run) = live.started.as_ref() {
            self.rounds.set_length(u64::from(run.n_rounds));
            self.steps.set_length(u64::from(run.max_steps));
        }
        self.rounds.set_position(live.rounds.len() as u64);
        self.steps.set_position(u64::from(live.progress().step));
        self.status.set_message(status_line(live));
    }

    fn clear(&self) {
        for bar in [&self.rounds, &self.steps, &self.status] {
            bar.finish_and_clear();
        }
    }
}

/// `accuracy 54.3%  best 81.0%  reward +1.92  germinated 3 fossilized 1 pruned 2  6.4 env-steps/s  eta 20s`
fn status_line(live: &LiveState) -> String {
    let progress = live.progress();
    let growth = live.growth_in_round;
    let mut parts = Vec::new();
    if let Some(accuracy) = progress.accuracy_mean {
        parts.push(format!("accuracy {accuracy:.1}%"));
    }
    if let Some(best) = live.best_episode.as_ref() {
        parts.push(format!("best {:.1}%", best.told.final_accuracy.0));
    }
    if let Some(reward) = live.rounds.last().and_then(RoundResult::reward_mean) {
        parts.push(format!("reward {reward:+.2}"));
    }
    parts.push(format!(
        "germinated {} fossilized {} pruned {}",
        growth.germinated, growth.fossilized, growth.pruned
    ));
    if let Some(speed) = progress.env_steps_per_s {
        parts.push(format!("{speed:.1} env-steps/s"));
    }
    if let Some(seconds) = live.eta_s() {
        parts.push(format!("eta {}", short_duration(seconds)));
    }
    parts.join("  ")
}

#[cfg(test)]
mod tests;
