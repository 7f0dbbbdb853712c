//! `eval`: play a frozen policy against opponents on the same episodes, and say how it did.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::eval_decisions::{PolicyCommits, seed_table, step_table};
use super::eval_progress::{EvalProgress, Work};
use super::evaluated::{Evaluated, PlayedCheckpoint, note_on_data};
use super::output::{refuse, show_either, tell, tell_error, width};
use super::prepare::explain_if_moved;
use super::rejection::Rejection;
use super::{Context, EvalOptions, Outcome};
use crate::compare::{Comparison, ControllerSummary, Difference, Episodes, Paired, Played, Summary, TrainingRecord};
use crate::eval::{Blind, Opponent, PlayedRow, Search, Spent, Study, StudyError, Told};
use crate::growth::SlotId;
use crate::health::{AtPath, FileError};
use crate::policy::DecideMode;
use crate::report::{ABSENT, Table, interval, verdict_words, wrapped};
use crate::run::{StopSignal, stop_on_signals};
use crate::storage::replace_synced;
use crate::telemetry::BigInteger;

/// Seeds that the head of the tables names.
const SEEDS_SHOWN: usize = 8;
/// Below the tables.
const LEGEND: [&str; 6] = [
    "intervals: over the episodes of this one training; how another training would end is a matter for several of them \
     (`sweep`, then `compare`)",
    "p: sign flips of episodes, corrected by Holm's method for all opponents; verdict: of the policy, by accuracy",
    "committed, test %: the host with its committed seeds alone, on images that nothing else reads",
    "GMAC: billions of multiply-accumulates of training and validation",
    "lost: seeds that no order removed: held for too long, not finite, rolled back",
    "no commit, %: of the episodes; at step: mean of those in which it happened",
];
const COSTS_LEGEND: &str = "from scratch: in each episode the architecture that the policy grew in it, from its first step on; found by: \
                            what training or search took, GMAC; by net: of the schedules the best by J, or by accuracy minus rent \
                            where the scenario has no such price";

/// Plays all episodes with the policy and its opponents; the tables go to stdout. A stop shows how things stand.
pub fn eval(options: &EvalOptions, context: &Context) -> Result<Outcome, Rejection> {
    let found = Evaluated::find(options, context)?;
    let stop = StopSignal::default();
    stop_on_signals(stop.clone()).map_err(|error| Rejection::Usage(format!("no handlers for signals: {error}")))?;
    let study = study(options, &found, &stop, context)?;
    let blind = match study.take_blind() {
        Ok(blind) => blind,
        Err(error) => return Ok(unplayed(&error, &study, context)),
    };
    let mut progress = EvalProgress::begin(work(&study, &found), context);
    let played = study.play(blind.as_ref(), &mut |told| match told {
        Told::Enters { name, seed } => progress.enter(name, seed),
        Told::Steps(envs) => progress.step(envs),
        Told::Leaves { played, is_row } => progress.leave(&played.outcomes, is_row),
    });
    progress.clear();
    let rows = match played {
        Ok(rows) => rows,
        Err(error) => return Ok(unplayed(&error, &study, context)),
    };
    let stopped = stop.requested().filter(|_| !study.is_complete(&rows));
    if rows.is_empty() {
        tell("stopped before anything had played all episodes of a seed: there is nothing to compare");
        return Ok(stopped.map_or(Outcome::Done, Outcome::Stopped));
    }
    let evaluation = Evaluation::new(&study, &found, rows, blind);
    if let Some(place) = &options.save
        && let Err(error) = evaluation.save(place)
    {
        tell_error(context.global, format_args!("--save: {error}"));
        return Ok(Outcome::Failed);
    }
    let shown = show_either(context.global, &evaluation, || evaluation.to_text(width()));
    Ok(stopped.map_or(shown, Outcome::Stopped))
}

