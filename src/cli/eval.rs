//! `eval`: play a frozen policy against baselines on the same episodes, and say how it did.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use bevy_ecs::world::World;
use serde::Serialize;

use super::eval_decisions::{PolicyCommits, seed_table, step_table};
use super::eval_progress::{EvalProgress, Work};
use super::evaluated::{Evaluated, PlayedCheckpoint, Request, note_on_data};
use super::output::{refuse, show, show_json, tell, tell_error, width};
use super::prepare::explain_if_moved;
use super::rejection::Rejection;
use super::{Context, EvalOptions, Outcome};
use crate::checkpoint::FrozenPolicy;
use crate::compare::{
    Blind, Candidate, Comparison, ControllerSummary, Difference, EpisodeOutcome, Episodes, Estimate, Paired, Played,
    Summary, play_until,
};
use crate::controller::SavedFolder;
use crate::controls::Search;
use crate::env::Experiment;
use crate::growth::SlotId;
use crate::health::{AtPath, EngineError, FileError};
use crate::policy::DecideMode;
use crate::report::{ABSENT, Table, wrapped};
use crate::run::{StopSignal, stop_on_signals};
use crate::scenario::Catalog;
use crate::storage::replace_synced;
use crate::telemetry::BigInteger;

/// Baselines unless others are asked for.
const BASELINES: [&str; 4] = ["heuristic", "random", "wait", BLIND];
/// What a learned policy usually decides, played without looking.
const BLIND: &str = "blind";
/// The controller that saved policies belong to; among the baselines it starts from fresh weights.
const LEARNED: &str = "actor_critic";
/// Seeds that the head of the tables names.
const SEEDS_SHOWN: usize = 8;
/// Below the tables.
const LEGEND: [&str; 5] = [
    "intervals: over the episodes of this one training; how another training would end is a matter for several of them \
     (`sweep`, then `compare`)",
    "committed, test %: the host with its committed seeds alone, on images that nothing else reads",
    "GMAC: billions of multiply-accumulates of training and validation",
    "lost: seeds that no order removed: held for too long, not finite, rolled back",
    "no commit, %: of the episodes; at step: mean of those in which it happened",
];
/// `--controllers none`: no baselines.
const NOBODY: [&str; 1] = ["none"];

/// Plays all episodes with every candidate; the tables go to stdout. Whoever stops it sees how things stand.
pub fn eval(options: &EvalOptions, context: &Context) -> Result<Outcome, Rejection> {
    let mut plan = EvaluationPlan::prepare(options, context)?;
    let stop = StopSignal::default();
    stop_on_signals(stop.clone()).map_err(|error| Rejection::Usage(format!("no handlers for signals: {error}")))?;
    if let Err(error) = plan.take_blind(&stop, context) {
        return Ok(plan.told(BLIND, &error, context));
    }
    let mut progress = EvalProgress::begin(plan.work(), context);
    let (mut standings, mut notes) = (Standings::new(&plan), Vec::new());
    // Seed by seed: what is played until somebody stops it compares everybody.
    'playing: for episodes in &plan.episodes {
        for (index, entrant) in plan.entrants.iter().enumerate() {
            progress.enter(&entrant.name, episodes.seed);
            let (mut experiment, candidate) = (plan.experiment.clone(), &entrant.candidate);
            if let (BLIND, Some(blind)) = (entrant.name.as_str(), &plan.blind) {
                experiment.scenario.policy.schedule = blind.schedule.clone();
            }
            let step = |_: &mut World| progress.step(episodes.envs);
            let played = match play_until(experiment, context.extension, candidate, episodes, &stop, step) {
                Ok(played) => played,
                Err(error) => {
                    progress.clear();
                    return Ok(plan.told(&entrant.name, &error, context));
                }
            };
            if stop.is_requested() && played.outcomes.len() < episodes.count() {
                break 'playing;
            }
            if notes.is_empty() {
                let trained_on = plan.trained_on.as_deref();
                notes.extend(trained_on.and_then(|trained_on| note_on_data(trained_on, &played.data_hash)));
            }
            progress.leave(&played.outcomes);
            standings.0[index].push(played.outcomes);
        }
    }
    progress.clear();
    let played = standings.comparable(&plan);
    let stopped = stop.requested().filter(|_| !plan.is_complete(&played));
    if stopped.is_some() {
        notes.insert(0, plan.progress_note(&played));
    }
    if played.is_empty() {
        tell("stopped before anybody had played all episodes of a seed: there is nothing to compare");
        return Ok(stopped.map_or(Outcome::Done, Outcome::Stopped));
    }
    let shown = plan.print(played, notes, stopped.is_none(), context);
    Ok(stopped.map_or(shown, Outcome::Stopped))
}

