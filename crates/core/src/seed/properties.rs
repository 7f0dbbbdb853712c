//! Random lives: the laws of the lifecycle hold for any orders, measurements and rules.

use proptest::prelude::*;

use super::fixtures::*;
use super::*;
use crate::growth::*;
use crate::scenario::fixtures::{all_choices, slow_gates, slow_lifecycle};
use crate::scenario::{GateConfig, GateMode, LifecycleConfig, MaskConfig, OnCommit};

/// One step's orders and measurements of one env.
#[derive(Clone, Debug)]
struct Step {
    accuracy: f64,
    gradients: GradientSums,
    gradient_is_finite: bool,
    contribution: f64,
    measured: bool,
    command: LifecycleCommand,
    /// The governor cuts this slot, if it holds a live seed.
    cut: Option<usize>,
}

fn any_of<T: Copy + std::fmt::Debug + 'static>(members: &'static [T]) -> impl Strategy<Value = T> + Clone {
    prop::sample::select(members)
}

prop_compose! {
    fn any_command()(
        op in prop_oneof![
            5 => Just(LifecycleOp::Advance),
            2 => Just(LifecycleOp::Germinate),
            4 => any_of(&[LifecycleOp::Wait, LifecycleOp::SetAlphaTarget, LifecycleOp::Prune, LifecycleOp::Commit]),
        ],
        // Mostly the first slot, so that lives grow old; sometimes one that the env does not have.
        slot in prop_oneof![4 => Just(0usize), 1 => 0usize..5],
        style in any_of(&GerminationStyle::ALL),
        tempo in any_of(&Tempo::ALL),
        target in any_of(&AlphaTarget::ALL),
        speed in any_of(&AlphaSpeed::ALL),
        curve in any_of(&AlphaCurveAction::ALL),
    ) -> LifecycleCommand {
        match op {
            LifecycleOp::Wait => LifecycleCommand::Wait,
            LifecycleOp::Germinate => LifecycleCommand::Germinate { slot, blueprint: 1, style, tempo, target },
            LifecycleOp::SetAlphaTarget => LifecycleCommand::SetAlphaTarget { slot, style, target, speed, curve },
            LifecycleOp::Prune => LifecycleCommand::Prune { slot, speed, curve },
            LifecycleOp::Commit => LifecycleCommand::Commit { slot },
            LifecycleOp::Advance => LifecycleCommand::Advance { slot },
        }
    }
}

fn any_gradients() -> impl Strategy<Value = GradientSums> {
    let exploding = GradientSums {
        sum_squares: f64::INFINITY,
        exploding: 1,
        ..healthy_sums()
    };
    prop_oneof![
        20 => Just(healthy_sums()),
        1 => Just(exploding),
        1 => Just(GradientSums::default()),
    ]
}

prop_compose! {
    fn any_step()(
        accuracy in prop_oneof![9 => 0.0..100.0f64, 1 => Just(f64::NAN)],
        gradients in any_gradients(),
        gradient_is_finite in prop::bool::weighted(0.9),
        contribution in -5.0..5.0f64,
        measured in prop::bool::weighted(0.8),
        command in any_command(),
        cut in prop::option::weighted(0.02, 0usize..4),
    ) -> Step {
        Step { accuracy, gradients, gradient_is_finite, contribution, measured, command, cut }
    }
}

prop_compose! {
    fn any_config()(
        (auto_forward, strict) in any::<(bool, bool)>(),
        (steps, min_prune_age) in (0u32..4, 0u32..4),
        max_holding_steps in prop::option::of(0u32..6),
        on_commit in any_of(&[OnCommit::ResetMomentum, OnCommit::Keep, OnCommit::Freeze]),
    ) -> LifecycleConfig {
        let mode = if strict { GateMode::Strict } else { GateMode::Permissive };
        LifecycleConfig {
            auto_forward,
            gates: GateConfig { mode, min_training_steps: steps, min_blending_steps: steps, ..slow_gates() },
            min_prune_age,
            max_holding_steps,
            on_commit,
            ..slow_lifecycle()
        }
    }
}

fn any_masks() -> impl Strategy<Value = MaskConfig> {
    any::<bool>().prop_map(|sequential_germination| MaskConfig {
        sequential_germination,
        ..all_choices()
    })
}

/// The tensors that their owner would hold: changed only by effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tensors {
    module: bool,
    gate: bool,
    optimizer: bool,
}

impl Tensors {
    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::InsertSeed => assert!(!std::mem::replace(&mut self.module, true)),
            Effect::AddGate => assert!(self.module && !std::mem::replace(&mut self.gate, true)),
            Effect::RemoveGate => assert!(std::mem::replace(&mut self.gate, false)),
            Effect::CreateOptimizer => assert!(self.module && !std::mem::replace(&mut self.optimizer, true)),
            Effect::ResetMomentum | Effect::StopWeightDecay => assert!(self.optimizer),
            Effect::DropSeed => {
                assert!(self.module);
                *self = Self::default();
            }
        }
    }

    fn belonging_to(slot: &Option<SeedRecord>) -> Self {
        slot.as_ref().map_or(Self::default(), |seed| Self {
            module: seed.stage.is_occupied(),
            gate: seed.stage.is_occupied() && seed.algorithm == AlphaAlgorithm::Gate,
            optimizer: has_optimizer(seed.stage),
        })
    }
}

