//! What controllers are built from and shown, for the tests of this folder.

use std::sync::LazyLock;

use crate::actions::fixtures::{BLUEPRINT_NAMES, CNN_BLUEPRINTS, limits, masks};
use crate::actions::{Decision, PolicyError};
use crate::controller::deciders::{BuildContext, Controller};
use crate::controller::view::{DecisionView, EnvRow, EnvView, ObservationFeatures, TrainingSignals};
use crate::growth::SlotId;
use crate::policy::NetRegistry;
use crate::policy::fixtures::nets;
use crate::scenario::Scenario;
use crate::seed::SeedReport;
use crate::torch::HostSyncCounter;
use crate::torch::fixtures::test_device;

pub mod policies;

/// What controllers are built from: a host with three slots, an episode of 150 steps.
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
