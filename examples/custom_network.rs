//! A policy network and two observation features of one's own, trained for a few rounds: the network looks at every slot
//! through the same weights, and the features tell it what a seed costs and how far the host has overfitted.
//!
//! Run it with `cargo run --release --example custom_network`.

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use simic_engine::controller::{
    ActorCritic, ENV_FEATURES, Extract, HIDDEN_GAIN, Linear, NetContext, NetRegistry, NetSequence, NetSpec,
    ObservationFeature, ObservationFeatures, ParamGroup, PolicyError, PolicyInput, PolicyParams, RecurrentState,
    SLOT_FEATURES, SequenceOutput, Stack, StepOutput, Treatment, ValueOutput,
};
use simic_engine::learner::LastUpdate;
use simic_engine::prelude::*;
use simic_engine::reward::EpisodeReward;
use simic_engine::run::{ExtensionError, RunPlan, catalog, experiment};
use simic_engine::scenario::{self, Input};
use tch::Tensor;

/// Numbers that tell of the env, and of each slot: the built-in ones and the one that [`register`] adds to either.
const ENV_WIDTH: i64 = ENV_FEATURES as i64 + 1;
const SLOT_WIDTH: i64 = SLOT_FEATURES as i64 + 1;
/// Width of a slot's summary.
const SUMMARY: i64 = 32;
const HIDDEN: i64 = 64;

/// `slots → shared encoder → summaries`, then `env ++ summaries → trunk → logits, value`. Without memory, without a
/// contribution head.
struct SlotNet {
    spec: NetSpec,
    params: PolicyParams,
    encoder: Stack,
    trunk: Stack,
    logits: Linear,
    value: Linear,
}

impl SlotNet {
    fn build(context: NetContext) -> Result<Box<dyn ActorCritic>, PolicyError> {
        let mut params = context.params();
        let spec = context.spec;
        let slots = spec.slots as i64;
        let shared = ParamGroup::Shared;
        // A slot is its features and which blueprint grows in it: one column each, and one for an empty slot.
        let encoder = Stack::new(shared, "slot", SLOT_WIDTH + spec.blueprints as i64 + 1)
            .linear(&mut params, SUMMARY, HIDDEN_GAIN)
            .layer_norm(&mut params)
            .relu();
        let trunk = Stack::new(shared, "trunk", ENV_WIDTH + slots * SUMMARY)
            .linear(&mut params, HIDDEN, HIDDEN_GAIN)
            .layer_norm(&mut params)
            .relu();
        // A small gain lets a fresh policy start near uniform.
        let width = spec.layout().width() as i64;
        let logits = Linear::new(&mut params, ParamGroup::ActorHeads, "logits", [HIDDEN, width], 0.01);
        let value = Linear::new(&mut params, ParamGroup::Critic, "value", [HIDDEN, 1], 0.1);
        Ok(Box::new(Self {
            spec,
            params,
            encoder,
            trunk,
            logits,
            value,
        }))
    }

    /// `[.., D]` and `[.., S]` to `[.., A]` and `[..]`.
    fn forward(&self, observations: &Tensor, blueprints: &Tensor) -> (Tensor, Tensor) {
        let (slots, kinds) = (self.spec.slots as i64, self.spec.blueprints as i64 + 1);
        let env = observations.narrow(-1, 0, ENV_WIDTH);
        let features = observations
            .narrow(-1, ENV_WIDTH, slots * SLOT_WIDTH)
            .unflatten(-1, [slots, SLOT_WIDTH]);
        // An empty slot's blueprint is -1.
        let grows = (blueprints + 1).one_hot(kinds).to_kind(observations.kind());
        let summaries = self.encoder.forward(&Tensor::cat(&[features, grows], -1));
        let hidden = self.trunk.forward(&Tensor::cat(&[env, summaries.flatten(-2, -1)], -1));
        (
            self.logits.forward(&hidden),
            self.value.forward(&hidden).squeeze_dim(-1),
        )
    }
}

