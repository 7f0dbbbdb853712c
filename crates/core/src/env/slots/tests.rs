//! Records, modules and optimizers change together or not at all.

use super::*;
use crate::fixtures::largest;
use crate::growth::*;
use crate::scenario::LifecycleConfig;
use crate::seed::{
    AlphaOrder, Germination, Limits, Rules, fixtures, germinate, germinate_committed, prune, set_alpha_target, tick,
};
use crate::torch::fixtures::{test_backend, test_device};
use tch::Kind;

const CHANNELS: i64 = 8;

/// One slot of one env, driven as the schedule drives it.
struct Plot {
    config: LifecycleConfig,
    limits: Limits,
    env: usize,
    step: u32,
    slot: Slot,
    optimizer: Option<SyncCell<Optimizer>>,
}

impl Plot {
    fn new(env: usize) -> Self {
        let spec = InjectionSpec {
            slot: SlotId::new(0, 0),
            channels: CHANNELS,
            boundary: 1,
            order: 0,
        };
        let mut config = fixtures::automatic();
        (config.gates.min_training_steps, config.min_prune_age) = (0, 0);
        Self {
            limits: fixtures::limits(&config),
            config,
            env,
            step: 1,
            slot: SeedSlots::new(&[spec]).0.remove(0),
            optimizer: None,
        }
    }

    /// With a seed.
    fn grown(env: usize, blueprint: usize, style: GerminationStyle) -> Self {
        let mut slot = Self::new(env);
        slot.germinate(blueprint, style).expect("the tensors can be made");
        slot
    }

    /// With a seed that is held.
    fn held(blueprint: usize, style: GerminationStyle) -> Self {
        let mut slot = Self::grown(0, blueprint, style);
        while slot.stage() != SeedStage::Holding {
            slot.tick();
        }
        slot
    }

    fn rules(&self) -> Rules<'_> {
        let (config, limits, step) = (&self.config, &self.limits, self.step);
        Rules { config, limits, step }
    }

    fn carry_out(&mut self, plan: SeedPlan) -> Result<Change, Failure> {
        let builder = SeedBuilder {
            blueprints: &BlueprintRegistry::default(),
            optimizer: OptimizerConfig::Sgd {
                lr: 0.01,
                momentum: 0.9,
                weight_decay: 0.0,
            },
            implementation: Implementation::Plain,
            backend: test_backend(),
            run_seed: 42,
            round: 0,
            env: self.env,
        };
        carry_out(plan, &mut self.slot, &mut self.optimizer, &builder)
    }

    fn germinate(&mut self, blueprint: usize, style: GerminationStyle) -> Result<Change, Failure> {
        let plan = germinate(Self::germination(blueprint, style), &self.rules());
        self.carry_out(plan.expect("the slot is empty"))
    }

    fn germination(blueprint: usize, style: GerminationStyle) -> Germination {
        let mut germination = fixtures::germination(style);
        let identity = &mut germination.identity;
        (identity.blueprint_index, identity.tempo) = (blueprint, Tempo::Fast);
        germination
    }

    fn order(&mut self, operation: impl FnOnce(&SeedRecord, &Rules) -> Result<SeedPlan, FailureReason>) -> Change {
        let plan = operation(self.slot.record.as_ref().expect("a seed"), &self.rules());
        let change = self.carry_out(plan.expect("a legal order"));
        change.expect("the tensors can be made")
    }

    /// Switches the operator of the seed at full amplitude, in place.
    fn blend_as(&mut self, style: GerminationStyle) {
        let order = AlphaOrder {
            style,
            target: AlphaTarget::Full,
            speed: AlphaSpeed::Instant,
            curve: AlphaCurveAction::Linear,
            gate_params: 81,
        };
        self.order(|seed, rules| set_alpha_target(seed, &order, rules));
    }

    fn tick(&mut self) {
        self.step += 1;
        if let Some(seed) = &mut self.slot.record {
            (seed.gradient.health, seed.gradient.has_exploding) = (Some(1.0), Some(false));
        }
        let plan = tick(self.slot.record.as_ref(), &self.rules());
        self.carry_out(plan).expect("ticks succeed");
    }

    fn stage(&self) -> SeedStage {
        self.slot.record.as_ref().map_or(SeedStage::Dormant, |seed| seed.stage)
    }

    fn weights(&mut self) -> Vec<Tensor> {
        let module = self.slot.module.as_mut().expect("a module").get();
        module.params().map(|param| param.tensor.detach().copy()).collect()
    }

    /// One update from random features, so that there is momentum.
    fn train(&mut self) {
        let module = self.slot.module.as_mut().expect("a module").get();
        let algorithm = self.slot.record.as_ref().expect("a seed").algorithm;
        let h = Tensor::randn([4, CHANNELS, 6, 6], (Kind::Float, test_device()));
        let y = module.blend(&h, 1.0, algorithm, true, crate::nn::Mode::Train).unwrap();
        y.square().sum(Kind::Float).backward();
        let is_sound = Tensor::zeros([0i64; 0], (Kind::Float, test_device()));
        let optimizer = self.optimizer.as_mut().expect("an optimizer").get();
        optimizer.step(&is_sound).unwrap();
    }

    /// Storage and momentum of everything that is optimized.
    fn optimized(&mut self) -> (Vec<usize>, Vec<Tensor>) {
        let optimizer = self.optimizer.as_mut().expect("an optimizer").get();
        let storage = optimizer.params().iter().map(|param| param.data_ptr() as usize);
        let velocities = optimizer.state_tensors().into_iter().flat_map(|(_, list)| list);
        (storage.collect(), velocities.map(Tensor::copy).collect())
    }
}

