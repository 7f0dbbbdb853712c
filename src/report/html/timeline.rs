//! The growth timeline: a lane for each env and slot over the steps of an episode, the stages of seeds in colour, commits, prunes
//! and rollbacks as marks; above the lanes of an env the course of its accuracy. With scripts an episode can be replayed.

use std::collections::BTreeSet;
use std::fmt::Write;

use maud::{Markup, html};
use serde_json::{Value, json};

use super::chart::shortened;
use super::page::Page;
use super::svg::{Range, WIDTH, escaped, picture, text};
use crate::growth::{PruneReason, SeedStage, SlotId};
use crate::report::state::{EpisodeTrace, Mark, StepPoint, ViewState};
use crate::report::words::op_name;
use crate::telemetry::{SeedEnd, SeedLife};

/// Envs of a round that the timeline shows.
const ENVS: usize = 24;

const LEFT: f64 = 96.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 4.0;
const BOTTOM: f64 = 22.0;
/// Height of the course of an env's accuracy.
const COURSE: f64 = 22.0;
const LANE: f64 = 13.0;
const BETWEEN_ENVS: f64 = 8.0;
/// Width of a character of a lane's texts, about.
const CHARACTER: f64 = 5.6;

/// Stages with a colour of their own, in the order of a life, and their names.
const STAGES: [(SeedStage, &str); 5] = [
    (SeedStage::Germinated, "germinated"),
    (SeedStage::Training, "training"),
    (SeedStage::Blending, "blending"),
    (SeedStage::Holding, "holding"),
    (SeedStage::Committed, "committed"),
];

/// Name of a stage. `None` is a slot in which nothing grows.
pub fn class_of(stage: SeedStage) -> Option<&'static str> {
    STAGES.iter().find(|(of, _)| *of == stage).map(|(_, name)| *name)
}

/// The section of a page, which opens on `shown`.
pub fn section(state: &ViewState, shown: Option<&EpisodeTrace>, page: &mut Page) -> Markup {
    let slots = state.live.started.as_ref().map_or(&[][..], |run| &run.slots);
    let steps = state.live.started.as_ref().map_or(1, |run| run.max_steps);
    let current = state.episodes.current();
    let (current, hidden) = current.split_at(current.len().min(ENVS));
    let mut highlights: Vec<&EpisodeTrace> = shown.into_iter().chain(&state.episodes.best).collect();
    highlights.extend(state.episodes.best_of_rounds.iter());
    let mut seen = BTreeSet::new();
    highlights.retain(|trace| seen.insert(trace.at.episode));
    seen.clear();
    for trace in current.iter().chain(&highlights) {
        if seen.insert(trace.at.episode) && !trace.steps.is_empty() {
            page.episode(replayed(trace, slots));
        }
    }
    if current.is_empty() {
        return html! { p { "No episode has begun yet." } };
    }
    let round = current.first().map_or(0, |trace| trace.at.round + 1);
    html! {
        (legend())
        div.timeline {
            div.controls {
                label { "Show " select.group {
                    @if !highlights.is_empty() { option value="best" { "the best episode of all, and of each round" } }
                    option value="round" { "all envs of round " (round) }
                } }
                button.play type="button" { "▶ Play" }
                label.grow { "Step " input.step type="range" min="1" max=(steps) value=(steps); output.step {} }
            }
            @if !highlights.is_empty() {
                div.group data-group="best" {
                    h3 { "The best episode of all, and of each round" }
                    (lanes(&highlights, slots, steps, "growth in the best episodes"))
                }
            }
            div.group data-group="round" {
                h3 { "All envs of round " (round) }
                (lanes(current, slots, steps, &format!("growth in all envs of round {round}")))
                @if !hidden.is_empty() { p.note { "and " (hidden.len()) " more envs" } }
            }
            div.replay aria-live="polite" {}
        }
    }
}

/// Key of an episode, unique on the page.
fn key(trace: &EpisodeTrace) -> String {
    format!("e{}", trace.at.episode)
}

/// Meanings of the colours and marks.
fn legend() -> Markup {
    html! {
        ul.legend {
            @for (_, name) in STAGES { li { i class={ "swatch stage-" (name) } {} (name) } }
            li { i.mark { "◆" } "commit" }
            li { i.mark { "✕" } "prune" }
            li { i.mark.bad { "⟲" } "rollback" }
            li { i.mark.bad { "!" } "anomaly" }
        }
    }
}

