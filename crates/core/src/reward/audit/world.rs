//! The env of an audit: seeds of known worth under the real lifecycle.
//!
//! A host that has learnt what it can reads [`HOST_ACCURACY`] percent without seeds, for ever. What a coalition of seeds adds
//! is a sum over its members, each by its amplitude:
//!
//! | nature | adds, points |
//! |---|---|
//! | helpful | `12·m` with `m = 1 − exp(−steps/10)` while it learns alone; committed, `8·m·(1 − exp(−steps/10))` more |
//! | harmful | −8 |
//! | hostage | −10, and every pair of hostages +18: each is worth 8 once the other is there, both together −2 |
//!
//! The loss falls in a line with the accuracy. An episode ends for good with its last step: the credit that a truncated one
//! would get afterwards is the learner's estimate, not the reward's.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::growth::{AlphaCurveAction, AlphaSpeed, LifecycleCommand, LifecycleOp, SeedStage, SlotId};
use crate::reward::inputs::{EpisodeStatus, RewardError, RewardInputs, SeedView, take_auto_pruned};
use crate::reward::mode::RewardMode;
use crate::reward::state::RewardState;
use crate::reward::{EpisodeReward, RewardedStep};
use crate::scenario::{RewardProfile, Scenario, TaskSpec};
use crate::seed::{
    Germination, GradientSums, Limits, Rules, SeedIdentity, SeedOrder, SeedRecord, SlotView, command_legal,
    plan_command, tick,
};
use crate::telemetry::{BigInteger, CoalitionRow, CounterfactualMatrix, Num};
use crate::validation::{
    Attribution, AttributionPlan, Counterfactual, LastMeasured, PlanMoment, ValPlan, plan_coalitions,
};

/// The speed and curve of every prune and ramp.
pub const AT_ONCE: (AlphaSpeed, AlphaCurveAction) = (AlphaSpeed::Instant, AlphaCurveAction::Linear);

/// Kinds of seeds by their worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    Helpful,
    Harmful,
    Hostage,
}

/// A command of a script, and the nature of the seed that it germinates.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub command: LifecycleCommand,
    pub nature: Nature,
}

impl Order {
    pub const fn of(command: LifecycleCommand) -> Self {
        Self {
            command,
            nature: Nature::Helpful,
        }
    }

    pub const WAIT: Self = Self::of(LifecycleCommand::Wait);
}

/// Percent, of the host without seeds.
const HOST_ACCURACY: f64 = 30.0;
const HOST_PARAMS: u64 = 1000;
/// Parameters of a seed.
const SEED_PARAMS: u64 = 250;
/// Loss of guessing, nats.
const WORST_LOSS: f64 = 2.3;

/// The data that a seed's worth follows from, next to its record.
#[derive(Clone, Copy, Debug)]
struct Worth {
    nature: Nature,
    /// Steps that it has learnt, alone and committed.
    steps: (u32, u32),
}

impl Worth {
    /// The seed's gain alone at full amplitude, points.
    fn alone(self) -> f64 {
        let grown = |steps: u32| 1.0 - (-f64::from(steps) / 10.0).exp();
        match self.nature {
            Nature::Helpful => {
                let maturity = grown(self.steps.0);
                maturity * (12.0 + 8.0 * grown(self.steps.1))
            }
            Nature::Harmful => -8.0,
            Nature::Hostage => -10.0,
        }
    }
}

/// The outcome of an episode.
#[derive(Clone, Debug)]
pub struct Episode {
    /// Accuracy with committed seeds alone in the last step, percent.
    pub committed_at_end: f64,
    /// Mean of the committed accuracy over the steps.
    pub committed_mean: f64,
    /// Sum of the committed gains over the host, each discounted as the learner does: late gains are worth less.
    pub committed_gains: f64,
    /// Rewards of every step.
    pub rewards: EpisodeReward,
    gamma: f64,
}

impl Episode {
    /// Discounted sum of the rewards.
    pub fn discounted(&self) -> f64 {
        self.rewards.discounted(self.gamma)
    }
}

/// One env in mid-episode.
pub struct World<'a> {
    scenario: &'a Scenario,
    mode: Arc<dyn RewardMode>,
    profile: RewardProfile,
    limits: Limits,
    max_steps: u32,
    step: u32,
    slots: Vec<Option<SeedRecord>>,
    worth: Vec<Option<Worth>>,
    germinations: u32,
    state: RewardState,
    last_measured: LastMeasured,
}

