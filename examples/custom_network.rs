//! A custom policy network, without memory: an `ActorCritic`. Masks, sampling and PPO are the engine's; a scenario chooses the
//! network by its name.
//!
//! Run it with `cargo run --release --example custom_network`.

use simic_engine::extend::*;
use simic_engine::prelude::*;

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
        Ok(Box::new(Self::new(context).map_err(TorchError::from)?))
    }

    fn new(context: NetContext) -> Result<Self, TchError> {
        let (mut params, hidden) = (context.params(), 64);
        let trunk = Stack::new("trunk", context.spec.observation as i64)
            .linear(params.of(ParamGroup::Shared), hidden, Init::HIDDEN)?
            .relu();
        // A small gain lets a fresh policy start near uniform.
        let (small, zero) = (Init::Orthogonal(0.01), Some(Init::Constant(0.0)));
        let width = context.spec.layout().width() as i64;
        let heads = params.of(ParamGroup::ActorHeads);
        let logits = Linear::new(heads, "logits", [hidden, width], small, zero)?;
        let critic = params.of(ParamGroup::Critic);
        let value = Linear::new(critic, "value", [hidden, 1], Init::Orthogonal(0.1), zero)?;
        params.initialise()?;
        Ok(Self {
            spec: context.spec,
            params,
            trunk,
            logits,
            value,
        })
    }
}

impl ActorCritic for Mlp {
    fn spec(&self) -> &NetSpec {
        &self.spec
    }

    fn params(&self) -> &PolicyParams {
        &self.params
    }

    fn value_output(&self) -> Linear {
        self.value.share()
    }

    fn sequence(&self, input: &NetSequence) -> Result<NetOutput, TchError> {
        let hidden = self.trunk.forward(input.observations)?;
        Ok(NetOutput {
            logits: self.logits.forward(&hidden)?,
            value: self.value.forward(&hidden)?.squeeze_dim(-1),
            state: RecurrentState::default(),
        })
    }
}

const SCENARIO: &str = r#"(
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 2, n_envs: 4, max_steps: 15),
    policy: (controller: "actor_critic", net: "perceptron"),
)"#;

fn register(app: &mut App) {
    let mut nets = app.world_mut().resource_mut::<NetRegistry>();
    nets.register("perceptron", "one hidden layer, no memory", Arc::new(Mlp::build));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut engine = Engine::builder().with(register).from_ron(SCENARIO)?;
    engine.run()?;
    let update = engine.world().resource::<LastUpdate>().0.as_ref();
    println!("updates {}", update.map_or(0, |update| update.updates));
    Ok(())
}