/// Episodes below each other, over `steps` steps, with a lane for each of `slots`.
fn lanes(traces: &[&EpisodeTrace], slots: &[SlotId], steps: u32, title: &str) -> Markup {
    let last = f64::from(steps.max(1));
    let across = |step: f64| LEFT + (step.min(last) - 0.5) / last * (WIDTH - LEFT - RIGHT);
    let all = traces.iter().flat_map(|trace| &trace.steps);
    let accuracies = Range::of(all.map(|step| f64::from(step.accuracy)));
    let mut body = String::new();
    let mut y = TOP;
    for trace in traces {
        let from = y;
        let name = format!("round {}, env {}", trace.at.round + 1, trace.at.env);
        let accuracy = trace.accuracy();
        let accuracy = accuracy.map_or_else(String::new, |accuracy| format!("{accuracy:.1} %"));
        _ = write!(
            body,
            r#"<g class="episode" data-episode="{}" tabindex="0"><title>{name}</title>"#,
            key(trace)
        );
        text(&mut body, "tick", (4.0, y + 9.0), "start", &name);
        text(&mut body, "tick strong", (4.0, y + 21.0), "start", &accuracy);
        course(&mut body, trace, accuracies, y, across);
        y += COURSE + 3.0;
        for slot in slots {
            let place = (LEFT - 6.0, y + LANE - 3.5);
            text(&mut body, "tick", place, "end", &slot.to_string());
            let (right, below) = (WIDTH - RIGHT, y + LANE - 0.5);
            _ = write!(
                body,
                r#"<line class="grid" x1="{LEFT}" x2="{right}" y1="{below:.1}" y2="{below:.1}"/>"#
            );
            for seed in trace.seeds.iter().filter(|seed| seed.slot == *slot) {
                life(&mut body, seed, trace.at.step, y, across);
            }
            y += LANE;
        }
        for (step, mark) in &trace.marks {
            let (sign, what) = match mark {
                Mark::Rollback(to) => ("⟲", format!("step {step}: rolled back to step {to}")),
                Mark::Anomaly(rule) => ("!", format!("step {step}: {rule}")),
            };
            _ = write!(
                body,
                r#"<text class="mark bad" x="{:.1}" y="{:.1}" text-anchor="middle">{sign}<title>{}</title></text>"#,
                across(f64::from(*step)),
                from + COURSE - 4.0,
                escaped(&what)
            );
        }
        _ = write!(
            body,
            r#"<rect class="chosen" x="1" y="{:.1}" width="{:.1}" height="{:.1}"/></g>"#,
            from - 1.0,
            WIDTH - 2.0,
            y - from + 3.0
        );
        y += BETWEEN_ENVS;
    }
    let height = y + BOTTOM;
    let ticks = Range { low: 0.0, high: last }.ticks();
    for step in ticks.into_iter().filter(|step| *step >= 1.0) {
        let place = (across(step), height - 8.0);
        text(&mut body, "tick", place, "middle", &step.to_string());
    }
    _ = write!(
        body,
        r#"<line class="cursor" y1="0" y2="{:.1}" x1="{LEFT}" x2="{LEFT}"/>"#,
        y
    );
    html! {
        div.lanes data-left=(LEFT) data-width=(WIDTH - LEFT - RIGHT) data-steps=(steps) {
            (picture(height, title, &body))
        }
    }
}