/// What every entrant has played, in the plan's order: the episodes of each seed that it has come to the end of.
struct Standings(Vec<Vec<Vec<EpisodeOutcome>>>);

impl Standings {
    fn new(plan: &EvaluationPlan) -> Self {
        Self(vec![Vec::new(); plan.entrants.len()])
    }

    /// The seeds that everybody has played; while the first is played, those who are done with it.
    fn comparable(self, plan: &EvaluationPlan) -> Vec<Played> {
        let by_all = self.0.iter().map(Vec::len).min().unwrap_or_default();
        let seeds = by_all.max(1);
        let played = plan.entrants.iter().zip(self.0);
        played
            .filter(|(_, by_seed)| by_seed.len() >= seeds)
            .map(|(entrant, mut by_seed)| {
                by_seed.truncate(seeds);
                Played {
                    name: entrant.name.clone(),
                    is_policy: entrant.is_compared,
                    episodes: by_seed,
                }
            })
            .collect()
    }
}

/// A candidate under the name that the tables print.
struct Entrant {
    name: String,
    /// With the others, which are its baselines.
    is_compared: bool,
    candidate: Candidate,
}

/// Who plays what.
struct EvaluationPlan {
    experiment: Experiment,
    policy: PathBuf,
    checkpoint: Option<PlayedCheckpoint>,
    /// Where the outcome is written as well.
    save: Option<PathBuf>,
    /// What the policy was trained on; `None` for one without its run.
    trained_on: Option<String>,
    entrants: Vec<Entrant>,
    /// `None` until it is taken, and if nobody is blind.
    blind: Option<Blind>,
    /// One entry per seed, at least one.
    episodes: Vec<Episodes>,
    /// That the run of the policy was played at, with its training.
    env_steps_per_s: Option<f64>,
}

impl EvaluationPlan {
    fn prepare(options: &EvalOptions, context: &Context) -> Result<Self, Rejection> {
        let found = Evaluated::find(
            &Request {
                run: &options.run,
                out: options.out.as_deref(),
                scenario: options.scenario.as_deref(),
                sets: &options.sets,
                from: options.from,
                episodes: options.episodes,
                seeds: &options.seeds,
            },
            context,
        )?;
        let own = &found.experiment.scenario.policy.controller;
        let entrants = entrants(options, &found.policy, own, &context.catalog)?;
        let checkpoint = found.checkpoint();
        let FrozenPolicy { saved, origin } = found.policy;
        Ok(Self {
            entrants,
            blind: None,
            checkpoint,
            policy: saved.map_or(found.place, |saved| saved.path().into()),
            save: options.save.clone(),
            trained_on: origin.map(|origin| origin.data_hash),
            env_steps_per_s: found.status.and_then(|status| Some(status.env_steps_per_s?.0)),
            episodes: found.episodes,
            experiment: found.experiment,
        })
    }

    /// Has the policy play a round on hosts that nobody is evaluated on, if its decisions are to be played blindly.
    fn take_blind(&mut self, stop: &StopSignal, context: &Context) -> Result<(), EngineError> {
        let saved = self
            .entrants
            .iter()
            .find_map(|entrant| entrant.candidate.policy.clone());
        let blind = self.entrants.iter_mut().find(|entrant| entrant.name == BLIND);
        let (Some(blind), Some(saved)) = (blind, saved) else {
            return Ok(());
        };
        let run = &self.experiment.scenario.run;
        let evaluated: Vec<u64> = self.episodes.iter().map(|episodes| episodes.seed).collect();
        let first = self.episodes[0].rounds.start;
        let episodes = Episodes {
            seed: Search::seed_beside(run.seed, &evaluated),
            rounds: first..first.saturating_add(1),
            envs: run.n_envs,
        };
        let taken = Blind::of(self.experiment.clone(), context.extension, &saved, &episodes, stop)?;
        blind.candidate.controller = taken.controller().into();
        self.blind = Some(taken);
        Ok(())
    }

    /// Says why somebody could not play.
    fn told(&self, name: &str, error: &EngineError, context: &Context) -> Outcome {
        if error.position.round.is_some() {
            tell_error(context.global, format_args!("{name}: {error}"));
            return Outcome::Failed;
        }
        refuse(context.global, format_args!("{name}: {error}"));
        explain_if_moved(self.experiment.folder.as_deref());
        Outcome::Rejected
    }

    fn work(&self) -> Work {
        Work {
            entrants: self.entrants.len(),
            seeds: self.episodes.len(),
            // As many under every seed.
            episodes: self.episodes.first().map_or(0, Episodes::count),
            steps: self.experiment.task.max_steps,
            env_steps_per_s: self.env_steps_per_s,
        }
    }

