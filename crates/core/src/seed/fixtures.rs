//! Seeds and rules for the tests of this folder.

use super::*;
use crate::growth::*;
use crate::scenario::{AutoForward, LifecycleConfig};

pub const ALL_AUTOMATIC: AutoForward = AutoForward {
    g1: true,
    g2: true,
    g3: true,
};

pub fn limits(config: &LifecycleConfig) -> Limits {
    Limits::new(config, &crate::scenario::fixtures::all_choices(), 0)
}

pub fn identity(style: GerminationStyle) -> SeedIdentity {
    SeedIdentity {
        seed_id: "e0.r0c0.0".into(),
        germination: 0,
        slot: SlotId::new(0, 0),
        blueprint: "conv_light".into(),
        blueprint_index: 1,
        style,
        tempo: Tempo::Standard,
        target: AlphaTarget::Full,
        seed_params: 592,
    }
}

pub fn germination() -> Germination {
    Germination {
        identity: identity(GerminationStyle::LinearAdd),
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
    pub fn new(config: LifecycleConfig) -> Self {
        let limits = limits(&config);
        Self {
            config,
            limits,
            step: 0,
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
        let config = self.config.clone();
        if let Some(seed) = &mut self.slot {
            seed.record_step(50.0);
            if seed.stage.is_live() {
                seed.note_sampled_batch(true);
                seed.measure_gradients(&healthy_sums(), &healthy_sums(), &config);
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

    /// Carries out `operation` on the seed; a refusal leaves the slot as it is.
    pub fn order(
        &mut self,
        operation: impl FnOnce(&SeedRecord, &Rules) -> Result<Plan, FailureReason>,
    ) -> Result<Change, FailureReason> {
        let plan = operation(self.seed(), &self.rules())?;
        Ok(plan.commit(&mut self.slot))
    }

    pub fn tick(&mut self) -> Change {
        let plan = tick(self.slot.as_ref(), &self.rules());
        let change = plan.commit(&mut self.slot);
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

/// A life at the end of the step in which its seed was first held: committed to full alpha, linear ramp.
pub fn held(config: LifecycleConfig) -> Life {
    let mut life = Life::new(LifecycleConfig {
        auto_forward: ALL_AUTOMATIC,
        ..config
    });
    life.measure();
    life.germinate(germination());
    life.tick();
    life.wait_until(16);
    assert_eq!(life.stage(), SeedStage::Holding);
    life
}