fn study<'a>(
    options: &EvalOptions,
    found: &Evaluated,
    stop: &'a StopSignal,
    context: &Context<'a>,
) -> Result<Study<'a>, Rejection> {
    let saved = &found.policy.saved;
    let against = Opponent::named(options.against.as_deref(), saved.is_some(), &context.catalog);
    let against = against.map_err(Rejection::Usage)?;
    let origin = found.policy.origin.as_ref();
    if origin.is_none() && options.schedules.is_none() && against.contains(&Opponent::Schedules) {
        let message = format!(
            "{} is a policy without its run: what its training took is not known; say by --schedules M how many are tried",
            found.place.display()
        );
        return Err(Rejection::Usage(message));
    }
    let asks = options.greedy || options.sample;
    let modes = [
        (DecideMode::Greedy, options.greedy || !asks),
        (DecideMode::Sample, options.sample || !asks),
    ];
    let evaluated: Vec<u64> = found.episodes.iter().map(|episodes| episodes.seed).collect();
    Ok(Study {
        extension: context.extension,
        policy: saved.clone(),
        modes: modes
            .into_iter()
            .filter_map(|(mode, is_played)| is_played.then_some(mode))
            .collect(),
        against,
        search: Search::new(
            &found.experiment,
            &evaluated,
            options.schedules,
            &context.catalog.blueprints,
        ),
        training: origin.and_then(|origin| spent(&found.place, origin.rounds)),
        training_rounds: origin.map_or(0, |origin| origin.rounds),
        episodes: found.episodes.clone(),
        experiment: found.experiment.clone(),
        stop,
    })
}

/// What the run at `place` took for so many rounds; `None` where its record does not tell.
fn spent(place: &Path, rounds: u32) -> Option<Spent> {
    let record = TrainingRecord::of_run(place).ok()?;
    let trained = record.curve.iter().rfind(|point| point.round < rounds)?;
    Some(Spent {
        gmacs: trained.gmacs,
        seconds: trained.seconds,
    })
}

fn work(study: &Study, found: &Evaluated) -> Work {
    Work {
        entrants: study.rows(),
        seeds: study.episodes.len(),
        // As many under every seed.
        episodes: study.episodes.first().map_or(0, Episodes::count),
        steps: study.experiment.task.max_steps,
        env_steps_per_s: found.status.as_ref().and_then(|status| Some(status.env_steps_per_s?.0)),
    }
}

/// Says why something could not play.
fn unplayed(error: &StudyError, study: &Study, context: &Context) -> Outcome {
    if error.error.position.round.is_some() {
        tell_error(context.global, error);
        return Outcome::Failed;
    }
    refuse(context.global, error);
    explain_if_moved(study.experiment.folder.as_deref());
    Outcome::Rejected
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
    /// Seed of the episodes that schedules were chosen by, and of the hosts on which the blind schedule was taken.
    search_seed: BigInteger,
    /// Of each player, in their order.
    costs: Vec<Cost>,
    #[serde(flatten)]
    comparison: Comparison,
}

/// What a player took.
#[derive(Serialize)]
struct Cost {
    name: String,
    /// Of an episode; it may end sooner.
    steps: u32,
    /// Mean wall time of an episode; those of a seed were played side by side.
    seconds: f64,
    /// Schedules that were tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    schedules: Option<u32>,
    /// What it took to find it.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_by: Option<Spent>,
}

