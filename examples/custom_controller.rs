//! A custom controller: it germinates `conv_small` wherever that is legal, and commits it as soon as it may. Once a step it
//! answers the masks of all envs with one decision each; a scenario chooses it by its name.
//!
//! Run it with `cargo run --release --example custom_controller`.

use simic_engine::extend::{AlphaTarget, GerminationStyle, Tempo};
use simic_engine::prelude::*;

struct EagerController {
    blueprint: usize,
}

impl EagerController {
    /// The first command that is legal now.
    fn command(&self, masks: &MaskSet) -> LifecycleCommand {
        let commits = masks.slots_for(LifecycleOp::Commit);
        let commits = commits.iter().map(|slot| LifecycleCommand::Commit { slot });
        let germinations = masks.slots_for(LifecycleOp::Germinate);
        let germinations = germinations.iter().map(|slot| LifecycleCommand::Germinate {
            slot,
            blueprint: self.blueprint,
            style: GerminationStyle::SigmoidAdd,
            tempo: Tempo::Fast,
            target: AlphaTarget::Full,
        });
        let mut commands = commits.chain(germinations);
        let legal = commands.find(|command| masks.allows(command));
        legal.unwrap_or(LifecycleCommand::Wait)
    }
}

impl Controller for EagerController {
    fn name(&self) -> &str {
        "eager"
    }

    fn decide(&mut self, _view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let decisions = masks.iter().map(|masks| {
            let command = self.command(masks);
            Decision::new(command, masks, "as soon as it may")
        });
        Ok(decisions.collect())
    }
}

fn register(app: &mut App) {
    let mut controllers = app.world_mut().resource_mut::<ControllerRegistry>();
    let build = Arc::new(|context: &BuildContext| {
        let blueprint = context.blueprint("policy.controller", "conv_small")?;
        Ok(Box::new(EagerController { blueprint }) as _)
    });
    controllers.register("eager", "germinates and commits as soon as it may", build);
}

const SCENARIO: &str = r#"(
    task: preset("digits_impaired", (batches_per_step: count(4))),
    run: (rounds: 1, n_envs: 2, max_steps: 30),
    lifecycle: (auto_forward: true),
    policy: (controller: "eager"),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut engine = Engine::builder().with(register).from_ron(SCENARIO)?;
    engine.run()?;
    let mut envs = engine.world_mut().query::<(&EnvId, &EpisodeStats)>();
    for (env, stats) in envs.iter(engine.world()) {
        let (germinated, committed) = (stats.growth.germinated, stats.growth.committed);
        let (env, best) = (env.index, stats.best_accuracy_percent);
        println!("env {env}: {germinated} germinated, {committed} committed, at best {best:.1} %");
    }
    Ok(())
}
