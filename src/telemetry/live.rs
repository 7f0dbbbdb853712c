//! The live state: one pure fold over the event stream, from which the progress display, the final summary and every
//! later view are drawn. Folding a finished file gives the same state as watching the run.

use std::collections::{BTreeMap, VecDeque};

use super::encoding::Timestamp;
use super::event::{Event, Payload};
use super::payload::{
    BaselineMeasured, CounterfactualMatrix, EnvStep, EpisodeFinished, GrowthCounts, LearnerUpdate, RoundFinished,
    RunFinished, RunStarted, SeedFossilized, Shapley,
};
use super::statistics::median;
use crate::growth::SlotId;

/// Flushes that the running throughput looks back over.
const THROUGHPUT_WINDOW: usize = 32;
/// Rounds that the remaining time is estimated from.
const ETA_ROUNDS: usize = 10;

/// Accuracy with a seed minus accuracy without it, in points, with its paired standard error where it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contribution {
    /// Percentage points.
    pub points: f64,
    /// Paired, percentage points.
    pub standard_error: Option<f64>,
}

/// A fossilized seed.
#[derive(Clone, Debug, PartialEq)]
pub struct CommittedSeed {
    /// Its id.
    pub seed_id: String,
    /// Its slot.
    pub slot: Option<SlotId>,
    /// Index of its env.
    pub env: u32,
    /// 0-based.
    pub round: u32,
    /// In which it was committed, 1-based.
    pub step: u32,
    /// Id of the blueprint.
    pub blueprint: String,
    /// Trainable parameters.
    pub params: u64,
    /// As last measured.
    pub contribution: Option<Contribution>,
    /// From the last `shapley` event of its episode, in points.
    pub shapley: Option<f64>,
}

/// One finished round over all envs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundResult {
    /// 0-based.
    pub round: u32,
    /// Final validation accuracy over the envs, percent.
    pub accuracy_mean: f64,
    /// Best validation accuracy of any env, percent.
    pub accuracy_best: f64,
    /// Mean over the last rounds, percent.
    pub rolling_accuracy: Option<f64>,
    /// Raw, per episode; absent where nothing pays.
    pub reward_mean: Option<f64>,
    /// Summed over the envs.
    pub growth: GrowthCounts,
    /// Of all envs.
    pub rollbacks: u32,
    /// Duration in seconds.
    pub wall_s: f64,
    /// Throughput.
    pub env_steps_per_s: f64,
    /// Training samples of all envs.
    pub samples: u64,
}

/// One finished episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpisodeResult {
    /// `round * n_envs + env`.
    pub episode: u32,
    /// Index in the run.
    pub env: u32,
    /// 0-based.
    pub round: u32,
    /// Validation accuracy of the last step, percent.
    pub final_accuracy: f64,
    /// With its committed seeds alone; the final accuracy where that was not measured.
    pub committed_accuracy: f64,
    /// Best validation accuracy, percent.
    pub best_accuracy: f64,
    /// On the test part, percent.
    pub test_accuracy: Option<f64>,
    /// Total over host parameters.
    pub param_ratio: f64,
    /// Committed seeds.
    pub fossilized: u32,
}

/// Where the running round stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepProgress {
    /// 0-based.
    pub round: u32,
    /// The furthest step of any env, 1-based; 0 before the first.
    pub step: u32,
    /// Mean validation accuracy over the envs that have reported, in percent.
    pub accuracy_mean: Option<f64>,
    /// Over the latest flushes.
    pub env_steps_per_s: Option<f64>,
}

/// What is known of an env in its running episode.
#[derive(Clone, Debug, Default, PartialEq)]
struct EnvLive {
    step: u32,
    accuracy: f64,
    /// Latest measurement of each seed of the episode, by seed id.
    contributions: BTreeMap<String, Contribution>,
    shapley: BTreeMap<String, f64>,
}

/// Everything a view shows. Memory grows with rounds and committed seeds only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveState {
    /// How the run began; the newest part of a resumed one.
    pub started: Option<RunStarted>,
    /// The host that never grew, once it was measured.
    pub baseline: Option<BaselineMeasured>,
    /// How the run ended.
    pub finished: Option<RunFinished>,
    /// Of the running round so far.
    pub growth_in_round: GrowthCounts,
    /// In the order in which they finished.
    pub rounds: Vec<RoundResult>,
    /// Episodes played to their end or stopped.
    pub episodes_done: u64,
    /// Of the whole run.
    pub rollbacks: u64,
    /// Mean sums per episode of the last finished round that was paid, by term.
    pub reward_terms: BTreeMap<String, f64>,
    /// Policy updates that were due and not performed.
    pub skipped_updates: u64,
    /// The episode whose committed seeds reached the highest validation accuracy.
    pub best_episode: Option<EpisodeResult>,
    /// In the order in which they were committed.
    pub committed: Vec<CommittedSeed>,
    envs: BTreeMap<u32, EnvLive>,
    round: u32,
    rollbacks_in_round: u32,
    /// Time and number of env-steps so far, at each of the latest flushes.
    marks: VecDeque<(Timestamp, u64)>,
    env_steps: u64,
    /// The newest update and the round that it ended.
    latest_update: Option<(u32, LearnerUpdate)>,
}

