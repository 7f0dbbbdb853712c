//! The result of an evaluation, as values: the players, their results, and caveats for readers of the numbers.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::blind::Blind;
use super::study::{Cost, PlayedRow, Study};
use crate::compare::{Comparison, ControllerSummary, Played, SlotCommits};
use crate::files::counted;
use crate::growth::SlotId;
use crate::health::{AtPath, FileError};
use crate::storage::replace_synced;
use crate::telemetry::BigInteger;

/// The policy or run that is evaluated.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    /// Folder of the policy, or of the run if it has no policy.
    pub policy: PathBuf,
    /// `None` for a policy without its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<PlayedCheckpoint>,
    /// Hash of the data that it was trained on, if that is known.
    #[serde(skip)]
    pub trained_on: Option<String>,
}

/// The checkpoint whose policy was played.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlayedCheckpoint {
    /// The requested checkpoint: `last`, `best` or a number of rounds.
    pub from: String,
    /// Rounds that its policy was trained in.
    pub rounds: u32,
}

/// Results of a policy and its opponents.
#[derive(Serialize)]
pub struct Evaluation {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the task.
    pub task: String,
    /// The policy or run that was evaluated.
    #[serde(flatten)]
    pub subject: Subject,
    /// `true` if all players have played all episodes, and no stop came before.
    pub is_complete: bool,
    /// Caveats for readers of the numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Steps of an episode.
    pub steps: u32,
    /// First round, from 0.
    pub first_round: u32,
    /// Rounds under each seed.
    pub rounds: usize,
    /// Envs of a round.
    pub envs: usize,
    /// Seeds of the episodes.
    pub seeds: Vec<BigInteger>,
    /// Commits by slot, for each learned policy.
    pub commits: Vec<PolicyCommits>,
    /// The scenario's charge for one host's worth of parameters, percentage points. `None` for other rents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// The schedule that decides without observing anything, if it was played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blind: Option<Blind>,
    /// Seed of the episodes that schedules were chosen by, and of the hosts on which the blind schedule was taken.
    pub search_seed: BigInteger,
    /// Costs of each player, in their order.
    pub costs: Vec<Cost>,
    /// Players and their differences.
    #[serde(flatten)]
    pub comparison: Comparison,
}

impl Evaluation {
    /// The evaluation of `rows`, at least one.
    pub fn new(study: &Study, subject: Subject, rows: Vec<PlayedRow>, blind: Option<Blind>) -> Self {
        let (scenario, task) = (&study.experiment.scenario, &study.experiment.task);
        let (first, seeds) = (&study.episodes[0], rows[0].played.len());
        let price = study.experiment.reward.price;
        let is_complete = study.is_complete(&rows);
        let gap = (!is_complete).then(|| {
            format!(
                "incomplete: stopped after {} of {} and {seeds} of {}",
                rows.len(),
                counted(study.rows(), "player"),
                counted(study.episodes.len(), "seed")
            )
        });
        let played_on = rows.iter().flat_map(|row| &row.played).next();
        let hashes = subject
            .trained_on
            .as_ref()
            .zip(played_on.map(|played| &played.data_hash));
        let other_data = hashes
            .filter(|(trained_on, here)| trained_on != here)
            .map(|(trained_on, here)| {
                format!(
                    "the policy was trained on other data: the hash of its data set was {trained_on}, here it is {here}"
                )
            });
        let costs = rows.iter().map(|row| {
            let episodes: usize = row.played.iter().map(|played| played.outcomes.len()).sum();
            let seconds = row.seconds() / episodes.max(1) as f64;
            Cost {
                seconds,
                ..row.cost.clone()
            }
        });
        let costs = costs.collect();
        let played = rows.into_iter().map(|row| Played {
            name: row.cost.name,
            is_policy: row.is_policy,
            episodes: row.played.into_iter().map(|played| played.outcomes).collect(),
        });
        let comparison = Comparison::new(played.collect(), first.seed, price);
        let slots: Vec<SlotId> = study.experiment.layout.slots().iter().map(|spec| spec.slot).collect();
        let policies = comparison
            .players
            .iter()
            .take(study.modes.len())
            .filter(|_| study.policy.is_some());
        Self {
            scenario: scenario.name.clone(),
            task: task.name.clone(),
            subject,
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

    /// Writes it as JSON.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, place: &Path) -> Result<(), FileError> {
        let text = serde_json::to_vec_pretty(self).at(place)?;
        replace_synced(place, &text).at(place)
    }
}

/// Commits of a learned policy.
#[derive(Serialize)]
pub struct PolicyCommits {
    /// Name of the player.
    pub name: String,
    /// Commits by slot, in policy order.
    pub slots: Vec<SlotCommits>,
}

impl PolicyCommits {
    /// `None` for a player whose episodes do not have it.
    fn of(player: &ControllerSummary, slots: &[SlotId]) -> Option<Self> {
        Some(Self {
            name: player.name.clone(),
            slots: SlotCommits::by_slot(slots, &player.episodes)?,
        })
    }
}
