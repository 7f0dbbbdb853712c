//! A custom reward term: every seed that stands in a slot costs a little, and waiting pays a little. It is added to the pay of
//! the scenario's reward, in every mode.
//!
//! Run it with `cargo run --release --example custom_reward`.

use simic_engine::prelude::*;

/// Term that is added to the scenario's reward of the step.
fn thrift(inputs: &RewardInputs) -> f64 {
    let standing = inputs.slots.iter().filter(|slot| slot.after.is_some()).count();
    let waits = inputs.op == LifecycleOp::Wait;
    f64::from(u8::from(waits)) * 0.02 - 0.05 * standing as f64
}

fn register(app: &mut App) {
    let mut terms = app.world_mut().resource_mut::<RewardTerms>();
    terms.register("thrift", "a price on every seed", Arc::new(thrift));
}

const SCENARIO: &str = r#"(
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 1, n_envs: 4, max_steps: 30),
    policy: (controller: "random"),
    lifecycle: (auto_forward: true),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut engine = Engine::builder().with(register).from_ron(SCENARIO)?;
    engine.run()?;
    let mut envs = engine.world_mut().query::<(&EnvId, &EpisodeReward)>();
    for (env, episode) in envs.iter(engine.world()) {
        let own = episode.steps.iter().map(|step| step.breakdown.get(Term::Extension));
        let (env, paid, own) = (env.index, episode.total(), own.sum::<f64>());
        println!("env {env}: paid {paid:+.2}, {own:+.2} of it by the custom term");
    }
    Ok(())
}
