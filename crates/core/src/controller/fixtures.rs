//! Inputs of controllers, controllers around small networks, random observations and masks, for the tests of this folder.

use std::sync::LazyLock;

use tch::{Kind, Tensor};

use crate::actions::fixtures::{AT, BLUEPRINT_NAMES, CNN_BLUEPRINTS, any_limits, any_reports, limits, masks};
use crate::actions::{Choices, Decision, MaskSet, PolicyError};
use crate::controller::deciders::{ActorCriticController, BuildContext, Controller, LearningPolicy};
use crate::controller::view::{DecisionView, EnvRow, EnvView, Observation, ObservationFeatures, TrainingSignals};
use crate::growth::SlotId;
use crate::policy::fixtures::{BLUEPRINTS, FEATURES, SLOTS, nets, small};
use crate::policy::{ActorCritic, NetRegistry};
use crate::random::{Draw, RunRng};
use crate::scenario::Scenario;
use crate::seed::SeedReport;
use crate::torch::HostSyncCounter;
use crate::torch::fixtures::{on_device, test_device};

/// The inputs from which controllers are built: a host with three slots, an episode of 150 steps.
pub struct Ground {
    pub scenario: Scenario,
    pub slots: Vec<SlotId>,
    pub nets: NetRegistry,
    pub features: ObservationFeatures,
}

impl Default for Ground {
    fn default() -> Self {
        let mut scenario = crate::scenario::fixtures::slow_scenario();
        scenario.run.n_envs = 8;
        Self {
            scenario,
            slots: (0..3).map(|col| SlotId::new(0, col)).collect(),
            nets: nets(),
            features: ObservationFeatures::default(),
        }
    }
}

impl Ground {
    pub fn with(change: impl FnOnce(&mut Scenario)) -> Self {
        let mut ground = Self::default();
        change(&mut ground.scenario);
        ground
    }

    pub fn context(&self) -> BuildContext<'_> {
        BuildContext {
            scenario: &self.scenario,
            slots: &self.slots,
            blueprints: &BLUEPRINT_NAMES,
            selectable: CNN_BLUEPRINTS[0],
            max_steps: 150,
            envs: &[0, 1, 2, 3, 4, 5, 6, 7],
            rounds: &(0..1),
            device: test_device(),
            nets: &self.nets,
            features: &self.features,
            external: None,
            folder: None,
        }
    }
}

/// One env at one step, under the default rules.
pub struct Scene {
    pub step: u32,
    pub reports: Vec<Option<SeedReport>>,
    pub signals: TrainingSignals,
}

impl Scene {
    pub fn new(step: u32, reports: Vec<Option<SeedReport>>) -> Self {
        Self {
            step,
            reports,
            signals: TrainingSignals {
                step,
                ..Default::default()
            },
        }
    }

    pub fn env_view(&self, env: usize) -> EnvView<'_> {
        EnvView {
            row: EnvRow {
                env,
                episode: env as u64,
            },
            reports: &self.reports,
            signals: &self.signals,
            observation: None,
        }
    }

    pub fn try_decide(&self, controller: &mut impl Controller) -> Result<Decision, PolicyError> {
        let masks = masks(&self.reports, &limits());
        let envs = [self.env_view(0)];
        let decisions = controller.decide(&view_of(self.step, &envs), &[masks])?;
        Ok(decisions.into_iter().next().unwrap())
    }

    pub fn decide(&self, controller: &mut impl Controller) -> Decision {
        self.try_decide(controller).unwrap()
    }
}