struct Env {
    config: LifecycleConfig,
    limits: Limits,
    step: u32,
    slots: Vec<Option<SeedRecord>>,
    tensors: Vec<Tensors>,
}

impl Env {
    fn rules(&self) -> Rules<'_> {
        Rules {
            config: &self.config,
            limits: &self.limits,
            step: self.step,
        }
    }

    fn views(&self) -> Vec<Option<SlotView>> {
        let view = |slot: &Option<SeedRecord>| slot.as_ref().map(SlotView::from);
        self.slots.iter().map(view).collect()
    }

    fn commit(&mut self, slot: usize, plan: SeedPlan) {
        let change = plan.commit(&mut self.slots[slot]);
        for &effect in &change.effects {
            self.tensors[slot].carry_out(effect);
        }
        let to_pruned = change.transition.is_some_and(|t| t.to == SeedStage::Pruned);
        assert_eq!(change.pruned.is_some(), to_pruned);
        self.check_laws();
    }

    fn measure(&mut self, step: &Step) {
        self.step += 1;
        for seed in self.slots.iter_mut().flatten() {
            seed.record_step(step.accuracy);
            if seed.stage.is_live() {
                seed.note_sampled_batch(step.gradient_is_finite);
                seed.measure_gradients(&step.gradients, &healthy_sums(), &self.config);
            }
            if step.measured && seed.alpha.alpha() > 0.0 {
                seed.measure_contribution(step.contribution);
            }
        }
    }

    /// Executes a command without asking `legal` first, as a careless caller would.
    fn execute(&self, command: &LifecycleCommand) -> Option<Result<SeedPlan, FailureReason>> {
        let seed = self.slots.get(command.slot()?)?.as_ref();
        let germination = |order: SeedOrder| {
            let mut seed = germination(order.style);
            (seed.identity.tempo, seed.identity.target) = (order.tempo, order.target);
            Ok(seed)
        };
        Some(plan_command(command, seed, 81, germination, &self.rules()))
    }

    /// The mask and the execution of an op must agree.
    fn order(&mut self, command: &LifecycleCommand) {
        let permission = command_legal(command, &self.views(), &self.limits);
        let outcome = self.execute(command);
        match (permission, outcome) {
            (Ok(()), None) => assert_eq!(command.op(), LifecycleOp::Wait),
            (Ok(()), Some(Ok(plan))) => {
                let slot = command.slot().expect("only waiting has no slot");
                self.commit(slot, plan);
            }
            (Ok(()), Some(Err(refusal))) => assert!(
                matches!(refusal, FailureReason::GateFailed { .. }),
                "a legal {command:?} was refused: {refusal}"
            ),
            (Err(_), None) => {}
            (Err(_), Some(_)) if command.op() == LifecycleOp::Germinate => {}
            (Err(reason), Some(outcome)) => assert_eq!(outcome, Err(reason)),
        }
    }

    fn cut(&mut self, slot: usize) {
        let Some(seed) = self.slots.get(slot).and_then(Option::as_ref) else {
            return;
        };
        match prune_now(seed, GOVERNOR, &self.rules()) {
            Ok(plan) => self.commit(slot, plan),
            Err(_) => assert!(!seed.stage.is_live()),
        }
    }

    fn tick(&mut self) {
        for slot in 0..self.slots.len() {
            let before = self.slots[slot].clone();
            self.commit(slot, tick(before.as_ref(), &self.rules()));
            if let (Some(before), Some(after)) = (before, &mut self.slots[slot]) {
                alpha_moves_its_way(&before, after);
                after.age_measurements();
            }
        }
    }

    fn check_laws(&self) {
        let occupied = self.views().into_iter().flatten();
        let occupied = occupied.filter(|view| view.stage.is_occupied()).count();
        assert!(self.limits.max_seeds == 0 || occupied <= self.limits.max_seeds as usize);
        for (slot, tensors) in self.slots.iter().zip(&self.tensors) {
            assert_eq!(*tensors, Tensors::belonging_to(slot));
            let Some(seed) = slot else { continue };
            assert_eq!(broken_law(seed), None);
            assert!(seed.history.len() <= 100);
            let report = seed.report("conv_light", &slow_gates());
            assert_eq!(SlotView::from(seed), SlotView::from(&report));
        }
    }
}

fn alpha_moves_its_way(before: &SeedRecord, after: &SeedRecord) {
    let (old, new) = (before.alpha.alpha(), after.alpha.alpha());
    assert!((0.0..=1.0).contains(&new));
    match before.alpha.mode() {
        _ if after.stage == SeedStage::Pruned => assert_eq!(new, 0.0),
        AlphaMode::Hold => assert!(new == old || after.stage == SeedStage::Holding),
        AlphaMode::Up => assert!(old <= new),
        AlphaMode::Down => assert!(new <= old),
    }
}

proptest! {
    #[test]
    fn every_life_keeps_the_laws(
        config in any_config(),
        masks in any_masks(),
        slots in 1usize..=4,
        max_seeds in 0u32..4,
        steps in prop::collection::vec(any_step(), 1..80),
    ) {
        let limits = Limits::new(&config, &masks, max_seeds);
        let (slots, tensors) = (vec![None; slots], vec![Tensors::default(); slots]);
        let mut env = Env { config, limits, step: 0, slots, tensors };
        for step in &steps {
            env.measure(step);
            env.order(&step.command);
            if let Some(slot) = step.cut {
                env.cut(slot);
            }
            env.tick();
        }
    }
}
