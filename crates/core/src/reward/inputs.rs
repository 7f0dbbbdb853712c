//! Inputs of a reward, plain data of one env and step, and the errors in them.

use std::ops::Add;

use smallvec::SmallVec;

use super::breakdown::Term;
use crate::growth::{LifecycleOp, SeedStage};
use crate::schema::NameError;
use crate::seed::SeedRecord;
use crate::validation::{Counterfactual, ValPlan};

/// The measurements of a step that any reward is made of: accuracy of the whole network, with committed seeds alone, and with
/// growing ones too, percent; loss of the whole network, nats; parameters on the output path over the host's. NaN where
/// not measured.
pub const PARTS: [&str; 5] = ["accuracy", "committed_accuracy", "kept_accuracy", "loss", "growth"];

/// A reward that cannot be computed; the run stops rather than store a substitute. Each variant says which part is to blame: the
/// measurements, the mode, or a term of an application.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RewardError {
    /// An input is NaN or infinite: look at what the [`RewardInputs`] were made from.
    #[error("{field} is {value}")]
    NonFiniteInput {
        /// The input, in words.
        field: &'static str,
        /// NaN or infinite.
        value: f64,
    },
    /// An accuracy outside 0 to 100: accuracies are percentages.
    #[error("the accuracy {0} isn't a percentage")]
    NotPercent(f64),
    /// A measurement that the mode needs in this step is missing: name it in its [`profile`](super::RewardMode::profile), so
    /// that scenarios that do not measure it are refused before they run.
    #[error("{0} was not measured")]
    MissingMeasurement(&'static str),
    /// The mode's memory of the episode is of another form: two modes share a state, or a checkpoint was written by another
    /// version of the mode.
    #[error("the reward's memory cannot be read: {0}")]
    Memory(String),
    /// The sum is NaN or infinite although its parts were checked: look at the terms that the message lists.
    #[error("the reward {total} isn't a number; its terms: {}", list(terms))]
    NonFinite {
        /// The sum.
        total: f64,
        /// The terms that are not zero.
        terms: Vec<(Term, f64)>,
    },
    /// A term of an application is NaN or infinite: its function must return a finite number for every step.
    #[error("the reward term `{name}` is {amount}")]
    NonFiniteTerm {
        /// The name as it was registered.
        name: String,
        /// NaN or infinite.
        amount: f64,
    },
    /// No reward mode of that name is registered: add the plugin that registers it.
    #[error(transparent)]
    Name(#[from] NameError),
}

fn list(terms: &[(Term, f64)]) -> String {
    let terms = terms.iter().map(|(term, amount)| format!("{} {amount}", term.name()));
    terms.collect::<Vec<_>>().join(", ")
}

/// The status of the env's episode after the step, as the rollout buffer will record it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EpisodeStatus {
    /// The episode continues.
    #[default]
    Running,
    /// Nothing follows: the potential falls to 0.
    Terminated,
    /// Cut off: the value of the next state is bootstrapped.
    Truncated,
}

/// A non-empty slot as the reward sees it. Accuracies in percent.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedView {
    /// Names the seed for ever.
    pub seed_id: String,
    /// Stage of the seed.
    pub stage: SeedStage,
    /// Steps in the stage, 1 at the first decision in it.
    pub steps_in_stage: u32,
    /// Steps since germination, 1 at the first decision after it.
    pub age: u32,
    /// Share of its output in the host, 0 to 1.
    pub alpha: f64,
    /// Trainable elements of module and gate.
    pub params: u64,
    /// Accuracy of the env.
    pub accuracy_at_germination: f64,
    /// Percentage points, if measured in this step.
    pub contribution: Option<f64>,
    /// Sum of the pairwise interactions, percentage points.
    pub interaction_sum: f64,
    /// Ramping down to be pruned: it earns nothing and still costs rent.
    pub is_withering: bool,
}

impl SeedView {
    /// A seed at a decision.
    pub fn before_action(record: &SeedRecord) -> Self {
        let is_fresh = record.contribution.age == Some(0);
        Self {
            seed_id: record.identity.seed_id.clone(),
            stage: record.stage,
            steps_in_stage: record.steps_in_stage,
            age: record.age_steps,
            alpha: record.alpha.alpha(),
            params: record.params(),
            accuracy_at_germination: record.accuracy.initial,
            contribution: record.contribution.value.filter(|_| is_fresh),
            interaction_sum: record.interaction_sum,
            is_withering: record.is_fading(),
        }
    }

    /// A seed after the step's tick, with the counter that the next decision will see.
    pub fn after_tick(record: &SeedRecord) -> Self {
        Self {
            steps_in_stage: record.steps_in_stage + 1,
            ..Self::before_action(record)
        }
    }