impl ActorCritic for SlotNet {
    fn spec(&self) -> &NetSpec {
        &self.spec
    }

    fn params(&self) -> &PolicyParams {
        &self.params
    }

    fn value_output(&self) -> ValueOutput {
        ValueOutput {
            weight: self.value.weight.shallow_clone(),
            bias: self.value.bias.shallow_clone(),
        }
    }

    fn zero_state(&self, _rows: i64) -> RecurrentState {
        RecurrentState(Vec::new())
    }

    fn step(&self, input: &PolicyInput, _state: &RecurrentState) -> StepOutput {
        let (logits, value) = self.forward(&input.observations, &input.blueprints);
        let state = RecurrentState(Vec::new());
        StepOutput { logits, value, state }
    }

    fn sequence(&self, input: &NetSequence) -> SequenceOutput {
        let (logits, value) = self.forward(input.observations, input.blueprints);
        SequenceOutput {
            logits,
            value,
            contributions: None,
            state: RecurrentState(Vec::new()),
        }
    }
}

/// What the run and the scenario's names are extended by.
fn register(app: &mut App) -> Result<(), ExtensionError> {
    let world = app.world_mut();
    world
        .resource_mut::<NetRegistry>()
        .register("slot_net", "slots through shared weights", SlotNet::build)?;
    let mut features = world.resource_mut::<ObservationFeatures>();
    features.register(ObservationFeature {
        name: "generalisation_gap".into(),
        extract: Extract::Env(|env| Some(env.signals.train_accuracy - env.signals.val_accuracy)),
        range: -100.0..=100.0,
        treatment: Treatment::Normalised,
    })?;
    features.register(ObservationFeature {
        name: "log_params".into(),
        extract: Extract::Slot(|seed| Some((1.0 + seed.seed_params as f64).ln() / 20.0)),
        range: 0.0..=2.0,
        treatment: Treatment::Plain,
    })?;
    app.add_plugins(RoundTellerPlugin);
    Ok(())
}

/// Tells what every round came to, once the policy has learnt from it.
struct RoundTellerPlugin;

impl Plugin for RoundTellerPlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(
            RoundEnd,
            tell_round
                .in_set(EngineSet::Record)
                .after(Work::RoundStats)
                .before(Work::TeardownRound),
        );
    }
}

fn tell_round(envs: Query<(&ValMetrics, &EpisodeReward)>, update: Res<LastUpdate>, clock: Res<RunClock>) {
    let count = envs.iter().len() as f64;
    let accuracy = envs.iter().map(|(val, _)| val.accuracy_percent).sum::<f64>() / count;
    let reward = envs.iter().map(|(_, reward)| reward.total()).sum::<f64>() / count;
    println!(
        "round {}: accuracy {accuracy:.1} %, reward {reward:+.2}, {}",
        clock.round() + 1,
        match &update.0 {
            Some(update) => format!("policy version {}", update.policy_version),
            None => "no update".into(),
        }
    );
}

const SCENARIO: &str = r#"(
    name: "custom-network",
    preset: "digits",
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 4, n_envs: 4, max_steps: 40),
    policy: (controller: "actor_critic", net: "slot_net", net_cfg: (contribution_head: false)),
    lifecycle: (auto_forward: (g1: true, g2: true, g3: true)),
)"#;

fn main() -> Result<(), ExtensionError> {
    let loaded = scenario::load(
        &Input {
            label: "custom-network",
            text: SCENARIO,
            overrides: &[],
        },
        &catalog(register)?,
    )?;
    let plan = RunPlan::new(loaded, SCENARIO);

    let mut app = App::new();
    app.add_plugins(SimicPlugins::unrecorded())
        .insert_resource(experiment(&plan)?);
    register(&mut app)?;
    drive(&mut app)?;
    Ok(())
}
