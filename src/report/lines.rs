//! A run in lines: one per event, and one per round, with numbers below each other, in 80 columns, under a header that explains
//! them.

use super::words::{ABSENT, number, short_duration, signed};
use crate::files::counted;
use crate::telemetry::{Event, LiveState, Payload, RoundResult, RunStarted, TaskKind};

/// The runs that have a column.
#[derive(Clone, Copy)]
enum Of {
    All,
    /// Runs that play envs.
    Envs,
    /// Runs whose policy learns.
    Learners,
    /// Runs that train language models.
    Texts,
    /// Runs that learn from recordings.
    Recordings,
}

/// Heads of the columns, and their widths.
const COLUMNS: [(&str, usize, Of); 12] = [
    ("round", 7, Of::All),
    ("mean", 5, Of::Envs),
    ("rolling", 7, Of::Envs),
    ("best", 5, Of::Envs),
    ("perplexity", 10, Of::Texts),
    ("reward", 8, Of::Envs),
    ("loss", 8, Of::Recordings),
    ("entropy", 7, Of::Learners),
    ("KL", 6, Of::Learners),
    ("seeds", 9, Of::Envs),
    ("steps/s", 7, Of::Envs),
    ("left", 6, Of::All),
];

/// Explanation of the heads.
const LEGEND: &str = "accuracy in %: mean of the envs, rolling mean of ten rounds, best of any env
seeds: germinated/committed/pruned; steps/s: of all envs; left: estimated time";
/// The same for runs that learn from recordings.
const OFFLINE_LEGEND: &str =
    "loss: negative log-likelihood of the recorded choices, nats; KL: how far the update moves the policy";

/// The header above the first round.
pub fn header(live: &LiveState) -> Vec<String> {
    let heads = COLUMNS.map(|(head, ..)| head.to_owned());
    let legend = if live.is_offline() { OFFLINE_LEGEND } else { LEGEND };
    let lines = legend.lines().map(String::from);
    lines.chain([aligned(&heads, live)]).collect()
}

/// Findings on the round's hosts, a line for one cause.
pub fn anomaly_lines(round: &RoundResult, live: &LiveState) -> impl Iterator<Item = String> {
    let (number, hosts) = (round.round + 1, round.data.accuracy_env.len() as u64);
    let found = live.anomalies.round.iter();
    found.map(move |(cause, count)| format!("round {number}: {}", count.describe(cause, hosts)))
}

/// `  12/200  54.3    53.8  61.0    +1.92    0.71  0.008     3/1/2     6.4  1h12m`
pub fn round_line(round: &RoundResult, live: &LiveState) -> String {
    let started = live.started.as_ref();
    let total = started.map_or_else(|| "?".into(), |run| run.n_rounds.to_string());
    let (data, growth) = (&round.data, &round.data.growth);
    let update = live.update_of_round(round.round).map(|update| &update.measured);
    let cells = [
        format!("{}/{total}", round.round + 1),
        number(Some(data.accuracy_mean), 1),
        number(data.rolling_accuracy, 1),
        number(Some(data.accuracy_best), 1),
        number(data.perplexity, 2),
        signed(round.reward_mean(), 2),
        number(update.and_then(|update| update.loss_policy), 4),
        number(update.and_then(|update| update.entropy_mean), 2),
        number(update.and_then(|update| update.approx_kl), 4),
        format!("{}/{}/{}", growth.germinated, growth.committed, growth.pruned),
        number(Some(data.perf.env_steps_per_s), 1),
        live.eta_s().map_or_else(|| ABSENT.into(), short_duration),
    ];
    aligned(&cells, live)
}

fn aligned(cells: &[String; COLUMNS.len()], live: &LiveState) -> String {
    let (run, is_offline) = (live.started.as_ref(), live.is_offline());
    let is_shown = |of: Of| match of {
        Of::All => true,
        Of::Envs => !is_offline,
        Of::Learners => run.is_some_and(|run| run.policy_params.is_some()),
        Of::Texts => !is_offline && run.is_some_and(|run| run.task_kind == TaskKind::LanguageModel),
        Of::Recordings => is_offline,
    };
    let shown = COLUMNS.iter().zip(cells).filter(|((.., of), _)| is_shown(*of));
    let cells: Vec<String> = shown.map(|(&(_, width, _), cell)| format!("{cell:>width$}")).collect();
    cells.join(" ")
}

/// The event after round (from 1), step, env and seed. `None` for rows that come every step.
pub fn event_line(event: &Event) -> Option<String> {
    let given = event.message.as_deref();
    let mut message = given.map_or_else(String::new, |message| format!(" ({message})"));
    let what = match &event.payload {
        Payload::Anomaly(anomaly) => {
            let slot = event.slot.filter(|_| event.seed_id.is_none());
            let of = slot.map(|slot| slot.to_string()).or(anomaly.head.clone());
            message = format!(": {}", given.unwrap_or_default());
            format!("{}{}", anomaly.rule, of.map_or_else(String::new, |of| format!(" {of}")))
        }
        Payload::SeedGerminated(seed) => format!("germinated {}", seed.blueprint),
        Payload::SeedStageChanged(seed) => format!("{} -> {}", seed.from, seed.to),
        Payload::AlphaRampStarted(ramp) => {
            let steps = counted(ramp.steps, "step");
            format!("alpha {:.2} -> {:.2} in {steps}", ramp.from.0, ramp.to.0)
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
    let is_anomaly = matches!(event.payload, Payload::Anomaly(_));
    let before = [
        is_anomaly.then(|| format!("{}: ", event.severity.name())),
        event.round.map(|round| format!("round {} ", round + 1)),
        event.step.map(|step| format!("step {step} ")),
        event.env.map(|env| format!("env {env} ")),
        event.seed_id.as_ref().map(|seed_id| format!("{seed_id} ")),
    ];
    let before: String = before.into_iter().flatten().collect();
    Some(format!("{before}{what}{message}"))
}

fn run_line(run: &RunStarted) -> String {
    let (envs, rounds) = (counted(run.n_envs, "env"), counted(run.n_rounds, "round"));
    let played = match run.n_envs {
        0 => format!("{} from recordings", counted(run.n_rounds, "update")),
        _ => format!("{envs}, {rounds} of {} steps", run.max_steps),
    };
    format!("{}: {played}, controller {}", run.task, run.controller)
}

#[cfg(test)]
mod tests;
