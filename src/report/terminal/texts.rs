//! The lines around the panels, the log, what the run is, and the keys.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::parts::{bar, coloured, cut, number, of_severity};
use super::{Panel, View};
use crate::files::counted;
use crate::report::state::EpisodeTrace;
use crate::report::words::{short_duration, signed};

/// Keys and their effects.
const KEYS: [(&str, &str); 12] = [
    ("q", "leave; the run continues, or stops if this process plays it"),
    ("Tab, Shift-Tab", "the next, the previous panel"),
    ("0-9", "choose an env; type both digits of 10 and above"),
    ("↑ ↓", "choose the env above, below; in the log: scroll"),
    ("/", "show the log of the chosen env, or of all"),
    ("i", "show the run's scenario, data and devices"),
    ("r", "replay from the beginning"),
    ("Space", "pause or continue the replay"),
    ("+ -", "replay faster, slower"),
    ("e", "jump to the end of the record, and follow it live"),
    ("p c", "pause or continue the run; write a checkpoint now"),
    ("?", "this list"),
];

pub(super) fn head(view: &View, frame: &mut Frame, area: Rect) {
    let live = &view.state.live;
    let progress = live.progress();
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let started = live.started.as_ref();
    let (rounds, steps) = started.map_or((0, 0), |run| (run.n_rounds, run.max_steps));
    let share = live.rounds.len() as f64 / f64::from(rounds.max(1));
    let left = live.eta_s().filter(|_| live.finished.is_none());
    let left = left.map_or_else(String::new, |seconds| format!("  {} left", short_duration(seconds)));
    let name = cut(view.name, usize::from(area.width).saturating_sub(30));
    let title = vec![Span::styled(name, bold), format!("  {}", view.standing).into()];
    let growth = live.growth_in_round;
    let course = format!(
        "round {}/{rounds} {}  step {}/{steps}{left}  {} germinated, {} committed, {} pruned",
        (progress.round + 1).min(rounds.max(1)),
        bar(share, 10),
        progress.step,
        growth.germinated,
        growth.committed,
        growth.pruned,
    );
    let still = live.baseline.as_ref().map(|baseline| baseline.val_accuracy.0);
    let reached = format!(
        "accuracy {} %  best {}  never grew {}  reward {}  {} env-steps/s",
        number(progress.accuracy_mean, 1),
        number(live.best_accuracy().map(|best| best.0), 1),
        number(still, 1),
        signed(live.rounds.last().and_then(|round| round.reward_mean()), 2),
        number(progress.env_steps_per_s, 0),
    );
    let lines: Vec<Line> = vec![title.into(), course.into(), reached.into()];
    frame.render_widget(Paragraph::new(lines), area);
}

/// The message to the viewer; else the worst active anomaly.
pub(super) fn strip(view: &View, frame: &mut Frame, area: Rect) {
    let active = view.state.anomalies.active();
    let line = match (view.message, active.first()) {
        (Some(message), _) => Line::styled(cut(message, area.width.into()), coloured(view, Color::LightCyan)),
        (None, None) => before(view),
        (None, Some(worst)) => {
            let place = worst.event.env.map_or_else(String::new, |env| format!(" env {env}"));
            let more = match active.len() - 1 {
                0 => String::new(),
                more => format!("  (+{more})"),
            };
            let text = format!("! {}{place}: {}{more}", worst.data.rule, worst.message());
            Line::styled(cut(&text, area.width.into()), of_severity(view, worst.event.severity))
        }
    };
    frame.render_widget(Paragraph::new(line), area);
}

/// Count of earlier anomalies, and of envs in which seeds are marked.
fn before(view: &View) -> Line<'static> {
    let found: u64 = view.state.anomalies.counts.values().sum();
    let is_marked = |trace: &&EpisodeTrace| {
        let mut seeds = trace.steps.last().into_iter().flat_map(|step| &step.seeds);
        seeds.any(|seed| seed.is_unhealthy && trace.seed_in(seed.slot).is_some())
    };
    match view.state.episodes.current().into_iter().filter(is_marked).count() {
        0 if found == 0 => Line::styled("all clear", coloured(view, Color::Green)),
        marked => {
            let marked = counted(marked, "env");
            format!("no anomaly now; {found} before; sick gradients (!) in {marked}").into()
        }
    }
}

pub(super) fn foot(view: &View, frame: &mut Frame, area: Rect) {
    let names = Panel::ALL.map(|panel| {
        let name = format!(" {} ", panel.name());
        match panel == view.panel {
            true => Span::styled(format!("[{}]", panel.name()), Style::new().add_modifier(Modifier::BOLD)),
            false => Span::from(name),
        }
    });
    let mut spans = vec![Span::from("Tab ")];
    spans.extend(names);
    spans.push(Span::from("  ? keys  r replay  q leave"));
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

pub(super) fn log(view: &View, area: Rect) -> Vec<Line<'static>> {
    let rows = usize::from(area.height).saturating_sub(2);
    let mut shown: Vec<_> = view.state.log.iter().collect();
    shown.retain(|line| !view.is_filtered || line.env == Some(view.env));
    let end = shown.len() - view.scroll.min(shown.len().saturating_sub(rows));
    let lines = shown[end.saturating_sub(rows)..end].iter().map(|line| {
        let t = line.t.to_string();
        let time = t.get(11..19).unwrap_or_default();
        let text = cut(&format!("{time} {}", line.text), area.width.saturating_sub(2).into());
        Line::styled(text, of_severity(view, line.severity))
    });
    lines.collect()
}

pub(super) fn info(view: &View) -> Vec<Line<'static>> {
    let Some(run) = &view.state.live.started else {
        return vec!["the run has not begun".into()];
    };
    let envs = match run.n_envs {
        0 => "none: it learns from recordings".to_owned(),
        envs => format!("{envs} on {}", run.env_devices.join(", ")),
    };
    let policy = run.policy_params.map(|count| format!("{count} parameters"));
    let checkpoint = run.resumed_from.clone();
    let rows = [
        ("scenario", format!("{} ({})", run.scenario, run.scenario_hash)),
        ("task", run.task.clone()),
        ("controller", run.controller.clone()),
        ("seed", run.seed.0.to_string()),
        ("envs", envs),
        ("rounds, steps", format!("{} of {} steps", run.n_rounds, run.max_steps)),
        (
            "data",
            format!(
                "{}: {} samples to train on, {} to validate",
                run.dataset.name, run.dataset.train_n, run.dataset.val_n
            ),
        ),
        ("precision", run.amp_dtype.clone().unwrap_or_else(|| "f32".into())),
        ("host", format!("{} parameters", run.host_params)),
        ("policy", policy.unwrap_or_else(|| "nothing learns".into())),
        ("resumed from", checkpoint.unwrap_or_else(|| "no checkpoint".into())),
    ];
    let lines = rows.map(|(name, value)| Line::from(format!("{name:<15}{}", cut(&value, 400))));
    lines.into()
}

pub(super) fn help() -> Vec<Line<'static>> {
    let keys = KEYS.map(|(key, what)| Line::from(format!("{key:<16}{what}")));
    let stages = "Stages: G germinated, T training, B blending, H holding, C committed; ! sick gradients.";
    keys.into_iter().chain(["".into(), stages.into()]).collect()
}
