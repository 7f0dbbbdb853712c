//! The summary of a run: its result with the uncertainty, comparable results, problems, the next commands, and tables last.
//! Plain text that fits into a terminal, drawn from the live state alone.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use super::results;
use super::table::Table;
use super::words::{filled, number, signed, wrapped};
use crate::files::counted;
use crate::run::size;
use crate::telemetry::{Fallbacks, LiveState, RoundResult};
use uncommitted::uncommitted;

mod uncommitted;

/// Rounds shown in full. Longer runs show the first and the last ones.
const ROUNDS_SHOWN: usize = 10;
/// Committed seeds shown, those that contribute most.
const SEEDS_SHOWN: usize = 5;
/// Reward terms shown.
const TERMS_SHOWN: usize = 4;
/// Width of the label of a line.
const LABEL_WIDTH: usize = 15;

/// The summary of a run whose files are in `directory`, in lines of at most `width` characters, except for those with its path.
pub fn summary(live: &LiveState, directory: &Path, width: usize) -> String {
    let error = live.finished.as_ref().and_then(|run| run.error.as_ref());
    let outcome = [
        error.map(|error| said("stopped by", error, width)),
        result(live, width),
        anomalies(live, width),
        confounders(live, width),
        next(live, directory),
    ];
    let course = [
        best_host(live, width),
        reward_terms(live, width),
        policy_health(live, width),
        precision(live, width),
        fallbacks(live, width),
        throughput(live),
        memory(&live.rounds, width),
        Some(labelled("run directory", &directory.display().to_string())),
    ];
    let lines = [&outcome[..], &course].map(|lines| lines.iter().flatten().map(String::as_str).collect::<String>());
    let lines = lines.into_iter().filter(|lines| !lines.is_empty());
    let mut parts: Vec<String> = headline(live).into_iter().chain(lines).collect();
    if !live.is_offline() {
        parts.extend(rounds_table(&live.rounds, width));
        parts.push(seeds_table(live, width));
    }
    parts.join("\n")
}

fn headline(live: &LiveState) -> Option<String> {
    let run = live.started.as_ref()?;
    let played = match live.is_offline() {
        true => "a policy learns from recordings".into(),
        false => format!("{}, {} steps a round", counted(run.n_envs, "env"), run.max_steps),
    };
    Some(format!("{}: {played}, controller {}\n", run.task, run.controller))
}

/// Lines after a label, indented below each other.
fn labelled(label: &str, lines: &str) -> String {
    let lines = lines.replace('\n', &format!("\n{:LABEL_WIDTH$}", ""));
    format!("{label:<LABEL_WIDTH$}{lines}\n")
}

/// [`labelled`] with whole entries, separated by commas.
fn listed(label: &str, entries: &[String], width: usize) -> String {
    let mut words: Vec<String> = entries.iter().map(|entry| format!("{entry},")).collect();
    if let Some(last) = words.last_mut() {
        last.pop();
    }
    labelled(label, &filled(words.iter().map(String::as_str), width - LABEL_WIDTH))
}

/// [`labelled`] with a sentence.
fn said(label: &str, sentence: &str, width: usize) -> String {
    labelled(label, &wrapped(sentence, width - LABEL_WIDTH))
}

/// Results of the last hosts and of a host alone, and the reason why they cannot be compared.
fn result(live: &LiveState, width: usize) -> Option<String> {
    let best = live.best_episode()?;
    let has_grown = !live.committed.is_empty();
    let how = ["without a committed seed", "with committed seeds alone"][usize::from(has_grown)];
    let reached = match results::average(live) {
        Some(average) => format!(
            "{} {how}, at {:.2}x the host's parameters: validation, mean and its 95 % interval (t) over the last {} hosts of this \
             training; another seed may differ by more",
            average.words(2),
            average.param_ratio,
            average.hosts
        ),
        None => format!("{:.2} % {how}: validation of a single host", best.committed_accuracy()),
    };
    let mut text = said("result", &reached, width);
    // Where nothing grew, the result is that of hosts alone.
    let has_other = has_grown || live.seed_ends.germinated > 0;
    if let Some(still) = live.baseline.as_ref().filter(|_| has_other) {
        let (alone, hosts) = match results::alone(live) {
            Some(alone) => (alone.words(2), counted(alone.hosts, "host")),
            None => (format!("{:.2} %", still.val_accuracy.0), "a single host".into()),
        };
        let control = format!("{alone}: {hosts} trained for as long without seeds");
        text += &said("host alone", &control, width);
    }
    if has_grown {
        let fair = "the host alone is smaller than the grown hosts, so it isn't a fair opponent. Fair ones are a host as large \
                    from the start and the grown forms from fresh weights: run the `eval` below";
        text += &said("to compare", fair, width);
    }
    Some(text)
}

