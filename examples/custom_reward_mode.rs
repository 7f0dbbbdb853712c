//! A custom reward mode, with a setting: pays for every accuracy that was never reached before in the episode, and
//! remembers the best. A scenario chooses it by its name.
//!
//! Run it with `cargo run --release --example custom_reward_mode`.

use simic_engine::prelude::*;

section! {
    /// Settings of the mode.
    #[derive(Copy)]
    pub struct Record {
        /// Reward per percentage point above the best so far.
        per_point: f64 = 0.1, POSITIVE;
    }
}

impl RewardMode for Record {
    fn pay(&self, step: &RewardInputs, state: &mut RewardState, out: &mut RewardBreakdown) -> Result<(), RewardError> {
        let best = state.recall::<Option<f64>>()?.unwrap_or(step.accuracy);
        out.pay(Term::Extension, self.per_point * (step.accuracy - best).max(0.0));
        state.remember(&Some(best.max(step.accuracy)))
    }
}

fn register(app: &mut App) {
    let mut modes = app.world_mut().resource_mut::<RewardModes>();
    modes.register_with("record", "new best accuracies", |settings: Record| Arc::new(settings));
}

const SCENARIO: &str = r#"(
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 1, n_envs: 2, max_steps: 20),
    policy: (controller: "random"),
    reward: contribution(record((per_point: 0.5))),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut engine = Engine::builder().with(register).from_ron(SCENARIO)?;
    engine.run()?;
    let mut envs = engine.world_mut().query::<(&EnvId, &EpisodeReward)>();
    for (env, episode) in envs.iter(engine.world()) {
        let records = episode.steps.iter().filter(|step| step.breakdown.total() > 0.0);
        let (env, records, paid) = (env.index, records.count(), episode.total());
        println!("env {env}: {records} records, paid {paid:.2}");
    }
    Ok(())
}
