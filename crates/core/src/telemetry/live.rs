//! The live state: one pure fold over the event stream, from which the progress display, the final summary and every
//! later view are drawn. Folding a finished file gives the same state as watching the run.

use std::collections::{BTreeMap, VecDeque};

use super::anomaly_counts::AnomalyCounts;
use super::confounders::Confounders;
use super::encoding::{Num, Timestamp};
use super::event::{EnvContext, Event, Payload};
use super::payload::{
    BaselineMeasured, EndReason, EnvStep, EpisodeFinished, GrowthCounts, LearnerUpdate, PerfRound, RoundFinished,
    RunFinished, RunStarted, SeedCommitted,
};
use super::seed_lives::{SeedEnds, SeedLives, SeedWorth};
use super::statistics::median;

/// Flushes that the running throughput looks back over.
const THROUGHPUT_WINDOW: usize = 32;
/// Rounds that the remaining time is estimated from.
const ETA_ROUNDS: usize = 10;

/// A committed seed.
#[derive(Clone, Debug, PartialEq)]
pub struct CommittedSeed {
    /// Id of the seed.
    pub seed_id: String,
    /// Position of its env when it was committed.
    pub at: EnvContext,
    /// The event of the commit.
    pub data: SeedCommitted,
    /// The seed's worth as last measured; the contribution of the commit if there is no measurement.
    pub worth: SeedWorth,
}

/// One finished round over all envs.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundResult {
    /// 0-based.
    pub round: u32,
    /// Rollbacks of all envs.
    pub rollbacks: u32,
    /// The event of the round.
    pub data: RoundFinished,
}

impl RoundResult {
    /// Raw, per episode; absent where nothing pays.
    pub fn reward_mean(&self) -> Option<f64> {
        self.data.paid.as_ref().map(|paid| paid.reward_mean.0)
    }
}

/// One finished episode.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodeResult {
    /// Position of its env at its end.
    pub at: EnvContext,
    /// The event of the episode.
    pub data: EpisodeFinished,
}

impl EpisodeResult {
    /// Validation accuracy with its committed seeds alone, percent; the final accuracy where that was not measured.
    pub fn committed_accuracy(&self) -> f64 {
        self.data.committed_accuracy.unwrap_or(self.data.final_accuracy).0
    }

    /// Parameters of host and committed seeds over the host's.
    pub fn committed_ratio(&self) -> f64 {
        self.data.committed_ratio.0
    }

    /// Returns whether the committed seeds have made its host larger: a rollback may have undone it.
    pub fn has_committed(&self) -> bool {
        self.committed_ratio() > 1.0
    }
}

/// Rounds at the end of a run by which its result is judged.
pub const LATEST_ROUNDS: u32 = 2;

/// Progress of the running round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepProgress {
    /// 0-based.
    pub round: u32,
    /// The furthest step of any env, 1-based; 0 before the first.
    pub step: u32,
    /// Mean validation accuracy over the envs that have reported, in percent.
    pub accuracy_mean: Option<f64>,
    /// Steps of all envs per second, over the latest flushes.
    pub env_steps_per_s: Option<f64>,
}

/// Events whose numbers were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The number of events.
    pub events: u64,
    /// The round of the last event before the first of them, from 0.
    pub round: Option<u32>,
}

/// The newest step of an env in the running round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct EnvLive {
    step: u32,
    accuracy: f64,
    /// Accuracy of the episode's first step, percent.
    first: Option<f64>,
}

/// Everything a view shows. Memory grows with rounds, committed seeds and the front of accuracy and size only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveState {
    /// The start of the run; for a resumed run the newest part's.
    pub started: Option<RunStarted>,
    /// The host that never grew, once it was measured.
    pub baseline: Option<BaselineMeasured>,
    /// The end of the run.
    pub finished: Option<RunFinished>,
    /// Growth in the running round so far.
    pub growth_in_round: GrowthCounts,
    /// The rounds in the order in which they finished.
    pub rounds: Vec<RoundResult>,
    /// Episodes played to their end or stopped.
    pub episodes_done: u64,
    /// Policy updates that were due and not performed.
    pub skipped_updates: u64,
    /// Numbers that were skipped: events that are missing in the record.
    pub missing: Missing,
    /// The episodes that none beats in both accuracy and size of what it committed, by rising accuracy: of equals the first.
    /// Episodes of envs that failed are left out.
    pub front: Vec<EpisodeResult>,
    /// Round, from 0, committed accuracy in percent and committed ratio of each episode of the last two rounds whose env did
    /// not fail.
    pub latest_hosts: Vec<(u32, f64, f64)>,
    /// The ends of seeds that were not committed.
    pub seed_ends: SeedEnds,
    /// Caveats to the numbers.
    pub confounders: Confounders,
    /// Counts of anomalies.
    pub anomalies: AnomalyCounts,
    /// The seeds in the order in which they were committed.
    pub committed: Vec<CommittedSeed>,
    /// Number of the next event.
    next_seq: u64,
    envs: BTreeMap<u32, EnvLive>,
    /// The seeds of the running round.
    lives: SeedLives,
    round: u32,
    rollbacks_in_round: u32,
    /// Time and number of env-steps so far, at each of the latest flushes.
    marks: VecDeque<(Timestamp, u64)>,
    env_steps: u64,
    /// The newest update and the round that it ended.
    latest_update: Option<(u32, LearnerUpdate)>,
}

