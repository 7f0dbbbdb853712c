//! The episodes of a run: a point of each (thinned in long runs), and the whole course of some: those that are played, those of
//! the last round, the best of each round, and the best of all. A course has the env's accuracy in every step, the decision
//! there, and the life of each of its seeds.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::growth::{LifecycleOp, SeedStage, SlotId};
use crate::report::thinned::Thinned;
use crate::report::words::op_name;
use crate::telemetry::{
    AnomalyState, CounterfactualMatrix, Decision, EndReason, EnvContext, EnvStep, EpisodeFinished, Event, Payload,
    SeedEnd, SeedLife,
};

/// Points of episodes that are kept.
const POINTS: usize = 4096;
/// Rounds whose best episode is kept whole.
const BEST: usize = 12;
/// Rounds whose orders are compared.
const ORDERED_ROUNDS: u32 = 2;
/// Steps that a trace keeps. Of the steps beyond them it shows only the last one.
const STEPS: usize = 1000;

/// An episode as a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpisodePoint {
    /// Round, from 0.
    pub round: u32,
    /// Index of the env in the run.
    pub env: u32,
    /// With committed seeds alone, in validation, percent.
    pub accuracy: f64,
    /// Parameters of host and committed seeds over the host's.
    pub ratio: f64,
    /// Sum of rewards; absent where nothing pays.
    pub reward: Option<f64>,
}

impl EpisodePoint {
    fn of(round: u32, env: u32, episode: &EpisodeFinished) -> Self {
        Self {
            round,
            env,
            accuracy: episode.committed_accuracy.unwrap_or(episode.final_accuracy).0,
            ratio: episode.committed_ratio.0,
            reward: episode.paid.as_ref().map(|paid| paid.reward.0),
        }
    }

    /// `round 3, env 1`
    pub fn name(&self) -> String {
        format!("round {}, env {}", self.round + 1, self.env)
    }
}

/// The constancy of a controller: the order that most episodes of the last rounds follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModalOrder {
    /// Its commands, in order.
    pub order: String,
    /// Episodes that follow it.
    pub episodes: usize,
    /// All episodes of these rounds.
    pub of: usize,
}

/// The episodes of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episodes {
    /// Episodes of the running round, by env.
    pub playing: BTreeMap<u32, EpisodeTrace>,
    /// Episodes of the last finished round, by env.
    pub latest: Vec<EpisodeTrace>,
    /// The best of each round, thinned.
    pub best_of_rounds: Thinned<EpisodeTrace, BEST>,
    /// The best of all.
    pub best: Option<EpisodeTrace>,
    /// A point of each that ended and did not fail, thinned.
    pub points: Thinned<EpisodePoint, POINTS>,
    orders: Vec<(u32, String)>,
}

impl Episodes {
    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        if let Payload::RoundFinished(_) = &event.payload {
            self.end_round();
        }
        let Some(at) = event.context() else { return };
        // An episode that did not end is played again by a run that was resumed from before it.
        self.playing
            .retain(|&env, known| env != at.env || known.at.episode == at.episode);
        let trace = self.playing.entry(at.env).or_insert_with(|| EpisodeTrace::new(at));
        trace.apply(event);
        if let Payload::EpisodeFinished(episode) = &event.payload
            && !matches!(episode.end, EndReason::Failed | EndReason::Stopped)
        {
            self.points.push(EpisodePoint::of(at.round, at.env, episode));
            self.orders.push((at.round, trace.order()));
            self.orders.retain(|(round, _)| round + ORDERED_ROUNDS > at.round);
        }
    }

    fn end_round(&mut self) {
        self.latest = std::mem::take(&mut self.playing).into_values().collect();
        let accuracies = self.latest.iter().map(|trace| (trace, trace.accuracy()));
        let measured = accuracies.filter_map(|(trace, accuracy)| Some((trace, accuracy.filter(|of| of.is_finite())?)));
        let Some((best, _)) = measured.max_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            return;
        };
        if self.best.as_ref().and_then(EpisodeTrace::accuracy) < best.accuracy() {
            self.best = Some(best.clone());
        }
        self.best_of_rounds.push(best.clone());
    }

    /// Those of the running round or, before it has any, of the last one, by env.
    pub fn current(&self) -> Vec<&EpisodeTrace> {
        match self.playing.is_empty() {
            true => self.latest.iter().collect(),
            false => self.playing.values().collect(),
        }
    }

    /// The episode of that round and env, where its course is kept.
    pub fn of(&self, round: u32, env: u32) -> Option<&EpisodeTrace> {
        let mut kept = self.latest.iter().chain(self.best_of_rounds.iter()).chain(&self.best);
        kept.find(|trace| (trace.at.round, trace.at.env) == (round, env))
    }

    /// The order over the episodes of the last two rounds that ended. `None` without any.
    pub fn modal_order(&self) -> Option<ModalOrder> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, order) in &self.orders {
            *counts.entry(order).or_default() += 1;
        }
        let (&order, &episodes) = counts.iter().max_by_key(|(_, count)| **count)?;
        Some(ModalOrder {
            order: order.to_owned(),
            episodes,
            of: self.orders.len(),
        })
    }
}

