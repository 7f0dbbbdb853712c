//! A policy network of one's own, without memory, trained by PPO while the run goes on.
//!
//! Run it with `cargo run --release --example custom_network`.

use simic_engine::controller::*;
use simic_engine::learner::LastUpdate;
use simic_engine::prelude::*;
use tch::Tensor;

const HIDDEN: i64 = 64;

/// `observation → trunk → logits, value`.
struct Mlp {
    spec: NetSpec,
    params: PolicyParams,
    trunk: Stack,
    logits: Linear,
    value: Linear,
}

impl Mlp {
    fn build(context: NetContext) -> Result<Box<dyn ActorCritic>, PolicyError> {
        let mut params = context.params();
        let spec = context.spec;
        let trunk = Stack::new(ParamGroup::Shared, "trunk", spec.observation as i64)
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
            trunk,
            logits,
            value,
        }))
    }

    /// `[.., D]` to `[.., A]` and `[..]`.
    fn forward(&self, observations: &Tensor) -> (Tensor, Tensor) {
        let hidden = self.trunk.forward(observations);
        let value = self.value.forward(&hidden).squeeze_dim(-1);
        (self.logits.forward(&hidden), value)
    }
}

impl ActorCritic for Mlp {
    fn spec(&self) -> &NetSpec {
        &self.spec
    }

    fn params(&self) -> &PolicyParams {
        &self.params
    }

    fn value_output(&self) -> ValueOutput {
        let (weight, bias) = (self.value.weight.shallow_clone(), self.value.bias.shallow_clone());
        ValueOutput { weight, bias }
    }

    fn zero_state(&self, _rows: i64) -> RecurrentState {
        RecurrentState(Vec::new())
    }

    fn step(&self, input: &PolicyInput, _: &RecurrentState) -> StepOutput {
        let (logits, value) = self.forward(&input.observations);
        let state = self.zero_state(0);
        StepOutput { logits, value, state }
    }

    fn sequence(&self, input: &NetSequence) -> SequenceOutput {
        let (logits, value) = self.forward(input.observations);
        let (contributions, state) = (None, self.zero_state(0));
        SequenceOutput {
            logits,
            value,
            contributions,
            state,
        }
    }
}

const SCENARIO: &str = r#"(
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 2, n_envs: 4, max_steps: 30),
    policy: (controller: "actor_critic", net: "mlp", net_cfg: (contribution_head: false)),
    lifecycle: (auto_forward: (g1: true, g2: true, g3: true)),
)"#;

fn register(app: &mut App) -> Result<(), ExtensionError> {
    let mut nets = app.world_mut().resource_mut::<NetRegistry>();
    Ok(nets.register("mlp", "one hidden layer, no memory", Mlp::build)?)
}

fn main() -> Result<(), ExtensionError> {
    let mut engine = Engine::builder().extended(register).from_ron(SCENARIO)?;
    engine.run()?;
    let update = &engine.world().resource::<LastUpdate>().0;
    let version = update.as_ref().map_or(0, |update| update.policy_version);
    println!("policy version {version}");
    Ok(())
}