    /// Growing: neither committed nor on its way out.
    pub fn is_growing(&self) -> bool {
        self.stage.is_live() && !self.is_withering
    }
}

/// A slot before the action and after the tick; `None` where it is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotStep {
    /// The seed at the decision.
    pub before: Option<SeedView>,
    /// The seed after the tick.
    pub after: Option<SeedView>,
}

/// Synergy of the seeds in two slots, percentage points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotInteraction {
    /// The two slots, in policy order.
    pub slots: (usize, usize),
    /// Percentage points.
    pub points: f64,
}

/// One env's step, complete. What was not measured is `None`, never 0. The default is a step in which nothing happened to a
/// network without parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RewardInputs {
    /// 1-based.
    pub step: u32,
    /// Steps of an episode.
    pub max_steps: u32,
    /// The learner's discount: shaping is neutral only if both use the same.
    pub gamma: f64,
    /// The last step of the episode.
    pub is_final: bool,
    /// The status of the episode after the step.
    pub status: EpisodeStatus,
    /// The operation that took effect; `Wait` after a refused command.
    pub op: LifecycleOp,
    /// The slot that the command named.
    pub slot: Option<usize>,
    /// Percent, of the whole network.
    pub accuracy: f64,
    /// Nats, of the whole network.
    pub loss: f64,
    /// Parameters of the host without seeds.
    pub host_params: u64,
    /// The slots in order.
    pub slots: SmallVec<[SlotStep; 4]>,
    /// Pairs of growing seeds that were measured in this step.
    pub interactions: Vec<SlotInteraction>,
    /// Joint gain of all growing seeds, percentage points, if measured in this step.
    pub delta_cf: Option<f64>,
    /// Accuracy with only those seeds that are committed after the action, percent.
    pub committed_accuracy: Option<f64>,
    /// Loss of the same network, nats.
    pub committed_loss: Option<f64>,
    /// Accuracy with only those seeds that are committed or growing after the tick, percent.
    pub kept_accuracy: Option<f64>,
    /// Joint gain of the seeds committed before the step, percentage points, if measured in this step.
    pub committed_gain: Option<f64>,
    /// Seeds that something other than the controller removed since the last reward.
    pub auto_pruned: u32,
}

/// Counts and clears the marks of seeds that something other than the controller removed. A rollback that was charged to
/// a decision has cleared those of the seeds that it pruned.
pub(super) fn take_auto_pruned<'a>(records: impl Iterator<Item = &'a mut SeedRecord>) -> u32 {
    records.map(|record| u32::from(record.take_auto_pruned())).sum()
}

impl RewardInputs {
    /// Inputs from the step's measurements and its seeds: `before` at the decision, `after` its tick, both in slot order;
    /// `network` is accuracy, in percent, and loss of the whole network. The decision isn't part of them.
    pub(super) fn of_seeds(
        plan: &ValPlan,
        measured: &Counterfactual,
        (before, after): (SmallVec<[Option<SeedView>; 4]>, &[Option<&SeedRecord>]),
        network: (f64, f64),
    ) -> Self {
        let with_seeds = |stays: fn(&SeedRecord) -> bool| measured.with_seeds(plan, after, network, stays);
        let committed = with_seeds(|seed| seed.stage == SeedStage::Committed);
        let kept = with_seeds(|seed| seed.bears_on_network() && !seed.is_fading());
        let after = after.iter().map(|record| record.map(SeedView::after_tick));
        let slots = before.into_iter().zip(after);
        Self {
            accuracy: network.0,
            loss: network.1,
            slots: slots.map(|(before, after)| SlotStep { before, after }).collect(),
            interactions: interactions(plan, measured),
            delta_cf: match &measured.attribution {
                Some(attribution) => attribution.delta_cf,
                None => plan.has_no_players().then_some(0.0),
            },
            committed_accuracy: committed.map(|(accuracy, _)| accuracy),
            committed_loss: committed.map(|(_, loss)| loss),
            kept_accuracy: kept.map(|(accuracy, _)| accuracy),
            committed_gain: committed_gain(plan, measured),
            ..Self::default()
        }
    }

    /// The acted slot's seed at the decision, if the command took effect there.
    pub fn acted(&self) -> Option<&SeedView> {
        match self.op {
            LifecycleOp::Wait => None,
            _ => self.slots.get(self.slot?)?.before.as_ref(),
        }
    }

    /// Returns whether `op` took effect on slot `index`.
    pub fn executed(&self, op: LifecycleOp, index: usize) -> bool {
        self.op == op && self.slot == Some(index)
    }