/// View of a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionPoint {
    /// The ordered operation.
    pub op: LifecycleOp,
    /// Slot of the operation. Absent for a wait.
    pub slot: Option<SlotId>,
    /// Blueprint of a germination.
    pub blueprint: Option<String>,
    /// The reason why it was not carried out, by its code.
    pub blocked: Option<String>,
    /// Probabilities that the policy gave the allowed operations, 0..1; empty where nothing learned decides.
    pub probabilities: Vec<(LifecycleOp, f32)>,
    /// The critic's estimate, in units of reward.
    pub value: Option<f32>,
    /// Reward of the step.
    pub reward: Option<f32>,
    /// The reason of the controller, in a few words.
    pub reason: Option<String>,
}

impl DecisionPoint {
    fn of(decision: &Decision) -> Self {
        let policy = decision.policy.as_ref();
        let probabilities = policy.map_or_else(Vec::new, |policy| {
            let given = policy.op_probs.iter().map(|probability| probability.0 as f32);
            decision.allowed.iter().copied().zip(given).collect()
        });
        Self {
            op: decision.op,
            slot: decision.slot,
            blueprint: decision.choice.blueprint.clone(),
            blocked: decision.blocked.clone(),
            probabilities,
            value: policy.map(|policy| policy.value.0 as f32),
            reward: decision.paid.as_ref().map(|paid| paid.reward.0 as f32),
            reason: decision.reason.clone(),
        }
    }

    /// `germinate conv_light in r0c1`, `wait`.
    pub fn words(&self) -> String {
        let op = op_name(self.op);
        let blueprint = self.blueprint.as_ref().map_or_else(String::new, |id| format!(" {id}"));
        let slot = self.slot.map_or_else(String::new, |slot| format!(" in {slot}"));
        format!("{op}{blueprint}{slot}")
    }
}

/// A seed in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeedPoint {
    /// Its slot.
    pub slot: SlotId,
    /// Its stage.
    pub stage: SeedStage,
    /// Amplitude, 0..1.
    pub alpha: f32,
    /// Its gradients explode or vanish.
    pub is_unhealthy: bool,
}

/// A step of an env.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPoint {
    /// Step, from 1.
    pub step: u32,
    /// Accuracy in percent.
    pub accuracy: f32,
    /// Accuracy on the training batches, percent.
    pub train_accuracy: f32,
    /// Loss in nats, in validation.
    pub loss: f32,
    /// Parameters of host and occupied slots.
    pub params: u64,
    /// Occupied slots.
    pub seeds: SmallVec<[SeedPoint; 4]>,
    /// The decision that followed.
    pub decision: Option<DecisionPoint>,
}

impl StepPoint {
    /// The seed that stood in `slot`.
    pub fn seed_in(&self, slot: SlotId) -> Option<&SeedPoint> {
        self.seeds.iter().find(|seed| seed.slot == slot)
    }
}

/// Events of the env as a whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// It was restored to the state after this step.
    Rollback(u32),
    /// A detector spoke: its name.
    Anomaly(String),
}