    fn is_complete(&self, played: &[Played]) -> bool {
        let has_all_seeds = |player: &Played| player.episodes.len() == self.episodes.len();
        played.len() == self.entrants.len() && played.iter().all(has_all_seeds)
    }

    /// How much of the plan was played until it was stopped.
    fn progress_note(&self, played: &[Played]) -> String {
        let seeds = played.first().map_or(0, |player| player.episodes.len());
        format!(
            "incomplete: stopped after {} of {} controllers and {seeds} of {} seeds",
            played.len(),
            self.entrants.len(),
            self.episodes.len()
        )
    }

    fn print(self, played: Vec<Played>, notes: Vec<String>, is_complete: bool, context: &Context) -> Outcome {
        let Experiment {
            scenario, task, layout, ..
        } = self.experiment;
        let first = &self.episodes[0];
        let seeds = played.first().map_or(0, |player| player.episodes.len());
        let price = scenario.reward.price();
        let comparison = Comparison::new(played, first.seed, price);
        let slots: Vec<SlotId> = layout.slots().iter().map(|spec| spec.slot).collect();
        let learned = self
            .entrants
            .iter()
            .filter(|entrant| entrant.candidate.policy.is_some());
        let commits = learned.filter_map(|entrant| {
            let mut players = comparison.players.iter();
            PolicyCommits::of(players.find(|player| player.name == entrant.name)?, &slots)
        });
        let evaluation = Evaluation {
            scenario: scenario.name,
            task: task.name,
            policy: self.policy,
            checkpoint: self.checkpoint,
            is_complete,
            notes,
            steps: task.max_steps,
            first_round: first.rounds.start,
            rounds: first.rounds.len(),
            envs: first.envs,
            seeds: self.episodes[..seeds]
                .iter()
                .map(|episodes| BigInteger(episodes.seed))
                .collect(),
            commits: commits.collect(),
            price,
            blind: self.blind,
            comparison,
        };
        if let Some(place) = &self.save
            && let Err(error) = evaluation.save(place)
        {
            tell_error(context.global, format_args!("--save: {error}"));
            return Outcome::Failed;
        }
        if context.global.json {
            show_json(&evaluation)
        } else {
            show(evaluation.to_text(width()))
        }
    }
}