    /// Seeds at the decision, with their slots.
    pub fn before(&self) -> impl Iterator<Item = (usize, &SeedView)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(index, slot)| Some((index, slot.before.as_ref()?)))
    }

    /// Seeds after the tick.
    pub fn after(&self) -> impl Iterator<Item = &SeedView> {
        self.slots.iter().filter_map(|slot| slot.after.as_ref())
    }

    /// Committed seeds after the tick.
    pub fn committed(&self) -> impl Iterator<Item = &SeedView> {
        self.after().filter(|seed| seed.stage == SeedStage::Committed)
    }

    /// Parameters that rent is charged for: those of seeds on the output path after the tick, weighed by their amplitudes, plus a
    /// share of the host's per slot. Germinated and training seeds are in grace.
    pub fn effective_params(&self, slot_share: f64) -> f64 {
        let pays = |stage| matches!(stage, SeedStage::Blending | SeedStage::Holding | SeedStage::Committed);
        self.after()
            .filter(|seed| pays(seed.stage))
            .map(|seed| slot_share * self.host_params as f64 + seed.alpha * seed.params as f64)
            .fold(0.0, Add::add)
    }

    /// The values that [`PARTS`] names, in its order.
    pub fn parts(&self) -> [f64; PARTS.len()] {
        [
            self.accuracy,
            self.committed_accuracy.unwrap_or(f64::NAN),
            self.kept_accuracy.unwrap_or(f64::NAN),
            self.loss,
            self.effective_params(0.0) / self.host_params.max(1) as f64,
        ]
    }

    /// The accuracy with committed seeds alone, percent.
    ///
    /// # Errors
    /// It was not measured.
    pub fn committed_accuracy(&self) -> Result<f64, RewardError> {
        self.committed_accuracy.ok_or(RewardError::MissingMeasurement(
            "the accuracy with committed seeds alone",
        ))
    }

    /// The loss with committed seeds alone, nats.
    ///
    /// # Errors
    /// It was not measured.
    pub fn committed_loss(&self) -> Result<f64, RewardError> {
        self.committed_loss
            .ok_or(RewardError::MissingMeasurement("the loss with committed seeds alone"))
    }

    /// Returns whether the seed that grew in slot `index` is gone without an order: its time was up, or it broke.
    pub fn lost(&self, index: usize) -> bool {
        let Some(slot) = self.slots.get(index) else {
            return false;
        };
        let grew = slot.before.as_ref().is_some_and(SeedView::is_growing);
        let stays = slot.after.as_ref().is_some_and(|seed| seed.stage.is_occupied());
        grew && !stays && !self.executed(LifecycleOp::Prune, index)
    }

    /// Every number but the loss, which only the loss family reads, must be one.
    pub(super) fn check(&self) -> Result<(), RewardError> {
        let seeds = self.slots.iter().flat_map(|slot| [&slot.before, &slot.after]).flatten();
        let of_seeds = seeds.flat_map(|seed| {
            [
                ("a seed's alpha", Some(seed.alpha)),
                ("a seed's accuracy at germination", Some(seed.accuracy_at_germination)),
                ("a seed's interaction", Some(seed.interaction_sum)),
                ("a seed's contribution", seed.contribution),
            ]
        });
        let of_env = [
            ("the accuracy", Some(self.accuracy)),
            ("the joint improvement", self.delta_cf),
            ("the committed accuracy", self.committed_accuracy),
            ("the accuracy of the seeds that stay", self.kept_accuracy),
            ("the joint improvement of committed seeds", self.committed_gain),
        ];
        for (field, value) in of_env.into_iter().chain(of_seeds) {
            finite(field, value.unwrap_or_default())?;
        }
        if (0.0..=100.0).contains(&self.accuracy) {
            Ok(())
        } else {
            Err(RewardError::NotPercent(self.accuracy))
        }
    }
}

/// Joint gain of the seeds that were committed when the step was measured, points, if they were players.
fn committed_gain(plan: &ValPlan, measured: &Counterfactual) -> Option<f64> {
    let (plan, matrix) = (plan.plan.as_ref()?, measured.matrix.as_ref()?);
    let with = (plan.committed != 0).then(|| matrix.accuracy(plan.committed))??;
    Some(with - matrix.accuracy(0)?)
}

fn interactions(plan: &ValPlan, measured: &Counterfactual) -> Vec<SlotInteraction> {
    let (Some(plan), Some(attribution)) = (&plan.plan, &measured.attribution) else {
        return Vec::new();
    };
    let players = &plan.coalitions.players;
    let synergies = attribution.synergies.iter();
    synergies
        .map(|synergy| SlotInteraction {
            slots: (players[synergy.players.0], players[synergy.players.1]),
            points: synergy.points,
        })
        .collect()
}

pub(super) fn finite(field: &'static str, value: f64) -> Result<f64, RewardError> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(RewardError::NonFiniteInput { field, value })
    }
}