/// The luckiest host of the run, with its commits.
fn best_host(live: &LiveState, width: usize) -> Option<String> {
    let best = live.best_episode().filter(|best| best.has_committed())?;
    let (round, env, of) = (best.at.round + 1, best.at.env, live.episodes_done);
    let test = number(best.data.test_accuracy, 2);
    let (accuracy, ratio) = (best.committed_accuracy(), best.committed_ratio());
    let line = format!(
        "{test} % on the test part, {accuracy:.2} % in validation, at {ratio:.2}x parameters (round {round}, env {env}): the \
         luckiest of {of}"
    );
    Some(said("best host", &line, width))
}

/// Findings of detectors.
fn anomalies(live: &LiveState, width: usize) -> Option<String> {
    let found = live.anomalies.run.iter();
    let found = found.map(|(cause, count)| count.describe(cause, live.episodes_done));
    let found = found.collect::<Vec<_>>().join(", ");
    (!found.is_empty()).then(|| said("anomalies", &format!("{found}; `report` says where"), width))
}

/// Commands for the next steps. They can be copied, so they are broken only where a shell allows it.
fn next(live: &LiveState, directory: &Path) -> Option<String> {
    let run = directory.display();
    let of_grown = match live.committed.is_empty() {
        true => String::new(),
        false => format!(
            "\nsimic-engine export {run} -o best\nsimic-engine eval {run} \\\n    --against widened,from_scratch"
        ),
    };
    (!live.rounds.is_empty()).then(|| labelled("next", &format!("simic-engine report {run}{of_grown}")))
}

fn rounds_table(rounds: &[RoundResult], width: usize) -> Option<String> {
    if rounds.is_empty() {
        return None;
    }
    let is_paid = rounds.iter().any(|round| round.data.paid.is_some());
    let mut columns = vec!["round", "mean %"];
    let is_text = rounds.iter().any(|round| round.data.perplexity.is_some());
    columns.extend(is_text.then_some("perplexity"));
    columns.extend(is_paid.then_some("reward"));
    // Metrics in the order of their names. A plugin that was added later has measured the later rounds.
    let own: BTreeSet<&str> = rounds
        .iter()
        .flat_map(|round| round.data.metrics.keys().map(String::as_str))
        .collect();
    columns.extend(&own);
    columns.extend(["germinated", "committed", "pruned", "rollbacks"]);
    let skipped = rounds.len().saturating_sub(ROUNDS_SHOWN);
    let head = if skipped > 0 { ROUNDS_SHOWN / 2 } else { 0 };
    let row = |round: &RoundResult| {
        let mut cells = vec![
            (round.round + 1).to_string(),
            format!("{:.2}", round.data.accuracy_mean.0),
        ];
        cells.extend(is_text.then(|| number(round.data.perplexity, 2)));
        cells.extend(is_paid.then(|| signed(round.reward_mean(), 2)));
        cells.extend(own.iter().map(|&name| number(round.data.metrics.get(name).copied(), 2)));
        cells.extend([
            round.data.growth.germinated.to_string(),
            round.data.growth.committed.to_string(),
            round.data.growth.pruned.to_string(),
            round.rollbacks.to_string(),
        ]);
        cells
    };
    let gap = (skipped > 0).then(|| vec!["…".into()]);
    let rows = rounds[..head].iter().map(row).chain(gap);
    let rows = rows.chain(rounds[head + skipped..].iter().map(row));
    let text = Table::of(&[], &columns, rows).render_within(width, &[]);
    let meaning = match is_text {
        true => "share of validation tokens predicted in the last step; perplexity: exp of the mean loss",
        false => "validation accuracy of the envs in the last step",
    };
    Some(format!("{text}  mean: {meaning}\n"))
}

/// Precision lower than f32 in which hosts were trained, and its cost.
fn precision(live: &LiveState, width: usize) -> Option<String> {
    let run = live.started.as_ref()?;
    let mut entries = vec![run.amp_dtype.clone()?];
    let mut scaled = live.rounds.iter().filter_map(|round| round.data.amp.as_ref());
    let skipped: u64 = scaled.clone().flat_map(|scales| &scales.skipped).sum();
    let last = scaled.next_back().into_iter().flat_map(|scales| &scales.scale);
    let range = last.fold(None, |range: Option<(f64, f64)>, scale| {
        let (least, most) = range.unwrap_or((scale.0, scale.0));
        Some((least.min(scale.0), most.max(scale.0)))
    });
    if let Some((least, most)) = range {
        entries.push(format!("{skipped} host updates skipped"));
        entries.push(format!("last loss scales {least} to {most}"));
    }
    Some(listed("precision", &entries, width))
}

/// Batches that were not computed as they were meant to be.
fn fallbacks(live: &LiveState, width: usize) -> Option<String> {
    let mut all = Fallbacks::default();
    let data = live.rounds.iter().filter_map(|round| round.data.fallbacks);
    data.for_each(|of_round| all += of_round);
    let all = all.any()?;
    let entries = [
        format!("{} batches by libtorch's operators", all.kernel),
        format!("{} in f32", all.autocast),
        format!("{} not as CUDA graphs", all.graph),
    ];
    Some(listed("fallbacks", &entries, width))
}