impl<'a> World<'a> {
    pub fn new(scenario: &'a Scenario, task: &TaskSpec, mode: Arc<dyn RewardMode>) -> Self {
        let slots = task.slots.len();
        Self {
            scenario,
            profile: mode.profile(),
            mode,
            limits: Limits::new(&scenario.lifecycle, &scenario.policy.masks, task.max_seeds),
            max_steps: task.max_steps,
            step: 0,
            slots: vec![None; slots],
            worth: vec![None; slots],
            germinations: 0,
            state: RewardState::default(),
            last_measured: LastMeasured::default(),
        }
    }

    /// 1-based.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Steps of an episode.
    pub fn max_steps(&self) -> u32 {
        self.max_steps
    }

    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn seed(&self, slot: usize) -> Option<&SeedRecord> {
        self.slots.get(slot)?.as_ref()
    }

    /// Returns whether a command may be ordered now.
    pub fn allows(&self, command: &LifecycleCommand) -> bool {
        let views: Vec<_> = self
            .slots
            .iter()
            .map(|slot| slot.as_ref().map(SlotView::from))
            .collect();
        command_legal(command, &views, &self.limits).is_ok()
    }

    /// Plays an episode to its end.
    pub fn play(mut self, script: impl Fn(&Self) -> Order) -> Result<Episode, RewardError> {
        let mut rewards = EpisodeReward::default();
        let mut committed = Vec::new();
        for _ in 0..self.max_steps {
            let (inputs, alone) = self.next_step(&script);
            let breakdown = self.mode.compute(&inputs, &mut self.state)?;
            committed.push(alone);
            rewards.steps.push(RewardedStep::of(&inputs, breakdown));
        }
        let gamma = self.scenario.learner.gamma;
        let discounted = |(sum, before, weight): (f64, f64, f64), &after: &f64| {
            (sum + weight * (after - before), after, weight * gamma)
        };
        let (committed_gains, ..) = committed.iter().fold((0.0, HOST_ACCURACY, 1.0), discounted);
        Ok(Episode {
            committed_gains,
            committed_at_end: committed.last().copied().unwrap_or(HOST_ACCURACY),
            committed_mean: committed.iter().sum::<f64>() / committed.len().max(1) as f64,
            rewards,
            gamma,
        })
    }

    /// Measures, acts and ticks; also returns the accuracy with committed seeds alone, percent.
    fn next_step(&mut self, script: impl Fn(&Self) -> Order) -> (RewardInputs, f64) {
        self.step += 1;
        self.learn();
        let is_final = self.step == self.max_steps;
        let (plan, matrix) = self.measure(is_final);
        let attribution = Attribution::of(&matrix, plan.committed);
        let mut records: Vec<_> = self.slots.iter_mut().map(Option::as_mut).collect();
        attribution.write_into(&plan.coalitions.players, &mut records);
        let plan = ValPlan::of(plan);

        let views = self.slots.iter().map(Option::as_ref);
        let before = views.map(|seed| seed.map(SeedView::before_action)).collect();
        let (op, slot) = self.act(script);
        let limits = self.limits;
        let rules = self.rules(&limits);
        for slot in &mut self.slots {
            let plan = tick(slot.as_ref(), &rules);
            plan.commit(slot);
        }
        let auto_pruned = take_auto_pruned(self.slots.iter_mut().flatten());
        let accuracy = matrix.accuracy(matrix.all_on()).unwrap_or(HOST_ACCURACY);
        let measured = Counterfactual {
            matrix: Some(matrix),
            attribution: Some(attribution),
        };
        let after: Vec<_> = self.slots.iter().map(Option::as_ref).collect();
        let inputs = RewardInputs {
            step: self.step,
            max_steps: self.max_steps,
            gamma: self.scenario.learner.gamma,
            is_final,
            status: match is_final {
                true => EpisodeStatus::Terminated,
                false => EpisodeStatus::Running,
            },
            op,
            slot,
            host_params: HOST_PARAMS,
            auto_pruned,
            ..RewardInputs::of_seeds(&plan, &measured, (before, &after), (accuracy, loss(accuracy)))
        };
        for seed in self.slots.iter_mut().flatten() {
            seed.age_measurements();
        }
        let alone = self.accuracy(|_, seed| seed.stage == SeedStage::Committed);
        (inputs, alone)
    }

    /// A step of training: every seed grows older.
    fn learn(&mut self) {
        let accuracy = self.accuracy(|_, seed| seed.bears_on_network());
        let healthy = GradientSums {
            sum_squares: 1.0,
            vanishing: 0,
            exploding: 0,
            tensors: 1,
            elements: SEED_PARAMS,
        };
        for (seed, worth) in self.slots.iter_mut().zip(&mut self.worth) {
            let (Some(seed), Some(worth)) = (seed, worth) else {
                continue;
            };
            match seed.stage {
                SeedStage::Training | SeedStage::Blending | SeedStage::Holding => worth.steps.0 += 1,
                SeedStage::Committed => worth.steps.1 += 1,
                _ => {}
            }
            seed.record_step(accuracy);
            if seed.stage.is_live() {
                seed.note_sampled_batch(true);
                seed.measure_gradients(&healthy, &healthy, &self.scenario.lifecycle);
            }
        }
    }