impl LiveState {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        if let Some(round) = event.round {
            self.enter_round(round);
        }
        match &event.payload {
            Payload::RunStarted(run) => self.started = Some(run.clone()),
            Payload::RunFinished(run) => self.finished = Some(run.clone()),
            Payload::BaselineMeasured(baseline) => self.baseline = Some(*baseline),
            Payload::EnvStep(step) => self.apply_step(event, step),
            Payload::SeedGerminated(_) => self.growth_in_round.germinated += 1,
            Payload::SeedPruned(_) => self.growth_in_round.pruned += 1,
            Payload::SeedFossilized(seed) => self.apply_fossilized(event, seed),
            Payload::GovernorRollback(_) => {
                self.rollbacks += 1;
                self.rollbacks_in_round += 1;
            }
            Payload::CounterfactualMatrix(matrix) => self.apply_matrix(event, matrix),
            Payload::Shapley(shapley) => self.apply_shapley(event, shapley),
            Payload::EpisodeFinished(episode) => self.apply_episode(event, episode),
            Payload::LearnerUpdate(update) => {
                self.skipped_updates += u64::from(!update.update_performed);
                self.latest_update = Some((self.round, update.clone()));
            }
            Payload::RoundFinished(round) => self.apply_round(event, round),
            _ => {}
        }
    }

    fn enter_round(&mut self, round: u32) {
        if round != self.round {
            self.round = round;
            self.envs.clear();
            self.growth_in_round = GrowthCounts::default();
            self.rollbacks_in_round = 0;
        }
    }

    fn apply_step(&mut self, event: &Event, row: &EnvStep) {
        let (Some(env), Some(step)) = (event.env, event.step) else {
            return;
        };
        let live = self.envs.entry(env).or_default();
        self.env_steps += u64::from(step.saturating_sub(live.step));
        live.step = step;
        live.accuracy = row.val_accuracy.0;
        match self.marks.back_mut() {
            Some((t, env_steps)) if *t == event.t => *env_steps = self.env_steps,
            _ => self.marks.push_back((event.t, self.env_steps)),
        }
        if self.marks.len() > THROUGHPUT_WINDOW {
            self.marks.pop_front();
        }
    }

    fn apply_fossilized(&mut self, event: &Event, seed: &SeedFossilized) {
        self.growth_in_round.fossilized += 1;
        let (Some(seed_id), Some(env)) = (&event.seed_id, event.env) else {
            return;
        };
        let measured = self.envs.entry(env).or_default();
        let contribution = measured.contributions.get(seed_id).copied();
        self.committed.push(CommittedSeed {
            seed_id: seed_id.clone(),
            slot: event.slot,
            env,
            round: self.round,
            step: event.step.unwrap_or_default(),
            blueprint: seed.blueprint.clone(),
            params: seed.params_added,
            contribution: contribution.or(seed.contribution.map(|points| Contribution {
                points: points.0,
                standard_error: None,
            })),
            shapley: measured.shapley.get(seed_id).copied(),
        });
    }

    /// A seed that is off while all others are on, against all on.
    fn apply_matrix(&mut self, event: &Event, matrix: &CounterfactualMatrix) {
        let Some(env) = event.env else { return };
        for (player, seed_id) in matrix.seed_ids.iter().enumerate() {
            let Some(points) = matrix.contribution(player) else {
                continue;
            };
            let contribution = Contribution {
                points,
                standard_error: matrix.contribution_error(player),
            };
            let measured = self.envs.entry(env).or_default();
            measured.contributions.insert(seed_id.clone(), contribution);
            if let Some(seed) = committed_mut(&mut self.committed, self.round, seed_id) {
                seed.contribution = Some(contribution);
            }
        }
    }

    fn apply_shapley(&mut self, event: &Event, shapley: &Shapley) {
        let Some(env) = event.env else { return };
        let measured = self.envs.entry(env).or_default();
        for (seed_id, value) in shapley.seed_ids.iter().zip(&shapley.values) {
            measured.shapley.insert(seed_id.clone(), value.mean.0);
            if let Some(seed) = committed_mut(&mut self.committed, self.round, seed_id) {
                seed.shapley = Some(value.mean.0);
            }
        }
    }

    /// The best episode is chosen by the validation accuracy of what it committed, never by the test split; the first
    /// wins a tie.
    fn apply_episode(&mut self, event: &Event, episode: &EpisodeFinished) {
        self.episodes_done += 1;
        let committed = episode.committed_accuracy.unwrap_or(episode.final_accuracy).0;
        let is_best = self.best_episode.is_none_or(|best| committed > best.committed_accuracy);
        if is_best && !committed.is_nan() {
            self.best_episode = Some(EpisodeResult {
                episode: event.episode.unwrap_or_default(),
                env: event.env.unwrap_or_default(),
                round: self.round,
                final_accuracy: episode.final_accuracy.0,
                committed_accuracy: committed,
                best_accuracy: episode.best_accuracy.0,
                test_accuracy: episode.test_accuracy.map(|accuracy| accuracy.0),
                param_ratio: episode.param_ratio.0,
                fossilized: episode.growth.fossilized,
            });
        }
    }

    fn apply_round(&mut self, event: &Event, round: &RoundFinished) {
        if let Some(paid) = &round.paid {
            let terms = paid.reward_terms_mean.iter();
            self.reward_terms = terms.map(|(name, mean)| (name.clone(), mean.0)).collect();
        }
        self.rounds.push(RoundResult {
            round: event.round.unwrap_or_default(),
            accuracy_mean: round.accuracy_mean.0,
            accuracy_best: round.accuracy_best.0,
            rolling_accuracy: round.rolling_accuracy.map(|accuracy| accuracy.0),
            reward_mean: round.paid.as_ref().map(|paid| paid.reward_mean.0),
            growth: round.growth,
            rollbacks: self.rollbacks_in_round,
            wall_s: round.perf.round_wall_s.0,
            env_steps_per_s: round.perf.env_steps_per_s.0,
            samples: round.perf.samples,
        });
    }

    /// Of the run's policy; absent where nothing learns.
    pub fn latest_update(&self) -> Option<&LearnerUpdate> {
        self.latest_update.as_ref().map(|(_, update)| update)
    }

    /// The update that ended `round`, if it is the latest.
    pub fn update_of_round(&self, round: u32) -> Option<&LearnerUpdate> {
        self.latest_update
            .as_ref()
            .filter(|(of_round, _)| *of_round == round)
            .map(|(_, update)| update)
    }

    /// Policy updates performed.
    pub fn updates(&self) -> u64 {
        self.latest_update().map_or(0, |update| update.updates)
    }

    /// Where the running round stands.
    pub fn progress(&self) -> StepProgress {
        let reported = || self.envs.values().filter(|env| env.step > 0);
        let count = reported().count();
        let total: f64 = reported().map(|env| env.accuracy).sum();
        StepProgress {
            round: self.round,
            step: reported().map(|env| env.step).max().unwrap_or_default(),
            accuracy_mean: (count > 0).then(|| total / count as f64),
            env_steps_per_s: self.running_throughput(),
        }
    }

    fn running_throughput(&self) -> Option<f64> {
        let (&(first, before), &(last, after)) = (self.marks.front()?, self.marks.back()?);
        let elapsed_s = (last.milliseconds() - first.milliseconds()) as f64 / 1000.0;
        (elapsed_s > 0.0).then(|| (after - before) as f64 / elapsed_s)
    }

    /// Of the last finished round; absent after the first.
    pub fn rolling_accuracy(&self) -> Option<f64> {
        self.rounds.last()?.rolling_accuracy
    }

    /// Of any round, percent.
    pub fn best_rolling_accuracy(&self) -> Option<f64> {
        self.rounds
            .iter()
            .filter_map(|round| round.rolling_accuracy)
            .max_by(f64::total_cmp)
    }

    /// Env-steps per second over all finished rounds.
    pub fn env_steps_per_s(&self) -> Option<f64> {
        self.per_second(|round| round.env_steps_per_s * round.wall_s)
    }

    /// Training samples per second over all finished rounds.
    pub fn samples_per_s(&self) -> Option<f64> {
        self.per_second(|round| round.samples as f64)
    }

    fn per_second(&self, amount: impl Fn(&RoundResult) -> f64) -> Option<f64> {
        let wall_s: f64 = self.rounds.iter().map(|round| round.wall_s).sum();
        (wall_s > 0.0).then(|| self.rounds.iter().map(amount).sum::<f64>() / wall_s)
    }

    /// Seconds until the last round ends: remaining rounds times the median of the last ten.
    pub fn eta_s(&self) -> Option<f64> {
        let total = self.started.as_ref()?.n_rounds;
        let done = self.rounds.last()?.round + 1;
        let recent = &self.rounds[self.rounds.len().saturating_sub(ETA_ROUNDS)..];
        let walls: Vec<f64> = recent.iter().map(|round| round.wall_s).collect();
        Some(f64::from(total.saturating_sub(done)) * median(&walls)?)
    }
}

/// A seed can only be measured in its own episode, so only the seeds of the running round are searched.
fn committed_mut<'a>(committed: &'a mut [CommittedSeed], round: u32, seed_id: &str) -> Option<&'a mut CommittedSeed> {
    committed
        .iter_mut()
        .rev()
        .take_while(|seed| seed.round == round)
        .find(|seed| seed.seed_id == seed_id)
}

#[cfg(test)]
mod tests;