fn course(body: &mut String, trace: &EpisodeTrace, range: Range, top: f64, across: impl Fn(f64) -> f64) {
    let mut path = String::new();
    for step in &trace.steps {
        let accuracy = f64::from(step.accuracy);
        if accuracy.is_finite() {
            let down = top + COURSE - (accuracy - range.low) / (range.high - range.low) * (COURSE - 2.0);
            let command = if path.is_empty() { 'M' } else { 'L' };
            _ = write!(path, "{command}{:.1} {down:.1}", across(f64::from(step.step)));
        }
    }
    _ = write!(body, r#"<path class="course" d="{path}"/>"#);
}

/// The bar of a seed: from its germination to its end, or to the newest step.
fn life(body: &mut String, seed: &SeedLife, newest: u32, top: f64, across: impl Fn(f64) -> f64) {
    let end = match seed.end {
        SeedEnd::Pruned { step, .. } => step,
        SeedEnd::Open | SeedEnd::Committed(_) => newest,
    };
    let what = describe(seed);
    let entered = seed.stages.iter();
    let left = entered.clone().skip(1).map(|&(step, _)| step).chain([end]);
    for (&(from, stage), to) in entered.zip(left) {
        let Some(class) = class_of(stage) else { continue };
        let (x, right) = (across(f64::from(from)), across(f64::from(to.max(from))) + 1.0);
        _ = write!(
            body,
            r#"<rect class="stage-{class}" x="{x:.1}" y="{:.1}" width="{:.1}" height="{:.1}"><title>{what}</title></rect>"#,
            top + 1.0,
            right - x,
            LANE - 3.0
        );
    }
    let (x, right) = (across(f64::from(seed.at.step)), across(f64::from(end)));
    if seed.planted.blueprint.chars().count() as f64 * CHARACTER + 14.0 < right - x {
        let place = (x + 3.0, top + LANE - 4.0);
        text(body, "name", place, "start", &seed.planted.blueprint);
    }
    let sign = match seed.end {
        SeedEnd::Open => return,
        SeedEnd::Committed(_) => "◆",
        SeedEnd::Pruned { .. } => "✕",
    };
    let at = seed
        .commit_step()
        .filter(|_| matches!(seed.end, SeedEnd::Committed(_)))
        .unwrap_or(end);
    _ = write!(
        body,
        r#"<text class="mark" x="{:.1}" y="{:.1}" text-anchor="middle">{sign}<title>{what}</title></text>"#,
        across(f64::from(at)),
        top + LANE - 3.0
    );
}

/// Text on a seed for the pointer.
fn describe(seed: &SeedLife) -> String {
    let mut text = format!(
        "{} in {}, {} parameters, planted in step {}",
        seed.planted.blueprint, seed.slot, seed.planted.params, seed.at.step
    );
    match &seed.end {
        SeedEnd::Open => {}
        SeedEnd::Committed(_) => _ = write!(text, ", committed in step {}", seed.commit_step().unwrap_or_default()),
        SeedEnd::Pruned { step, data } => {
            _ = write!(text, ", pruned in step {step}: {}", why_ended(Some(data.reason)));
        }
    }
    if let Some(contribution) = seed.worth.contribution {
        _ = write!(text, ", contributes {:+.2} points", contribution.points);
    }
    escaped(&text)
}

/// An episode for the script, which replays it step by step.
fn replayed(trace: &EpisodeTrace, slots: &[SlotId]) -> Value {
    let column = |of: &dyn Fn(&StepPoint) -> f64| shortened(&trace.steps.iter().map(of).collect::<Vec<f64>>());
    let of_slots = slots.iter().map(|slot| {
        let seeds = trace.steps.iter().map(|step| step.seed_in(*slot));
        let stages = seeds.clone();
        let stages = stages.map(|seed| seed.map(|seed| seed.stage.name().to_lowercase()));
        let alphas = seeds.map(|seed| seed.map(|seed| (f64::from(seed.alpha) * 1000.0).round() / 1000.0));
        let lives = trace.seeds.iter().filter(|seed| seed.slot == *slot);
        let lives = lives.map(|seed| json!([seed.at.step, seed.planted.blueprint]));
        json!({
            "slot": slot,
            "stage": stages.collect::<Vec<_>>(),
            "alpha": alphas.collect::<Vec<_>>(),
            "seeds": lives.collect::<Vec<_>>(),
        })
    });
    let decided = trace.steps.iter().map(|step| {
        let decision = step.decision.as_ref()?;
        let thought = decision.probabilities.iter();
        let thought = thought.map(|(op, share)| json!([op_name(*op), (f64::from(*share) * 1000.0).round() / 1000.0]));
        Some(json!({
            "did": decision.words(),
            "refused": decision.blocked,
            "thought": thought.collect::<Vec<_>>(),
            "reason": decision.reason,
        }))
    });
    json!({
        "key": key(trace),
        "name": format!("round {}, env {}", trace.at.round + 1, trace.at.env),
        "steps": trace.steps.iter().map(|step| step.step).collect::<Vec<_>>(),
        "accuracy": column(&|step| f64::from(step.accuracy)),
        "train_accuracy": column(&|step| f64::from(step.train_accuracy)),
        "loss": column(&|step| f64::from(step.loss)),
        "params": trace.steps.iter().map(|step| step.params).collect::<Vec<_>>(),
        "reward": column(&|step| step.decision.as_ref().and_then(|decision| decision.reward).map_or(f64::NAN, f64::from)),
        "value": column(&|step| step.decision.as_ref().and_then(|decision| decision.value).map_or(f64::NAN, f64::from)),
        "slots": of_slots.collect::<Vec<_>>(),
        "decisions": decided.collect::<Vec<_>>(),
    })
}

/// The reason why a seed was pruned, in words. `None` if it was not.
pub const fn why_ended(reason: Option<PruneReason>) -> &'static str {
    match reason {
        None => "the episode was over",
        Some(PruneReason::Policy) => "the controller pruned it",
        Some(PruneReason::GovernorNan) => "its env's loss was not finite",
        Some(PruneReason::GovernorChanceCollapse) => "its env fell back to guessing",
        Some(PruneReason::GovernorDivergence) => "its env's loss diverged",
        Some(PruneReason::GovernorRollback) => "its env was rolled back",
        Some(PruneReason::SeedNonfinite) => "its own numbers were not finite",
        Some(PruneReason::HoldingTimeout) => "it was held for too long",
    }
}
