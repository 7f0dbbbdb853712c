//! The line of a round: numbers below each other, in 80 columns, under a header that says what they are.

use std::time::Duration;

use crate::telemetry::TaskKind;
use crate::telemetry::live::{LiveState, RoundResult};

/// What was not measured.
const ABSENT: &str = "—";

/// Heads of the columns, and how wide they are.
const COLUMNS: [(&str, usize); 12] = [
    ("round", 7),
    ("mean", 5),
    ("rolling", 7),
    ("best", 5),
    (PERPLEXITY, 10),
    ("reward", 8),
    (LOSS, 8),
    (ENTROPY, 7),
    (KL, 6),
    ("seeds", 9),
    ("steps/s", 7),
    ("left", 6),
];
/// Columns of runs whose policy learns.
const ENTROPY: &str = "entropy";
const KL: &str = "KL";

/// Column of runs that learn from recordings.
const LOSS: &str = "loss";
/// Columns of runs that play envs.
const OF_ENVS: [&str; 6] = ["mean", "rolling", "best", "reward", "seeds", "steps/s"];
/// What the heads of runs that learn from recordings do not say themselves.
const OFFLINE_LEGEND: &str =
    "loss: negative log-likelihood of what was recorded, nats; KL: by how far the update moves the policy";

/// Column of runs that train language models.
const PERPLEXITY: &str = "perplexity";

/// What the heads do not say themselves.
const LEGEND: [&str; 2] = [
    "accuracy in %: mean of the envs, rolling mean of ten rounds, best of any env",
    "seeds: germinated/committed/pruned; steps/s: of all envs; left: estimated time",
];

/// The header above the first round.
pub fn header(live: &LiveState) -> Vec<String> {
    let heads = COLUMNS.map(|(head, _)| head.to_owned());
    let legend = match live.is_offline() {
        true => vec![OFFLINE_LEGEND.to_owned()],
        false => LEGEND.map(String::from).into(),
    };
    legend.into_iter().chain([aligned(&heads, live)]).collect()
}

/// What was found of the round's hosts, a line for one cause.
pub fn anomaly_lines(round: &RoundResult, live: &LiveState) -> impl Iterator<Item = String> {
    let (number, hosts) = (round.round + 1, round.data.accuracy_env.len() as u64);
    let found = live.anomalies.round.iter();
    found.map(move |(cause, count)| format!("round {number}: {}", count.describe(cause, hosts)))
}

/// `  12/200  54.3    53.8  61.0    +1.92    0.71  0.008     3/1/2     6.4  1h12m`
pub fn round_line(round: &RoundResult, live: &LiveState) -> String {
    let total = live
        .started
        .as_ref()
        .map_or_else(|| "?".into(), |run| run.n_rounds.to_string());
    let data = &round.data;
    let update = live.update_of_round(round.round);
    let growth = &data.growth;
    let cells = [
        format!("{}/{total}", round.round + 1),
        format!("{:.1}", data.accuracy_mean.0),
        number(data.rolling_accuracy.map(|accuracy| accuracy.0), 1),
        format!("{:.1}", data.accuracy_best.0),
        number(data.perplexity.map(|perplexity| perplexity.0), 2),
        round
            .reward_mean()
            .map_or_else(|| ABSENT.into(), |reward| format!("{reward:+.2}")),
        number(update.and_then(|update| Some(update.measured.loss_policy?.0)), 4),
        number(update.and_then(|update| Some(update.measured.entropy_mean?.0)), 2),
        number(update.and_then(|update| Some(update.measured.approx_kl?.0)), 4),
        format!("{}/{}/{}", growth.germinated, growth.committed, growth.pruned),
        format!("{:.1}", data.perf.env_steps_per_s.0),
        live.eta_s().map_or_else(|| ABSENT.into(), short_duration),
    ];
    aligned(&cells, live)
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| ABSENT.into(), |value| format!("{value:.decimals$}"))
}

fn aligned(cells: &[String; COLUMNS.len()], live: &LiveState) -> String {
    let learns = live.started.as_ref().is_some_and(|run| run.policy_params.is_some());
    let is_text = live
        .started
        .as_ref()
        .is_some_and(|run| run.task_kind == TaskKind::LanguageModel);
    let columns = COLUMNS.iter().zip(cells);
    let shown = columns.filter(|((head, _), _)| match *head {
        ENTROPY | KL => learns,
        LOSS => live.is_offline(),
        PERPLEXITY => is_text && !live.is_offline(),
        head if OF_ENVS.contains(&head) => !live.is_offline(),
        _ => true,
    });
    let cells: Vec<String> = shown.map(|(&(_, width), cell)| format!("{cell:>width$}")).collect();
    cells.join(" ")
}

/// `42s`, `3m05s`, `1h12m`.
pub fn short_duration(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds.round())
        .unwrap_or(Duration::MAX)
        .as_secs();
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests;