/// The policy in the modes asked for, both without a wish, then the baselines. `own` is the controller of the run: it takes
/// the policy's place where it learns nothing.
fn entrants(
    options: &EvalOptions,
    policy: &FrozenPolicy,
    own: &str,
    catalog: &Catalog,
) -> Result<Vec<Entrant>, Rejection> {
    let names: Vec<&str> = match &options.controllers {
        Some(names) if *names == NOBODY => Vec::new(),
        Some(names) => names.iter().map(String::as_str).collect(),
        // Without a learned policy nobody is blind.
        None => BASELINES[..BASELINES.len() - usize::from(policy.saved.is_none())].to_vec(),
    };
    for (index, name) in names.iter().enumerate() {
        let is_blind = *name == BLIND && policy.saved.is_some();
        if !is_blind && !catalog.controllers.iter().any(|known| known.name == *name) {
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
    let entrant = |name: String, controller: &str, saved: Option<SavedFolder>, mode| Entrant {
        name,
        is_compared: true,
        candidate: Candidate {
            controller: controller.into(),
            policy: saved,
            mode,
            seeds: None,
        },
    };
    let policies: Vec<Entrant> = match &policy.saved {
        Some(saved) => modes
            .into_iter()
            .filter(|(.., wanted)| *wanted)
            .map(|(mode, name, _)| entrant(name.into(), LEARNED, Some(saved.clone()), mode))
            .collect(),
        None => vec![entrant(format!("{own} (the run's)"), own, None, DecideMode::Sample)],
    };
    let baselines = names.into_iter().map(|name| Entrant {
        name: match name {
            LEARNED => format!("{LEARNED} (untrained)"),
            other => other.into(),
        },
        is_compared: false,
        candidate: Candidate {
            controller: name.into(),
            policy: None,
            mode: DecideMode::Sample,
            seeds: None,
        },
    });
    Ok(policies.into_iter().chain(baselines).collect())
}

/// Everything that is printed.
#[derive(Serialize)]
struct Evaluation {
    scenario: String,
    task: String,
    policy: PathBuf,
    /// `None` for a policy without its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<PlayedCheckpoint>,
    /// False if somebody stopped it before everybody had played everything.
    is_complete: bool,
    /// What readers of the numbers should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Of an episode.
    steps: u32,
    first_round: u32,
    rounds: usize,
    envs: usize,
    seeds: Vec<BigInteger>,
    /// By slot, of each learned policy.
    commits: Vec<PolicyCommits>,
    /// What the scenario charges for as many parameters as the host has, percentage points; `None` of other rents.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blind: Option<Blind>,
    #[serde(flatten)]
    comparison: Comparison,
}

impl Evaluation {
    fn save(&self, place: &Path) -> Result<(), FileError> {
        let text = serde_json::to_vec_pretty(self).at(place)?;
        replace_synced(place, &text).at(place)
    }

    fn to_text(&self, width: usize) -> String {
        let mut seeds: Vec<String> = self.seeds.iter().map(|seed| seed.0.to_string()).collect();
        if seeds.len() > SEEDS_SHOWN {
            seeds.truncate(SEEDS_SHOWN);
            seeds.push(format!("… ({} seeds)", self.seeds.len()));
        }
        let mut text = format!(
            "{} on {}: {} rounds of {} envs x {} steps for every controller,\nfrom round {} on, seed {}\npolicy {}\n",
            self.scenario,
            self.task,
            self.rounds,
            self.envs,
            self.steps,
            self.first_round + 1,
            seeds.join(", "),
            self.policy.display()
        );
        if let Some(PlayedCheckpoint { from, rounds }) = &self.checkpoint {
            _ = writeln!(text, "checkpoint {from}: after {rounds} rounds");
        }
        for note in &self.notes {
            _ = writeln!(text, "note: {note}");
        }
        let players = &self.comparison.players;
        for table in [
            self.estimates("final validation accuracy, %", |player| &player.accuracy),
            self.estimates("accuracy minus rent, points", |player| &player.accuracy_minus_rent),
            self.others(),
            seed_table(players),
            step_table(players),
        ] {
            _ = write!(text, "\n{}", table.render_within(width, &[]));
        }
        for commits in &self.commits {
            _ = write!(text, "\n{}", commits.to_text(width));
        }
        let net = |pair: &Difference| pair.accuracy_minus_price;
        let tables = [
            self.differences("accuracy, paired difference", |pair| Some(pair.accuracy)),
            self.differences("accuracy minus rent, paired", |pair| Some(pair.accuracy_minus_rent)),
            self.differences("J, paired", net),
        ];
        for table in tables.into_iter().take(2 + usize::from(self.price.is_some())) {
            _ = write!(text, "\n{}", table.render_within(width, &[]));
        }
        let price = self.price.map(|price| format!("J: accuracy - {price:?} (params - 1)"));
        let blind = self.blind.as_ref().map(|Blind { seed, hosts, schedule }| {
            format!(
                "{BLIND}: at each step what the greedy policy decided most often on {hosts} other hosts (seed {}), whatever it \
                 sees: {} orders; policy - {BLIND} is the value of feedback",
                seed.0,
                schedule.entries.len()
            )
        });
        let legend = LEGEND.map(String::from).into_iter().chain(price).chain(blind);
        let legend: Vec<String> = legend.map(|line| wrapped(&line, width)).collect();
        _ = writeln!(text, "\n{}", legend.join("\n"));
        if self.comparison.unmeasured > 0 {
            _ = writeln!(
                text,
                "\n{} episodes are left out: a network was rolled back before it was measured",
                self.comparison.unmeasured
            );
        }
        text
    }

    fn estimates(&self, title: &str, of: fn(&ControllerSummary) -> &Summary) -> Table {
        let mut table = Table::new(&[title], &["mean", "95 % interval", "IQM", "95 % interval"]);
        for player in &self.comparison.players {
            table.push(summary_row(player, of(player)));
        }
        table
    }

    fn others(&self) -> Table {
        let mut table = Table::new(
            &["mean of an episode"],
            &["committed, test %", "reward", "params", "J", "GMAC"],
        );
        for player in &self.comparison.players {
            let test = player.test_accuracy;
            table.push(vec![
                player.name.clone(),
                test.map_or_else(|| ABSENT.into(), |accuracy| format!("{accuracy:.2}")),
                format!("{:.2}", player.reward.mean.value),
                format!("{:.2}x", player.param_ratio.mean.value),
                player
                    .accuracy_minus_price
                    .map_or_else(|| ABSENT.into(), |net| format!("{:.2}", net.mean.value)),
                player
                    .gmacs
                    .map_or_else(|| ABSENT.into(), |gmacs| format!("{gmacs:.3}")),
            ]);
        }
        table
    }

    fn differences(&self, title: &str, of: fn(&Difference) -> Option<Paired>) -> Table {
        let mut table = Table::new(&[title], &["mean", "95 % interval", "wins"]);
        for difference in &self.comparison.differences {
            let Some(paired) = of(difference) else { continue };
            let mean = &paired.difference.mean;
            table.push(vec![
                format!("{} - {}", difference.policy, difference.baseline),
                format!("{:+.2}", mean.value),
                interval(mean),
                wins(&paired),
            ]);
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
