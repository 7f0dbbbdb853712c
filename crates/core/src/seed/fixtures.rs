//! Seeds and rules for the tests of this folder.

use tch::{Kind, Tensor};

use super::*;
use crate::fixtures::largest;
use crate::growth::*;
use crate::kernels::incubate;
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::scenario::LifecycleConfig;
use crate::scenario::fixtures::{all_choices, slow_lifecycle};
use crate::torch::fixtures::test_backend;
use crate::torch::{NoGrad, is_channels_last};

pub const GOVERNOR: PruneOrder = PruneOrder {
    reason: PruneReason::GovernorRollback,
    initiator: Initiator::Governor,
};

/// Growth is slow, and the engine tries every gate itself.
pub fn automatic() -> LifecycleConfig {
    LifecycleConfig {
        auto_forward: true,
        ..slow_lifecycle()
    }
}

pub fn limits(config: &LifecycleConfig) -> Limits {
    Limits::new(config, &all_choices(), 0)
}

/// The germination of a seed that blends in by `style`.
pub fn germination(style: GerminationStyle) -> Germination {
    Germination {
        identity: SeedIdentity {
            seed_id: "e0.r0c0.0".into(),
            germination: 0,
            slot: SlotId::new(0, 0),
            blueprint: "conv_light".into(),
            blueprint_index: 1,
            style,
            tempo: Tempo::Standard,
            target: AlphaTarget::Full,
            seed_params: 592,
        },
        gate_params: 81,
        accuracy: 50.0,
    }
}

/// Sums of a gradient that nothing is wrong with.
pub fn healthy_sums() -> GradientSums {
    GradientSums {
        sum_squares: 1.0,
        vanishing: 0,
        exploding: 0,
        tensors: 4,
        elements: 592,
    }
}

/// A slot that lives step by step, as the schedule drives it: measure, operate, tick.
pub struct Life {
    pub config: LifecycleConfig,
    pub limits: Limits,
    pub step: u32,
    pub slot: Option<SeedRecord>,
}

impl Life {
    /// An empty slot in the first step.
    pub fn new(config: LifecycleConfig) -> Self {
        let limits = limits(&config);
        Self {
            config,
            limits,
            step: 1,
            slot: None,
        }
    }

    pub fn rules(&self) -> Rules<'_> {
        Rules {
            config: &self.config,
            limits: &self.limits,
            step: self.step,
        }
    }

    pub fn seed(&self) -> &SeedRecord {
        self.slot.as_ref().expect("the slot holds a record")
    }

    pub fn seed_mut(&mut self) -> &mut SeedRecord {
        self.slot.as_mut().expect("the slot holds a record")
    }

    pub fn stage(&self) -> SeedStage {
        self.slot.as_ref().map_or(SeedStage::Dormant, |seed| seed.stage)
    }

    pub fn alpha(&self) -> f64 {
        self.seed().alpha.alpha()
    }

    /// Starts the next step with a healthy measurement of everything.
    pub fn measure(&mut self) {
        self.step += 1;
        if let Some(seed) = &mut self.slot {
            seed.record_step(50.0);
            if seed.stage.is_live() {
                seed.note_sampled_batch(true);
                seed.measure_gradients(&healthy_sums(), &healthy_sums(), &self.config);
            }
            if seed.alpha.alpha() > 0.0 {
                seed.measure_contribution(2.0);
            }
        }
    }

    pub fn germinate(&mut self, germination: Germination) -> Change {
        let plan = germinate(germination, &self.rules()).expect("germination is legal");
        plan.commit(&mut self.slot)
    }

    /// Carries out `operation` on the seed; a refusal leaves the slot unchanged.
    pub fn order(
        &mut self,
        operation: impl FnOnce(&SeedRecord, &Rules) -> Result<SeedPlan, FailureReason>,
    ) -> Result<Change, FailureReason> {
        let plan = operation(self.seed(), &self.rules())?;
        Ok(plan.commit(&mut self.slot))
    }

    pub fn tick(&mut self) -> Change {
        let change = tick(self.slot.as_ref(), &self.rules()).commit(&mut self.slot);
        if let Some(seed) = &mut self.slot {
            assert_eq!(broken_law(seed), None);
            seed.age_measurements();
        }
        change
    }

    /// A step without an order.
    pub fn wait(&mut self) -> Change {
        self.measure();
        self.tick()
    }

    pub fn wait_until(&mut self, step: u32) {
        while self.step < step {
            self.wait();
        }
    }
}

/// The record of a linear seed that has just germinated.
pub fn fresh() -> SeedRecord {
    let mut life = Life::new(slow_lifecycle());
    life.germinate(germination(GerminationStyle::LinearAdd));
    life.slot.expect("a record")
}

/// A life at the end of its first step, in which a linear seed germinated.
pub fn germinated(config: LifecycleConfig) -> Life {
    let mut life = Life::new(config);
    life.germinate(germination(GerminationStyle::LinearAdd));
    life.tick();
    life
}

/// A life at the end of the step in which its seed was first held: committed to full alpha, linear ramp.
pub fn held(config: LifecycleConfig) -> Life {
    let mut life = germinated(LifecycleConfig {
        auto_forward: true,
        ..config
    });
    life.wait_until(16);
    assert_eq!(life.stage(), SeedStage::Holding);
    life
}

pub fn blueprint_named<'a>(registry: &'a BlueprintRegistry, id: &str) -> &'a dyn Blueprint {
    let found = registry.iter().find(|(_, blueprint)| blueprint.id() == id);
    found.unwrap_or_else(|| panic!("no {id}")).1
}

pub fn build(blueprint: &dyn Blueprint, dim: i64, draw: u64) -> Box<dyn SeedModule> {
    let mut rng = RunRng::new(draw, Domain::SeedInit, &[]);
    blueprint.build(dim, &mut rng, test_backend()).unwrap()
}

/// A module of this width, which has as many parameters as expected and declared.
#[track_caller]
pub fn build_counted(registry: &BlueprintRegistry, id: &str, dim: i64, count: u64) -> Box<dyn SeedModule> {
    let blueprint = blueprint_named(registry, id);
    let module = build(blueprint, dim, 0);
    let counts = (blueprint.param_count(dim), module.params().count());
    assert_eq!(counts, (count, count), "{id} at {dim}");
    module
}

/// Checks identity at initialisation, life within three steps and shape; messages name `what`.
#[track_caller]
pub fn assert_new_and_alive(module: &dyn SeedModule, features: impl Fn() -> Tensor, what: &str) {
    let params = module.params().trainable();
    let mut untouched: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
    for step in 0..3 {
        let h = features();
        let delta = module.delta(&h, Mode::Train).unwrap().unwrap();
        assert_eq!(delta.size(), h.size(), "{what}");
        assert!(h.dim() != 4 || is_channels_last(&delta), "{what}");
        assert!(step > 0 || largest(&delta) == 0.0, "{what}");
        let error = incubate(&h, &delta).unwrap() - features();
        error.square().mean(Kind::Float).backward();
        let _no_grad = NoGrad::new();
        for param in params {
            let mut gradient = param.tensor.grad();
            if gradient.defined() {
                if largest(&gradient) > 0.0 {
                    untouched.retain(|name| *name != param.name);
                }
                let _ = param.tensor.shallow_clone().g_sub_(&(&gradient * 0.1));
                let _ = gradient.zero_();
            }
        }
    }
    assert!(untouched.is_empty(), "{what}: no gradient for {untouched:?}");
}
