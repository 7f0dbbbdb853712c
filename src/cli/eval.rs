//! `eval`: play a frozen policy against baselines on the same episodes, and say how it did.

use std::fmt::Write;
use std::path::PathBuf;

use serde::Serialize;

use super::output::{show, show_json, tell};
use super::prepare::{Rejection, explain_if_moved, prepare};
use super::{Context, EvalOptions, Outcome, RunOptions};
use crate::checkpoint::FrozenPolicy;
use crate::compare::{Candidate, Comparison, ControllerSummary, Episodes, Estimate, Paired, Played, Summary, play};
use crate::controller::DecideMode;
use crate::engine::SetupError;
use crate::env::Experiment;
use crate::record::Table;
use crate::scenario::Catalog;
use crate::telemetry::BigInteger;

/// Baselines unless others are asked for.
const BASELINES: [&str; 3] = ["heuristic", "random", "wait"];
/// The controller that saved policies belong to; among the baselines it starts from fresh weights.
const LEARNED: &str = "actor_critic";
/// Episodes of an env unless a number is asked for.
const EPISODES_PER_ENV: u32 = 10;
const ABSENT: &str = "—";

/// Plays all episodes with every candidate; the tables go to stdout.
pub fn eval(options: &EvalOptions, context: &Context) -> Result<Outcome, Rejection> {
    let plan = EvaluationPlan::prepare(options, context)?;
    let (mut played, mut notes) = (Vec::new(), Vec::new());
    for entrant in &plan.entrants {
        let mut by_seed = Vec::new();
        for episodes in &plan.episodes {
            if !context.global.quiet {
                let (name, count, seed) = (&entrant.name, episodes.count(), episodes.seed);
                tell(format_args!("{name} plays {count} episodes, seed {seed}"));
            }
            let experiment = plan.experiment.clone();
            match play(experiment, context.extend, &entrant.candidate, episodes) {
                Ok(episodes) => {
                    if notes.is_empty() {
                        notes.extend(plan.note_on_data(&episodes.data_hash));
                    }
                    by_seed.push(episodes.outcomes);
                }
                Err(error) => {
                    tell(format_args!("error: {}: {error}", entrant.name));
                    if error.position.round.is_some() {
                        return Ok(Outcome::Failed);
                    }
                    explain_if_moved(plan.experiment.folder.as_deref());
                    return Ok(Outcome::Rejected);
                }
            }
        }
        played.push(Played {
            name: entrant.name.clone(),
            is_policy: entrant.candidate.policy.is_some(),
            episodes: by_seed,
        });
    }
    let Experiment { scenario, task, .. } = plan.experiment;
    let first = &plan.episodes[0];
    let evaluation = Evaluation {
        scenario: scenario.name,
        task: task.name,
        policy: plan.policy,
        notes,
        steps: task.max_steps,
        first_round: first.rounds.start,
        rounds: first.rounds.len(),
        envs: first.envs,
        seeds: plan.episodes.iter().map(|episodes| BigInteger(episodes.seed)).collect(),
        comparison: Comparison::new(played, first.seed),
    };
    Ok(if context.global.json {
        show_json(&evaluation)
    } else {
        show(evaluation.to_text())
    })
}

/// A candidate under the name that the tables print.
struct Entrant {
    name: String,
    candidate: Candidate,
}

/// Who plays what.
struct EvaluationPlan {
    experiment: Experiment,
    policy: PathBuf,
    /// What the policy was trained on; `None` for one without its run.
    trained_on: Option<String>,
    entrants: Vec<Entrant>,
    /// One entry per seed, at least one.
    episodes: Vec<Episodes>,
}

impl EvaluationPlan {
    fn prepare(options: &EvalOptions, context: &Context) -> Result<Self, Rejection> {
        let policy = FrozenPolicy::find(&options.run).map_err(|error| Rejection::Usage(error.to_string()))?;
        let entrants = entrants(options, &policy, &context.catalog)?;
        let origin = policy.origin.as_ref();
        let scenario = options
            .scenario
            .clone()
            .or(origin.map(|origin| origin.scenario.clone()));
        let Some(scenario) = scenario else {
            let message = format!(
                "{} is a policy without its run: say by --scenario FILE what it decides in",
                policy.saved.path().display()
            );
            return Err(Rejection::Usage(message));
        };
        let run_options = RunOptions {
            scenario: Some(scenario),
            sets: options.sets.clone(),
            ..RunOptions::default()
        };
        let prepared = prepare(&run_options, context)?;
        let run = &prepared.loaded.scenario.run;
        // Rounds that the policy was not trained in.
        let first_round = run.rounds.max(origin.map_or(0, |origin| origin.rounds));
        let envs = run.n_envs;
        let per_env = |envs: usize| u32::try_from(envs).unwrap_or(u32::MAX).saturating_mul(EPISODES_PER_ENV);
        let count = options.episodes.unwrap_or(per_env(envs));
        let seeds = if options.seeds.is_empty() {
            vec![run.seed]
        } else {
            options.seeds.clone()
        };
        Ok(Self {
            experiment: prepared.experiment(context.threads()).map_err(SetupError::from)?,
            policy: policy.saved.path().into(),
            trained_on: policy.origin.map(|origin| origin.data_hash),
            entrants,
            episodes: seeds
                .into_iter()
                .map(|seed| Episodes::at_least(count, seed, first_round, envs))
                .collect(),
        })
    }

    /// What is to be said where the data that are played on are not those that the policy was trained on.
    fn note_on_data(&self, played_on: &str) -> Option<String> {
        let trained_on = self.trained_on.as_ref().filter(|trained_on| *trained_on != played_on)?;
        Some(format!(
            "the policy was trained on other data: the hash of its data set was {trained_on}, here it is {played_on}"
        ))
    }
}