    /// Evaluates the configurations that the scenario's section `attribution` asks for.
    fn measure(&mut self, is_final: bool) -> (AttributionPlan, CounterfactualMatrix) {
        let scenario = self.scenario;
        let seeds = self.slots.iter().map(Option::as_ref);
        let committed_play = scenario.attribution.include_committed || self.profile.measures_committed;
        let (players, config) = self
            .last_measured
            .find(seeds, committed_play, &scenario.attribution, is_final);
        let moment = PlanMoment {
            step: self.step,
            is_final,
            permutation_seed: u64::from(self.step),
        };
        let plan = plan_coalitions(&players, &config, moment);
        let rows = plan.coalitions.masks.iter().map(|&mask| {
            let accuracy = self.accuracy(|slot, seed| {
                let player = plan.coalitions.players.iter().position(|&player| player == slot);
                match player {
                    Some(player) => mask >> player & 1 == 1,
                    None => seed.bears_on_network(),
                }
            });
            CoalitionRow {
                mask: BigInteger(mask),
                accuracy: Num(accuracy),
                loss: Num(loss(accuracy)),
                discordant: (0, 0),
            }
        });
        let rows = rows.collect();
        let ids = plan.coalitions.players.iter().filter_map(|&slot| {
            let seed = self.slots[slot].as_ref()?;
            Some(seed.identity.seed_id.clone())
        });
        let matrix = CounterfactualMatrix {
            seed_ids: ids.collect(),
            rows,
            samples: 1,
        };
        (plan, matrix)
    }

    /// Percent, with the seeds that take part at their current amplitude.
    fn accuracy(&self, takes_part: impl Fn(usize, &SeedRecord) -> bool) -> f64 {
        let members: SmallVec<[(f64, Worth); 4]> = self
            .slots
            .iter()
            .zip(&self.worth)
            .enumerate()
            .filter_map(|(slot, (seed, worth))| {
                let seed = seed.as_ref().filter(|seed| takes_part(slot, seed))?;
                Some((seed.alpha.alpha(), (*worth)?))
            })
            .collect();
        let alone: f64 = members.iter().map(|(alpha, worth)| alpha * worth.alone()).sum();
        let hostages: SmallVec<[f64; 4]> = members
            .iter()
            .filter(|(_, worth)| worth.nature == Nature::Hostage)
            .map(|(alpha, _)| *alpha)
            .collect();
        let pairs = hostages.iter().enumerate();
        let together: f64 = pairs
            .flat_map(|(i, a)| hostages[i + 1..].iter().map(move |b| 18.0 * a * b))
            .sum();
        (HOST_ACCURACY + alone + together).clamp(0.0, 100.0)
    }

    /// The operation that took effect, and its slot.
    fn act(&mut self, script: impl Fn(&Self) -> Order) -> (LifecycleOp, Option<usize>) {
        let Order { command, nature } = script(self);
        let waited = (LifecycleOp::Wait, None);
        let Some(slot) = command.slot().filter(|_| self.allows(&command)) else {
            return waited;
        };
        let germination = |order: SeedOrder| Ok(self.germination(&order));
        let Ok(plan) = plan_command(&command, self.seed(slot), 0, germination, &self.rules(&self.limits)) else {
            return waited;
        };
        if command.op() == LifecycleOp::Germinate {
            self.germinations += 1;
            self.worth[slot] = Some(Worth { nature, steps: (0, 0) });
        }
        plan.commit(&mut self.slots[slot]);
        (command.op(), Some(slot))
    }

    fn rules<'r>(&self, limits: &'r Limits) -> Rules<'r>
    where
        'a: 'r,
    {
        Rules {
            config: &self.scenario.lifecycle,
            limits,
            step: self.step,
        }
    }

    fn germination(&self, order: &SeedOrder) -> Germination {
        Germination {
            identity: SeedIdentity {
                seed_id: format!("e0.{}.{}", slot_id(order.slot), self.germinations),
                germination: self.germinations,
                slot: slot_id(order.slot),
                blueprint: "audited".into(),
                blueprint_index: order.blueprint,
                style: order.style,
                tempo: order.tempo,
                target: order.target,
                seed_params: SEED_PARAMS,
            },
            gate_params: 0,
            accuracy: self.accuracy(|_, seed| seed.bears_on_network()),
        }
    }
}

fn slot_id(slot: usize) -> SlotId {
    SlotId::new(0, slot as u16)
}

fn loss(accuracy: f64) -> f64 {
    WORST_LOSS * (1.0 - accuracy / 100.0)
}
