//! Sections of a run's page about growth: the worth of seeds, the reasons why others were pruned, the choices.

use maud::{Markup, html};

use super::chart::Chart;
use super::page::{figure, table};
use super::svg::{Frame, Range};
use super::timeline::{class_of, why_ended};
use crate::files::counted;
use crate::growth::{LifecycleOp, PruneReason};
use crate::report::results;
use crate::report::state::{DecisionPoint, EpisodeTrace, ModalOrder, OpCounts, ViewState};
use crate::report::words::{self, cell, number, op_name, signed};
use crate::telemetry::{Ages, EnvContext, Num, SeedEnd, SeedLife};

/// Committed seeds that a table lists.
const SEEDS: usize = 16;
/// The reason why one seed has different numbers in different places.
const THREE_WORTHS: &str = "A seed's worth is measured in three ways. The bars show what it adds to the host as its only seed. \
     Contributes (± standard error) is what is lost when it alone is taken out; where seeds depend on each other, the \
     contributions sum to more than the whole. Shapley is its share of the whole, a mean over all orders of adding the seeds; \
     the shares sum to the whole.";

/// Explanation of the parts of an accuracy.
const WATERFALL: &str = "Host alone: the host that was trained with the seeds, with all of them off. Then what each seed adds \
                         alone. Together: what they gain, or lose, with each other.";

/// The section about worth. `shown` is the episode whose accuracy is drawn in parts.
pub(super) fn worth(state: &ViewState, shown: Option<&EpisodeTrace>) -> Markup {
    let seeds = results::by_contribution(&state.live);
    let rows = seeds
        .iter()
        .take(SEEDS)
        .map(|seed| Vec::from(results::seed_cells(seed)));
    let planted = state.choices.planted.iter().map(|((slot, blueprint), planted)| {
        vec![
            slot.to_string(),
            blueprint.clone(),
            planted.germinated.to_string(),
            planted.committed.to_string(),
            signed(planted.contribution(), 2),
            planted.pruned.to_string(),
        ]
    });
    html! {
        @if let Some(parts) = shown.and_then(waterfall) { (parts) }
        p.note { (THREE_WORTHS) }
        @if state.choices.planted.is_empty() { p { "No episode with a seed has ended yet." } } @else {
            h3 { "By slot and blueprint" }
            (table(&["slot", "blueprint"], &["germinated", "committed", "contributes, points", "pruned"], planted))
        }
        @if !seeds.is_empty() {
            h3 { "Committed seeds, by what they contribute" }
            (table(&["blueprint", "seed"], &["round", "env", "step", "parameters", "contributes, points", "Shapley"], rows))
            @if seeds.len() > SEEDS { p.note { "and " (seeds.len() - SEEDS) " more" } }
        }
    }
}

/// From the host alone to the whole network, seed by seed.
fn waterfall(trace: &EpisodeTrace) -> Option<Markup> {
    let matrix = trace.matrix.as_ref()?;
    let (host, all) = (matrix.accuracy(0)?, matrix.accuracy(matrix.all_on())?);
    let alone = matrix.seed_ids.iter().enumerate().map(|(player, id)| {
        let seed = trace.seeds.iter().find(|seed| seed.id == *id);
        let name = seed.map(|seed| format!("{} {}", seed.slot, seed.planted.blueprint));
        let name = name.unwrap_or_else(|| id.clone());
        Some((name, matrix.accuracy(1_u64.checked_shl(player as u32)?)? - host))
    });
    let alone = alone.collect::<Option<Vec<(String, f64)>>>()?;
    let together = all - host - alone.iter().map(|(_, gain)| gain).sum::<f64>();
    let mut bars = vec![("host alone".to_owned(), 0.0, host)];
    let mut level = host;
    for (name, gain) in alone.into_iter().chain([("together".to_owned(), together)]) {
        bars.push((name, level, level + gain));
        level += gain;
    }
    bars.push(("all".to_owned(), 0.0, all));
    let width = bars.len() as f64;
    let y = Range::of(bars.iter().flat_map(|(_, from, to)| [*from, *to]));
    let (low, high) = (0.5, width + 0.5);
    let mut frame = Frame::new(Range { low, high }, y.padded(0.08), 240.0, ("", "accuracy, %"));
    for (place, (name, from, to)) in bars.iter().enumerate() {
        let whole = place == 0 || place + 1 == bars.len();
        let class = match () {
            () if whole => "c0",
            () if to < from => "c3",
            () => "c2",
        };
        let what = format!("{:+.2}", to - from);
        frame.bar(place as f64 + 1.0, 0.8, (*from, *to), class, &format!("{name}: {what}"));
        frame.bar_name(place as f64 + 1.0, from.max(*to), name, &what);
    }
    let rows = bars
        .iter()
        .map(|(name, from, to)| vec![name.clone(), format!("{:+.2}", to - from), format!("{to:.2}")]);
    let picture = html! {
        (frame.finish("what the host and each seed add"))
        (table(&["from the left"], &["points", "accuracy, %"], rows))
    };
    let (round, env) = (trace.at.round + 1, trace.at.env);
    let title = format!("From the host alone to the grown network of round {round}, env {env}.");
    Some(figure(&title, WATERFALL, &picture))
}

