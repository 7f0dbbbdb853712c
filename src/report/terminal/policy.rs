//! The policy, its last decision in the chosen env, and its rewards.

use std::collections::BTreeSet;

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::View;
use super::parts::{bar, curve, cut, number};
use crate::files::counted;
use crate::report::results;
use crate::report::state::{DecisionPoint, ViewState};
use crate::telemetry::{LearnerUpdate, Num};

/// Width of a number with its name.
const ENTRY: usize = 24;

pub(super) fn policy(view: &View, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width).saturating_sub(ENTRY + 3);
    let mut lines = health(view.state, width);
    let mut current = view.state.episodes.current().into_iter();
    let decided = current.find(|trace| trace.at.env == view.env);
    let decision = decided.and_then(|trace| trace.steps.last()?.decision.as_ref());
    if let Some(decision) = decision {
        lines.extend(thought(decision, view.env));
    }
    if lines.is_empty() {
        lines.push(Line::from("no policy that learns has decided yet"));
    }
    lines
}

/// Its numbers, each with its course over the updates.
fn health(state: &ViewState, width: usize) -> Vec<Line<'static>> {
    let updates: Vec<&LearnerUpdate> = state.updates.iter().map(|(_, update)| update).collect();
    if updates.is_empty() {
        return Vec::new();
    }
    let entry = |name: &str, decimals: usize, of: &dyn Fn(&LearnerUpdate) -> Option<Num>| {
        let values: Vec<f64> = updates
            .iter()
            .map(|update| of(update).map_or(f64::NAN, |value| value.0))
            .collect();
        let last = number(values.last().copied(), decimals);
        Line::from(format!("{:<16}{last:>7} {}", cut(name, 15), curve(&values, width)))
    };
    let mut lines = vec![Line::from(format!(
        "{}, {} skipped",
        counted(state.live.updates(), "update"),
        state.live.skipped_updates
    ))];
    let heads: BTreeSet<&String> = updates
        .iter()
        .flat_map(|update| update.measured.head_entropy_avail.keys())
        .collect();
    lines.push(entry("KL", 4, &|update| update.measured.approx_kl));
    lines.push(entry("clipped", 3, &|update| update.measured.clip_fraction));
    lines.push(entry("critic explains", 2, &|update| {
        update.data?.explained_variance_free
    }));
    lines.push(entry("gradient norm", 2, &|update| update.measured.grad_norm));
    for head in heads {
        let name = format!("entropy {head}");
        lines.push(entry(&name, 2, &|update| {
            update.measured.head_entropy_avail.get(head).copied()
        }));
    }
    lines
}

/// The policy's probabilities of each operation.
fn thought(decision: &DecisionPoint, env: u32) -> Vec<Line<'static>> {
    let refused = decision.blocked.as_ref().map(|why| format!(" (refused: {why})"));
    let refused = refused.unwrap_or_default();
    let value = number(decision.value.map(f64::from), 2);
    let what = format!("env {env}: {}{refused}, value {value}", decision.words());
    let mut lines = vec![Line::from(cut(&what, 200))];
    lines.extend(decision.reason.as_ref().map(|reason| Line::from(cut(reason, 200))));
    lines.extend(decision.probabilities.iter().map(|(op, share)| {
        let (name, share) = (op.name().to_lowercase(), f64::from(*share));
        Line::from(format!("  {name:<17}{:>4.0}% {}", 100.0 * share, bar(share, 12)))
    }));
    lines
}

pub(super) fn rewards(view: &View, area: Rect) -> Vec<Line<'static>> {
    let rounds = &view.state.live.rounds;
    let paid: Vec<f64> = rounds.iter().filter_map(|round| round.reward_mean()).collect();
    let width = usize::from(area.width);
    let mut lines = vec![Line::from(match paid.last() {
        None => "no reward was paid yet".to_owned(),
        Some(last) => format!(
            "an episode of the last round {last:+.2}  {}",
            curve(&paid, width.saturating_sub(40))
        ),
    })];
    let terms = results::terms_by_weight(&view.state.live);
    let most = terms.first().map_or(1.0, |(_, sum)| sum.abs()).max(1e-9);
    lines.extend(terms.into_iter().map(|(name, sum)| {
        let length = (sum.abs() / most * width.saturating_sub(34) as f64).round().max(0.0) as usize;
        let sign = if sum < 0.0 { "-" } else { "+" };
        Line::from(format!("{:<20}{sum:>+8.2} {}", cut(name, 19), sign.repeat(length)))
    }));
    lines
}