/// The course of an episode.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodeTrace {
    /// Place of its newest event.
    pub at: EnvContext,
    /// In order; of a record without step rows none.
    pub steps: Vec<StepPoint>,
    /// In the order of their germination.
    pub seeds: Vec<SeedLife>,
    /// Step and what happened.
    pub marks: Vec<(u32, Mark)>,
    /// Accuracies of every measured combination of seeds, as last measured.
    pub matrix: Option<CounterfactualMatrix>,
    /// Its accuracy at its end: validation accuracy with committed seeds alone, percent.
    reached: Option<f64>,
}

impl EpisodeTrace {
    /// The trace of an episode that begins.
    pub const fn new(at: EnvContext) -> Self {
        Self {
            at,
            steps: Vec::new(),
            seeds: Vec::new(),
            marks: Vec::new(),
            matrix: None,
            reached: None,
        }
    }

    /// Takes an event of its env.
    pub fn apply(&mut self, event: &Event) {
        let step = event.step.unwrap_or_default();
        self.at.step = self.at.step.max(step);
        SeedLife::fold(&mut self.seeds, event);
        match &event.payload {
            Payload::EnvStep(row) => self.step(step, row),
            Payload::Decision(decision) => {
                if let Some(point) = self.steps.last_mut().filter(|point| point.step == step) {
                    point.decision = Some(DecisionPoint::of(decision));
                }
            }
            Payload::CounterfactualMatrix(matrix) => self.matrix = Some(matrix.clone()),
            Payload::GovernorRollback(rollback) => self.marks.push((step, Mark::Rollback(rollback.snapshot_step))),
            Payload::Anomaly(anomaly) if anomaly.state == AnomalyState::Onset => {
                self.marks.push((step, Mark::Anomaly(anomaly.rule.clone())));
            }
            Payload::EpisodeFinished(episode) => {
                self.reached = Some(episode.committed_accuracy.unwrap_or(episode.final_accuracy).0);
            }
            _ => {}
        }
    }

    fn step(&mut self, step: u32, row: &EnvStep) {
        if self.steps.len() == STEPS {
            self.steps.pop();
        }
        let seeds = row.seeds.iter().map(|seed| SeedPoint {
            slot: seed.slot,
            stage: seed.stage,
            alpha: seed.alpha.0 as f32,
            is_unhealthy: seed.vanishing || seed.exploding,
        });
        self.steps.push(StepPoint {
            step,
            accuracy: row.val_accuracy.0 as f32,
            train_accuracy: row.train_accuracy.0 as f32,
            loss: row.val_loss.0 as f32,
            params: row.params_total,
            seeds: seeds.collect(),
            decision: None,
        });
    }

    /// Validation accuracy with committed seeds alone where the episode is over, else of its newest step, percent.
    pub fn accuracy(&self) -> Option<f64> {
        let newest = || self.steps.last().map(|step| f64::from(step.accuracy));
        self.reached.or_else(newest)
    }

    /// The seed that stands in `slot`, the newest where several did.
    pub fn seed_in(&self, slot: SlotId) -> Option<&SeedLife> {
        let standing = |seed: &&SeedLife| seed.slot == slot && !matches!(seed.end, SeedEnd::Pruned { .. });
        self.seeds.iter().rev().find(standing)
    }

    /// Commands, in order, without their steps: growth by growth, to distinguish schedules.
    pub fn order(&self) -> String {
        let mut orders: Vec<(u32, String)> = Vec::new();
        for seed in &self.seeds {
            orders.push((seed.at.step, format!("{} {}", seed.slot, seed.planted.blueprint)));
            match seed.end {
                SeedEnd::Open => {}
                SeedEnd::Committed(_) => {
                    let step = seed.commit_step().unwrap_or_default();
                    orders.push((step, format!("commit {}", seed.slot)));
                }
                SeedEnd::Pruned { step, .. } => orders.push((step, format!("prune {}", seed.slot))),
            }
        }
        orders.sort_by_key(|(step, _)| *step);
        let orders: Vec<String> = orders.into_iter().map(|(_, order)| order).collect();
        orders.join(", ")
    }
}