fn equal(left: &[Tensor], right: &[Tensor]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.equal(right))
}

#[test]
fn an_operator_switched_to_a_gate_and_back_leaves_the_seeds_momentum_alone() {
    let mut slot = Plot::held(1, GerminationStyle::LinearAdd);
    slot.train();
    let (storage, velocities) = slot.optimized();
    assert!(velocities.iter().any(|velocity| largest(velocity) > 0.0));

    slot.blend_as(GerminationStyle::GatedGate);
    let (gated, momentum) = slot.optimized();
    assert_eq!((gated.len(), momentum.len()), (storage.len() + 4, velocities.len() + 4));
    assert!(momentum[velocities.len()..].iter().all(|fresh| largest(fresh) == 0.0));

    slot.blend_as(GerminationStyle::LinearAdd);
    let (after, kept) = slot.optimized();
    assert_eq!(after, storage);
    assert!(equal(&kept, &velocities));
}

#[test]
fn a_gate_learns_as_soon_as_its_seed_adds_something() {
    let mut slot = Plot::held(1, GerminationStyle::GatedGate);
    // The residual is 0 at initialisation, and so is the gate's gradient. The first update wakes the module.
    slot.train();
    let before = slot.weights();

    slot.train();

    let gate = before.len() - 4;
    let moved = |index: usize, after: &[Tensor]| largest(&(&after[index] - &before[index])) > 0.0;
    let after = slot.weights();
    assert!(moved(gate + 2, &after) && moved(gate + 3, &after));
}

#[test]
fn a_prune_drops_module_and_optimizer_at_once_and_keeps_the_report_until_the_slot_is_free() {
    let mut slot = Plot::held(1, GerminationStyle::LinearAdd);

    slot.order(|seed, rules| prune(seed, AlphaSpeed::Instant, AlphaCurveAction::Linear, rules));

    assert!(slot.slot.module.is_none() && slot.optimizer.is_none());
    for _ in 1..7 {
        assert!(slot.slot.record.is_some());
        slot.tick();
    }
    assert_eq!(slot.stage(), SeedStage::Resetting);
    slot.tick();
    assert_eq!(slot.slot.record, None);
}

#[test]
fn a_seed_is_drawn_from_its_own_stream() {
    let drawn = |env: usize| Plot::grown(env, 1, GerminationStyle::GatedGate).weights();
    assert!(equal(&drawn(0), &drawn(0)));
    assert!(!equal(&drawn(0), &drawn(1)));
}

/// A gate that comes later does not depend on what its seed drew.
#[test]
fn a_later_gate_is_drawn_from_its_own_stream() {
    let gate_with = |blueprint: usize| {
        let mut slot = Plot::held(blueprint, GerminationStyle::LinearAdd);
        slot.blend_as(GerminationStyle::GatedGate);
        let mut weights = slot.weights();
        weights.split_off(weights.len() - 4)
    };
    assert!(equal(&gate_with(1), &gate_with(6)));
}

#[test]
fn a_germination_that_fails_leaves_the_slot_empty_and_usable() {
    let mut slot = Plot::new(0);
    // Index 9 belongs to another topology.
    assert!(slot.germinate(9, GerminationStyle::GatedGate).is_err());
    assert!(slot.slot.record.is_none() && slot.slot.module.is_none() && slot.optimizer.is_none());
    assert_eq!(slot.slot.germinations, 0);

    slot.germinate(1, GerminationStyle::GatedGate).unwrap();
    assert_eq!((slot.stage(), slot.slot.germinations), (SeedStage::Germinated, 1));
}

#[test]
fn a_slot_whose_tensors_do_not_fit_its_record_is_found() {
    let mut slot = Plot::grown(0, 1, GerminationStyle::LinearAdd);
    slot.tick();
    assert_eq!(broken_slot_law(&mut slot.slot, &slot.optimizer), None);

    let of_optimizers = "an optimizer is present exactly from TRAINING to COMMITTED for seeds with parameters";
    assert_eq!(broken_slot_law(&mut slot.slot, &None), Some(of_optimizers));
    slot.slot.record = None;
    let of_modules = "a module is present exactly in occupied stages";
    assert_eq!(broken_slot_law(&mut slot.slot, &slot.optimizer), Some(of_modules));
}

#[test]
fn a_committed_seed_has_module_optimizer_and_gate_at_once() {
    for style in [GerminationStyle::SigmoidAdd, GerminationStyle::GatedGate] {
        let mut slot = Plot::new(0);
        let plan = germinate_committed(Plot::germination(1, style), &slot.rules());
        slot.carry_out(plan.expect("the slot is empty")).unwrap();
        assert_eq!(slot.stage(), SeedStage::Committed);
        assert_eq!(broken_slot_law(&mut slot.slot, &slot.optimizer), None);
        // Seeds that take the whole way start from the same weights.
        assert!(equal(&slot.weights(), &Plot::grown(0, 1, style).weights()));
    }
}