/// The policy in the modes asked for, both without a wish, then the baselines.
fn entrants(options: &EvalOptions, policy: &FrozenPolicy, catalog: &Catalog) -> Result<Vec<Entrant>, Rejection> {
    let names: Vec<&str> = match &options.controllers {
        Some(names) => names.iter().map(String::as_str).collect(),
        None => BASELINES.to_vec(),
    };
    for (index, name) in names.iter().enumerate() {
        if !catalog.controllers.iter().any(|known| known.name == *name) {
            let known: Vec<&str> = catalog.controllers.iter().map(|known| known.name.as_str()).collect();
            let message = format!("no controller is called `{name}`; there are: {}", known.join(", "));
            return Err(Rejection::Usage(message));
        }
        if names[..index].contains(name) {
            return Err(Rejection::Usage(format!("--controllers names `{name}` twice")));
        }
    }
    let asks = options.greedy || options.sample;
    let modes = [
        (DecideMode::Greedy, "policy (greedy)", options.greedy || !asks),
        (DecideMode::Sample, "policy (sampled)", options.sample || !asks),
    ];
    let policies = modes
        .into_iter()
        .filter(|(.., wanted)| *wanted)
        .map(|(mode, name, _)| Entrant {
            name: name.into(),
            candidate: Candidate {
                controller: LEARNED.into(),
                policy: Some(policy.saved.clone()),
                mode,
            },
        });
    let baselines = names.into_iter().map(|name| Entrant {
        name: match name {
            LEARNED => format!("{LEARNED} (untrained)"),
            other => other.into(),
        },
        candidate: Candidate {
            controller: name.into(),
            policy: None,
            mode: DecideMode::Sample,
        },
    });
    Ok(policies.chain(baselines).collect())
}

/// Everything that is printed.
#[derive(Serialize)]
struct Evaluation {
    scenario: String,
    task: String,
    policy: PathBuf,
    /// What readers of the numbers should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Of an episode.
    steps: u32,
    first_round: u32,
    rounds: usize,
    envs: usize,
    seeds: Vec<BigInteger>,
    #[serde(flatten)]
    comparison: Comparison,
}

impl Evaluation {
    fn to_text(&self) -> String {
        let seeds: Vec<String> = self.seeds.iter().map(|seed| seed.0.to_string()).collect();
        let mut text = format!(
            "{} on {}: {} rounds of {} envs x {} steps for every controller, from round {} on, seed {}\npolicy {}\n",
            self.scenario,
            self.task,
            self.rounds,
            self.envs,
            self.steps,
            self.first_round + 1,
            seeds.join(", "),
            self.policy.display()
        );
        for note in &self.notes {
            _ = writeln!(text, "note: {note}");
        }
        for table in [self.accuracies(), self.worths(), self.differences()] {
            _ = write!(text, "\n{}", table.render());
        }
        text.push_str(
            "\ncommitted, test: the host with its committed seeds alone, on images that nothing else reads\n",
        );
        if self.comparison.unmeasured > 0 {
            _ = writeln!(
                text,
                "\n{} episodes are left out: a network was rolled back before it was measured",
                self.comparison.unmeasured
            );
        }
        text
    }

    fn accuracies(&self) -> Table {
        let mut table = Table::new(
            &["final validation accuracy, %"],
            &["mean", "95 % interval", "IQM", "95 % interval", "committed, test"],
        );
        for player in &self.comparison.players {
            let test = player.test_accuracy;
            let mut row = summary_row(player, &player.accuracy);
            row.push(test.map_or_else(|| ABSENT.into(), |accuracy| format!("{accuracy:.2}")));
            table.push(row);
        }
        table
    }

    fn worths(&self) -> Table {
        let mut table = Table::new(
            &["accuracy minus rent, points"],
            &["mean", "95 % interval", "IQM", "95 % interval", "reward", "params"],
        );
        for player in &self.comparison.players {
            let mut row = summary_row(player, &player.accuracy_minus_rent);
            row.push(format!("{:.2}", player.reward.mean.value));
            row.push(format!("{:.2}x", player.param_ratio.mean.value));
            table.push(row);
        }
        table
    }

    fn differences(&self) -> Table {
        let mut table = Table::new(
            &["paired difference"],
            &[
                "accuracy",
                "95 % interval",
                "wins",
                "minus rent",
                "95 % interval",
                "wins",
            ],
        );
        for difference in &self.comparison.differences {
            let mut row = vec![format!("{} - {}", difference.policy, difference.baseline)];
            for paired in [&difference.accuracy, &difference.accuracy_minus_rent] {
                let mean = &paired.difference.mean;
                row.extend([format!("{:+.2}", mean.value), interval(mean), wins(paired)]);
            }
            table.push(row);
        }
        table
    }
}

fn summary_row(player: &ControllerSummary, summary: &Summary) -> Vec<String> {
    let mut row = vec![player.name.clone()];
    for estimate in [&summary.mean, &summary.iqm] {
        row.extend([format!("{:.2}", estimate.value), interval(estimate)]);
    }
    row
}

/// `51.20 … 53.85`
fn interval(estimate: &Estimate) -> String {
    estimate.interval.map_or_else(
        || ABSENT.into(),
        |interval| format!("{:.2} … {:.2}", interval.low, interval.high),
    )
}

fn wins(paired: &Paired) -> String {
    let pairs = paired.wins + paired.ties + paired.losses;
    format!("{} of {pairs}", paired.wins)
}