pub fn view_of<'a>(step: u32, envs: &'a [EnvView<'a>]) -> DecisionView<'a> {
    static READS: LazyLock<HostSyncCounter> = LazyLock::new(HostSyncCounter::default);
    DecisionView {
        round: 0,
        step,
        envs,
        reads: &READS,
    }
}

/// A controller with a small network and logits that differ enough to matter.
pub fn controller(kind: &str) -> ActorCriticController {
    let mut ground = Ground::default();
    (ground.scenario.policy.net, ground.scenario.policy.net_cfg) = (kind.into(), small());
    let controller = ActorCriticController::new(&ground.context()).unwrap();
    sharpen(controller.net());
    controller
}

/// Makes a fresh, nearly uniform policy prefer something.
pub fn sharpen(net: &dyn ActorCritic) {
    let _no_grad = crate::torch::NoGrad::new();
    for param in net.params().iter().filter(|param| param.name.starts_with("head.")) {
        let _ = param.tensor.shallow_clone().g_mul_scalar_(5.0);
    }
}

/// Envs with random observations and random, valid masks.
pub struct Crowd {
    pub observations: Vec<Observation>,
    pub masks: Vec<MaskSet>,
    reports: Vec<Option<SeedReport>>,
    signals: TrainingSignals,
}

impl Crowd {
    pub fn new(envs: usize, stream: u64) -> Self {
        let mut rng = RunRng::from_seed(stream);
        let observations = (0..envs)
            .map(|_| {
                let mut normalised = vec![0.0; FEATURES];
                rng.fill_normal(&mut normalised, 1.0);
                Observation {
                    raw: normalised.clone(),
                    normalised,
                    blueprints: (0..SLOTS)
                        .map(|_| rng.below(BLUEPRINTS as u64 + 1) as i64 - 1)
                        .collect(),
                }
            })
            .collect();
        let masks = (0..envs).map(|_| any_masks(&mut rng)).collect();
        Self {
            observations,
            masks,
            reports: vec![None; SLOTS],
            signals: TrainingSignals::default(),
        }
    }

    /// Places `place[k]` of the crowd as envs `place[k]`, in that order.
    pub fn views(&self, places: &[usize]) -> Vec<EnvView<'_>> {
        let view = |&place: &usize| EnvView {
            row: EnvRow {
                env: place,
                episode: place as u64,
            },
            reports: &self.reports,
            signals: &self.signals,
            observation: Some(&self.observations[place]),
        };
        places.iter().map(view).collect()
    }

    pub fn masks(&self, places: &[usize]) -> Vec<MaskSet> {
        places.iter().map(|&place| self.masks[place].clone()).collect()
    }

    /// Decisions of `controller` for the envs in `places` at `step`.
    pub fn decide(&self, controller: &mut ActorCriticController, step: u32, places: &[usize]) -> Vec<Decision> {
        let (decisions, reads) = self.attempt(controller, step, places);
        assert_eq!(reads, 1);
        decisions.unwrap()
    }

    /// The fallible form, which also returns the number of reads from the device.
    pub fn attempt(
        &self,
        controller: &mut ActorCriticController,
        step: u32,
        places: &[usize],
    ) -> (Result<Vec<Decision>, PolicyError>, u64) {
        let reads = HostSyncCounter::default();
        let envs = self.views(places);
        let view = DecisionView {
            round: 0,
            step,
            envs: &envs,
            reads: &reads,
        };
        let decisions = controller.decide(&view, &self.masks(places));
        (decisions, reads.count())
    }
}

/// Masks of a random state under random rules.
fn any_masks(rng: &mut RunRng) -> MaskSet {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::{Config, RngSeed, TestRunner};
    let mut runner = TestRunner::new(Config {
        rng_seed: RngSeed::Fixed(rng.next_u64()),
        ..Config::default()
    });
    let reports = any_reports(SLOTS).new_tree(&mut runner).unwrap().current();
    let limits = any_limits().new_tree(&mut runner).unwrap().current();
    let per_slot = [Choices::first_n(BLUEPRINTS).without(0); SLOTS];
    MaskSet::build(AT, &reports, &per_slot, &limits).unwrap()
}

/// Masks as they are stored: `bool [B, T, W]`.
pub fn stored_masks(masks: &[&MaskSet], shape: [i64; 2]) -> Tensor {
    let width = MaskSet::row_width(SLOTS, BLUEPRINTS);
    let mut rows = vec![false; width * masks.len()];
    for (masks, row) in masks.iter().zip(rows.chunks_mut(width)) {
        masks.write_row(BLUEPRINTS, row);
    }
    let bytes: Vec<u8> = rows.into_iter().map(u8::from).collect();
    on_device(Tensor::from_slice(&bytes))
        .to_kind(Kind::Bool)
        .view([shape[0], shape[1], width as i64])
}