/// Caveats for readers of the numbers.
fn confounders(live: &LiveState, width: usize) -> Option<String> {
    let entries = live.confounders.entries();
    (!entries.is_empty()).then(|| listed("caveats", &entries, width))
}

/// `reward terms   attribution +8.10, pbrs +2.00, 3 others -0.20`: those that weigh most.
fn reward_terms(live: &LiveState, width: usize) -> Option<String> {
    let mut terms = results::terms_by_weight(live);
    let rest = terms.split_off(TERMS_SHOWN.min(terms.len()));
    let mut entries: Vec<String> = terms.iter().map(|(name, mean)| format!("{name} {mean:+.2}")).collect();
    if !rest.is_empty() {
        let sum: f64 = rest.iter().map(|(_, mean)| mean).sum();
        entries.push(format!("{} others {sum:+.2}", rest.len()));
    }
    (!entries.is_empty()).then(|| listed("reward terms", &entries, width))
}

/// The course of learning.
fn policy_health(live: &LiveState, width: usize) -> Option<String> {
    let update = live.latest_update()?;
    let skipped = match live.skipped_updates {
        0 => String::new(),
        count => format!(" ({count} skipped)"),
    };
    let doubt = match update.data {
        Some(data) if data.ev_low_return_variance => " (returns hardly vary)",
        _ => "",
    };
    let mut policy = vec![counted(live.updates(), "update") + &skipped];
    policy.extend(learning_curve(&live.rounds));
    let mut last = vec![
        format!("entropy {}", number(update.measured.entropy_mean, 2)),
        format!("KL {}", number(update.measured.approx_kl, 4)),
        match live.is_offline() {
            true => format!(
                "loss {}, held out {}",
                number(update.measured.loss_policy, 4),
                number(update.held_out_nll, 4)
            ),
            false => format!("clip fraction {}", number(update.measured.clip_fraction, 2)),
        },
        format!(
            "explained variance where there was a choice {}{doubt}",
            number(update.data.and_then(|data| data.explained_variance_free), 2)
        ),
    ];
    if !update.update_performed {
        last.push(format!("not performed: {}", update.skip_reason.describe()));
    }
    Some(listed("policy", &policy, width) + &listed("last update", &last, width))
}

fn learning_curve(rounds: &[RoundResult]) -> Vec<String> {
    let Some(learning) = results::learning(rounds) else {
        return Vec::new();
    };
    let (reward, accuracy) = (learning.reward, learning.accuracy);
    let rewards = format!("reward {:+.2} -> {:+.2}", reward[0], reward[1]);
    match learning.rounds {
        1 => vec![rewards],
        rounds => vec![
            format!("first to last {rounds} rounds: {rewards}"),
            format!("accuracy {:.1} -> {:.1} %", accuracy[0], accuracy[1]),
        ],
    }
}

fn seeds_table(live: &LiveState, width: usize) -> String {
    let seeds = &live.committed;
    if seeds.is_empty() {
        return uncommitted(live, width);
    }
    let by_contribution = results::by_contribution(live);
    let rows = by_contribution.iter().take(SEEDS_SHOWN).map(|seed| {
        let [blueprint, id, round, env, step, params, contributes, shapley] = results::seed_cells(seed);
        vec![id, blueprint, env, round, step, params, contributes, shapley]
    });
    let numbers = ["env", "round", "step", "params", "contributes", "Shapley"];
    let mut text = Table::of(&["committed seed", "blueprint"], &numbers, rows).render_within(width, &[]);
    if seeds.len() > SEEDS_SHOWN {
        _ = writeln!(text, "  … of {} in all (see events.jsonl)", seeds.len());
    }
    text.push_str("  contributes: validation accuracy lost without it, points ± standard error,\n");
    text.push_str("  when it was last measured\n");
    text
}

fn throughput(live: &LiveState) -> Option<String> {
    let speed = live.env_steps_per_s().zip(live.samples_per_s());
    let (steps, samples) = speed.filter(|_| !live.is_offline())?;
    let finished = live.finished.as_ref();
    let wall = finished.map_or_else(String::new, |run| format!(" in {:.1} s", run.wall_s.0));
    let rates = format!("{steps:.1} env-steps/s, {samples:.0} training samples/s{wall}");
    Some(labelled("throughput", &rates))
}

/// `process 1.2 GiB, cuda:0 9.3 GiB`: the most of any round.
fn memory(rounds: &[RoundResult], width: usize) -> Option<String> {
    let most = results::memory(rounds).into_iter();
    let entries = most.map(|(place, bytes)| format!("{place} {}", size(bytes.into())));
    let entries: Vec<String> = entries.collect();
    (!entries.is_empty()).then(|| listed("memory", &entries, width))
}

#[cfg(test)]
mod tests;