pub(super) fn pruned(state: &ViewState) -> Markup {
    let ends = &state.live.seed_ends;
    let count = |ages: &Ages| ages.values().sum::<u64>();
    let mut rows: Vec<_> = ends.ends.iter().collect();
    rows.sort_by_key(|(_, ages)| std::cmp::Reverse(count(ages)));
    let rows = rows.into_iter().map(|((stage, reason), ages)| {
        let oldest = ages.keys().next_back().copied().unwrap_or_default();
        let youngest = ages.keys().next().copied().unwrap_or_default();
        vec![
            stage.to_string().to_lowercase(),
            why_ended(*reason).to_owned(),
            count(ages).to_string(),
            format!("{youngest} to {oldest}"),
        ]
    });
    html! {
        @if ends.ends.is_empty() {
            p { (counted(ends.germinated, "seed")) " germinated; none ended uncommitted." }
        } @else {
            (table(&["in stage", "why"], &["seeds", "age, steps"], rows))
        }
        @if !state.choices.uncommitted.is_empty() {
            h3 { "Seed by seed, the newest first" }
            (table(&["seed", "why", "the gate that refused it"], &["round", "age, steps", "worth, points"], state.choices.uncommitted.iter().map(uncommitted)))
            p.note {
                "worth: validation accuracy lost without the seed, when it was last measured; above 0, it helped nevertheless."
            }
        }
    }
}

fn uncommitted((at, seed, decision): &(EnvContext, SeedLife, Option<DecisionPoint>)) -> Vec<String> {
    let reason = match &seed.end {
        SeedEnd::Pruned { data, .. } => Some(data.reason),
        SeedEnd::Open | SeedEnd::Committed(_) => None,
    };
    let mut why = why_ended(reason).to_owned();
    if let (Some(PruneReason::Policy), Some(decision)) = (reason, decision) {
        let mut given = decision.probabilities.iter();
        let given = given.find(|(op, _)| *op == LifecycleOp::Prune);
        why.extend(given.map(|(_, share)| format!(", at a probability of {:.1} %", 100.0 * share)));
        why.extend(decision.reason.iter().map(|reason| format!(": {reason}")));
    }
    let refused = cell(seed.refused.as_ref(), |(gate, check)| {
        let (had, asked) = (number(check.value, 2), number(check.threshold, 2));
        format!("{gate}: {} was {had}, {asked} needed", check.name.replace('_', " "))
    });
    let stage = class_of(seed.last_stage()).unwrap_or_default();
    vec![
        format!("{} {}, {stage}", seed.planted.blueprint, seed.id),
        why,
        refused,
        (at.round + 1).to_string(),
        at.step.saturating_sub(seed.at.step).to_string(),
        words::worth(seed.worth.contribution),
    ]
}

pub(super) fn choices(state: &ViewState) -> Markup {
    let choices = &state.choices;
    let shares = |counts: &OpCounts, op: LifecycleOp| match counts.iter().sum::<u64>() {
        0 => f64::NAN,
        all => 100.0 * counts[op.code()] as f64 / all as f64,
    };
    let used: Vec<LifecycleOp> = LifecycleOp::ALL
        .into_iter()
        .filter(|op| choices.by_step.iter().any(|counts| counts[op.code()] > 0))
        .collect();
    let steps = (1..=choices.by_step.len()).map(|step| step as f64).collect();
    let about = "Operations carried out, by step of an episode, over all rounds.";
    let mut by_step = Chart::new("op_by_step", ("step", "share, %"), steps).titled("What is done when.", about);
    let rounds: Vec<_> = choices.by_round.iter().collect();
    let x = rounds.iter().map(|(round, _)| f64::from(*round) + 1.0).collect();
    let mut by_round = Chart::new("op_by_round", ("round", "share, %"), x)
        .titled("What is done, round by round.", "Operations carried out.");
    for op in used {
        let (of_steps, of_rounds) = (choices.by_step.iter(), rounds.iter().map(|(_, counts)| counts));
        by_step = by_step.stacked(&op_name(op), of_steps.map(|counts| shares(counts, op)).collect());
        by_round = by_round.stacked(&op_name(op), of_rounds.map(|counts| shares(counts, op)).collect());
    }
    html! {
        @if let Some(modal) = state.episodes.modal_order() { (constancy(&modal)) }
        div.grid { (by_step.figure()) (by_round.figure()) }
    }
}

fn constancy(modal: &ModalOrder) -> Markup {
    let share = Num(100.0 * modal.episodes as f64 / modal.of.max(1) as f64);
    html! {
        p {
            b { (modal.episodes) " of " (modal.of) " episodes" } " of the last two rounds (" (number(Some(share), 0)) " %) give the same orders: "
            @if modal.order.is_empty() { "none." } @else { (modal.order) "." }
            @if modal.episodes * 5 >= modal.of * 4 { " A fixed schedule would do the same; " code { "simic-engine eval --against schedules" } " measures it." }
        }
    }
}