impl LiveState {
    /// Returns whether the run plays no env: its policy learns from recordings.
    pub fn is_offline(&self) -> bool {
        self.started.as_ref().is_some_and(|run| run.n_envs == 0)
    }

    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        self.count_missing(event);
        if let Some(round) = event.round {
            self.enter_round(round);
        }
        self.lives.apply(event);
        let lives = self.lives.of(event.env.unwrap_or_default());
        self.seed_ends.apply(event, lives);
        self.confounders.apply(event);
        let first = event.env.and_then(|env| self.envs.get(&env)?.first);
        self.anomalies.apply(event, first);
        match &event.payload {
            Payload::RunStarted(run) => self.started = Some(run.clone()),
            Payload::RunFinished(run) => self.finished = Some(run.clone()),
            Payload::BaselineMeasured(baseline) => self.baseline = Some(baseline.clone()),
            Payload::EnvStep(step) => self.apply_step(event, step),
            Payload::SeedGerminated(_) => self.growth_in_round.germinated += 1,
            Payload::SeedPruned(_) => self.growth_in_round.pruned += 1,
            Payload::SeedCommitted(seed) => self.apply_committed(event, seed),
            Payload::GovernorRollback(_) => self.rollbacks_in_round += 1,
            Payload::CounterfactualMatrix(_) | Payload::Shapley(_) => self.measure(event),
            Payload::EpisodeFinished(episode) => self.apply_episode(event, episode),
            Payload::LearnerUpdate(update) => {
                self.skipped_updates += u64::from(!update.update_performed);
                self.latest_update = Some((self.round, update.clone()));
            }
            Payload::RoundFinished(round) => self.rounds.push(RoundResult {
                round: event.round.unwrap_or_default(),
                rollbacks: self.rollbacks_in_round,
                data: round.clone(),
            }),
            // The time of a pause says nothing about how fast the run is.
            Payload::Note(note) if note.command.is_some() => self.marks.clear(),
            _ => {}
        }
    }

    fn count_missing(&mut self, event: &Event) {
        let skipped = event.seq.saturating_sub(self.next_seq);
        if skipped > 0 {
            self.missing.events += skipped;
            self.missing.round.get_or_insert(self.round);
        }
        self.next_seq = self.next_seq.max(event.seq.saturating_add(1));
    }

    fn enter_round(&mut self, round: u32) {
        if round != self.round {
            self.round = round;
            self.envs.clear();
            self.lives = SeedLives::default();
            self.growth_in_round = GrowthCounts::default();
            self.rollbacks_in_round = 0;
            self.anomalies.round.clear();
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
        live.first.get_or_insert(live.accuracy);
        match self.marks.back_mut() {
            Some((t, env_steps)) if *t == event.t => *env_steps = self.env_steps,
            _ => self.marks.push_back((event.t, self.env_steps)),
        }
        if self.marks.len() > THROUGHPUT_WINDOW {
            self.marks.pop_front();
        }
    }

    fn apply_committed(&mut self, event: &Event, seed: &SeedCommitted) {
        self.growth_in_round.committed += 1;
        let (Some(seed_id), Some(at)) = (&event.seed_id, event.context()) else {
            return;
        };
        self.committed.push(CommittedSeed {
            seed_id: seed_id.clone(),
            at,
            data: seed.clone(),
            worth: SeedWorth::default(),
        });
        self.measure(event);
    }

    /// A seed can only be measured in its own episode, so only those committed in the running round are searched.
    fn measure(&mut self, event: &Event) {
        let lives = self.lives.of(event.env.unwrap_or_default());
        let newest = self.committed.iter_mut().rev();
        for seed in newest.take_while(|seed| seed.at.round == self.round) {
            if let Some(life) = lives.iter().find(|life| life.id == seed.seed_id) {
                seed.worth = life.worth;
            }
        }
    }

    /// Episodes are ranked by the validation accuracy of what they committed, never by the test split. An env that
    /// failed has no result: its episode was cut short.
    fn apply_episode(&mut self, event: &Event, episode: &EpisodeFinished) {
        self.episodes_done += 1;
        let Some(at) = event.context() else { return };
        let data = episode.clone();
        let result = EpisodeResult { at, data };
        let (accuracy, ratio) = (result.committed_accuracy(), result.committed_ratio());
        if episode.end == EndReason::Failed || accuracy.is_nan() || ratio.is_nan() {
            return;
        }
        self.latest_hosts
            .retain(|&(round, ..)| round + LATEST_ROUNDS > at.round);
        self.latest_hosts.push((at.round, accuracy, ratio));
        let beats = |one: &EpisodeResult, other: &EpisodeResult| {
            one.committed_accuracy() >= other.committed_accuracy() && one.committed_ratio() <= other.committed_ratio()
        };
        if self.front.iter().any(|known| beats(known, &result)) {
            return;
        }
        self.front.retain(|known| !beats(&result, known));
        let place = self
            .front
            .partition_point(|known| known.committed_accuracy() < accuracy);
        self.front.insert(place, result);
    }

    /// The one with the highest committed accuracy, of equals the smallest network, then the first.
    pub fn best_episode(&self) -> Option<&EpisodeResult> {
        self.front.last()
    }

    /// Mean sums per episode of the last finished round that was paid, by term; absent where none was.
    pub fn reward_terms(&self) -> Option<&BTreeMap<String, Num>> {
        let paid = self.rounds.iter().rev().find_map(|round| round.data.paid.as_ref());
        paid.map(|paid| &paid.reward_terms_mean)
    }

    /// Newest update of the run's policy; absent where nothing learns.
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

    /// Progress of the running round.
    pub fn progress(&self) -> StepProgress {
        let envs = self.envs.values();
        let total: f64 = envs.clone().map(|env| env.accuracy).sum();
        StepProgress {
            round: self.round,
            step: envs.map(|env| env.step).max().unwrap_or_default(),
            accuracy_mean: (!self.envs.is_empty()).then(|| total / self.envs.len() as f64),
            env_steps_per_s: self.running_throughput(),
        }
    }

    fn running_throughput(&self) -> Option<f64> {
        let (&(first, before), &(last, after)) = (self.marks.front()?, self.marks.back()?);
        let elapsed_s = (last.milliseconds() - first.milliseconds()) as f64 / 1000.0;
        (elapsed_s > 0.0).then(|| (after - before) as f64 / elapsed_s)
    }

    /// Rolling accuracy of the last finished round, percent; absent after the first.
    pub fn rolling_accuracy(&self) -> Option<Num> {
        self.rounds.last()?.data.rolling_accuracy
    }

    /// The best validation accuracy that any env reached in a finished round, percent.
    pub fn best_accuracy(&self) -> Option<Num> {
        let best = self.rounds.iter().map(|round| round.data.accuracy_best);
        best.filter(|best| best.0.is_finite())
            .max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Env-steps per second over all finished rounds.
    pub fn env_steps_per_s(&self) -> Option<f64> {
        self.per_second(|perf| perf.env_steps_per_s.0 * perf.round_wall_s.0)
    }

    /// Training samples per second over all finished rounds.
    pub fn samples_per_s(&self) -> Option<f64> {
        self.per_second(|perf| perf.samples as f64)
    }

    fn per_second(&self, amount: impl Fn(&PerfRound) -> f64) -> Option<f64> {
        let perfs = self.rounds.iter().map(|round| &round.data.perf);
        let wall_s: f64 = perfs.clone().map(|perf| perf.round_wall_s.0).sum();
        (wall_s > 0.0).then(|| perfs.map(amount).sum::<f64>() / wall_s)
    }

    /// Seconds until the last round ends: remaining rounds times the median of the last ten.
    pub fn eta_s(&self) -> Option<f64> {
        let total = self.started.as_ref()?.n_rounds;
        let done = self.rounds.last()?.round + 1;
        let recent = &self.rounds[self.rounds.len().saturating_sub(ETA_ROUNDS)..];
        let walls: Vec<f64> = recent.iter().map(|round| round.data.perf.round_wall_s.0).collect();
        Some(f64::from(total.saturating_sub(done)) * median(&walls)?)
    }
}

#[cfg(test)]
mod tests;