impl Evaluation {
    fn new(study: &Study, found: &Evaluated, rows: Vec<PlayedRow>, blind: Option<Blind>) -> Self {
        let (scenario, task) = (&study.experiment.scenario, &study.experiment.task);
        let (first, seeds) = (&study.episodes[0], rows[0].played.len());
        let price = study.experiment.reward.price;
        let is_complete = study.is_complete(&rows);
        let gap = (!is_complete).then(|| {
            format!(
                "incomplete: stopped after {} of {} players and {seeds} of {} seeds",
                rows.len(),
                study.rows(),
                study.episodes.len()
            )
        });
        let origin = found.policy.origin.as_ref();
        let played_on = rows.iter().flat_map(|row| &row.played).next();
        let other_data = origin
            .zip(played_on)
            .and_then(|(origin, played)| note_on_data(&origin.data_hash, &played.data_hash));
        let costs = rows.iter().map(|row| {
            let episodes: usize = row.played.iter().map(|played| played.outcomes.len()).sum();
            Cost {
                name: row.name.clone(),
                steps: row.steps,
                seconds: row.seconds() / episodes.max(1) as f64,
                schedules: row.schedules,
                found_by: row.found_by,
            }
        });
        let costs = costs.collect();
        let learned = found.policy.saved.as_ref();
        let played = rows.into_iter().map(|row| Played {
            name: row.name,
            is_policy: row.is_policy,
            episodes: row.played.into_iter().map(|played| played.outcomes).collect(),
        });
        let comparison = Comparison::new(played.collect(), first.seed, price);
        let slots: Vec<SlotId> = study.experiment.layout.slots().iter().map(|spec| spec.slot).collect();
        let policies = comparison
            .players
            .iter()
            .take(study.modes.len())
            .filter(|_| learned.is_some());
        Self {
            scenario: scenario.name.clone(),
            task: task.name.clone(),
            policy: learned.map_or_else(|| found.place.clone(), |saved| saved.path().into()),
            checkpoint: found.checkpoint(),
            is_complete,
            notes: gap.into_iter().chain(other_data).collect(),
            steps: task.max_steps,
            first_round: first.rounds.start,
            rounds: first.rounds.len(),
            envs: first.envs,
            seeds: study.episodes[..seeds]
                .iter()
                .map(|episodes| BigInteger(episodes.seed))
                .collect(),
            commits: policies
                .filter_map(|player| PolicyCommits::of(player, &slots))
                .collect(),
            price,
            blind,
            search_seed: BigInteger(study.search.seed),
            costs,
            comparison,
        }
    }

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
            self.verdicts(),
            self.differences("accuracy minus rent, paired", |pair| Some(pair.accuracy_minus_rent)),
            self.differences("J, paired", net),
        ];
        for table in tables.into_iter().take(2 + usize::from(self.price.is_some())) {
            _ = write!(text, "\n{}", table.render_within(width, &[]));
        }
        let costs = self.costs().map(|costs| {
            _ = write!(text, "\n{}", costs.render_within(width, &[]));
            COSTS_LEGEND.to_owned()
        });
        let price = self.price.map(|price| format!("J: accuracy - {price:?} (params - 1)"));
        let blind = self.blind.as_ref().map(|Blind { seed, hosts, schedule }| {
            format!(
                "blind: at each step what the greedy policy decided most often on {hosts} other hosts (seed {}), whatever it \
                 sees: {} orders; policy - blind is the value of feedback",
                seed.0,
                schedule.entries.len()
            )
        });
        let legend = LEGEND
            .map(String::from)
            .into_iter()
            .chain(price)
            .chain(blind)
            .chain(costs);
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

    /// What each player took; `None` where all are alike, as controllers on the scenario's hosts are.
    fn costs(&self) -> Option<Table> {
        let is_told = |cost: &Cost| cost.schedules.is_some() || cost.steps != self.steps;
        if !self.costs.iter().any(is_told) {
            return None;
        }
        let mut table = Table::new(&["what it took"], &["steps", "s", "schedules", "found by"]);
        for cost in &self.costs {
            let found_by = cost.found_by.and_then(|spent| spent.gmacs);
            table.push(vec![
                cost.name.clone(),
                cost.steps.to_string(),
                format!("{:.2}", cost.seconds),
                cost.schedules.map_or_else(|| ABSENT.into(), |tried| tried.to_string()),
                found_by.map_or_else(|| ABSENT.into(), |gmacs| format!("{gmacs:.2}")),
            ]);
        }
        Some(table)
    }

    /// By accuracy, with what may be said.
    fn verdicts(&self) -> Table {
        let mut table = Table::new(
            &["accuracy, paired difference"],
            &["mean", "95 % interval", "p", "verdict"],
        );
        for difference in &self.comparison.differences {
            let mean = &difference.accuracy.difference.mean;
            table.push(vec![
                format!("{} - {}", difference.policy, difference.baseline),
                format!("{:+.2}", mean.value),
                interval(mean, 2),
                format!("{:.3}", difference.adjusted_p),
                verdict_words(difference.verdict).into(),
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
                interval(mean, 2),
                wins(&paired),
            ]);
        }
        table
    }
}

fn summary_row(player: &ControllerSummary, summary: &Summary) -> Vec<String> {
    let mut row = vec![player.name.clone()];
    for estimate in [&summary.mean, &summary.iqm] {
        row.extend([format!("{:.2}", estimate.value), interval(estimate, 2)]);
    }
    row
}

fn wins(paired: &Paired) -> String {
    let pairs = paired.wins + paired.ties + paired.losses;
    format!("{} of {pairs}", paired.wins)
}
