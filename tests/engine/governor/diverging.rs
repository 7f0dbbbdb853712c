//! A network that trains well and is wrecked in evaluation alone: no rollback can mend it.

use std::ops::Range;

use bevy_ecs::prelude::*;
use bevy_platform::cell::SyncCell;
use simic_engine::internals::engine::Engine;
use simic_engine::internals::env::{HostModel, StepStatus};
use simic_engine::internals::growth::LifecycleOp;
use simic_engine::internals::host::{Host, HostError, InjectionSpec, OpCost};
use simic_engine::internals::nn::{Mode, ParamSet};
use simic_engine::internals::random::RunRng;
use simic_engine::internals::schedule::{EngineSet, Startup, Work};
use simic_engine::internals::telemetry::EpisodeEnd;
use tch::Tensor;

use super::diary::{Played, played, scenario_text};

/// A network that trains well and whose evaluation is wrecked from a step on, as batch norm does over features that have
/// next to no variance.
struct Diverging {
    host: Box<dyn Host>,
    step: u32,
    from: u32,
    factor: f64,
}

impl Host for Diverging {
    fn num_ops(&self) -> usize {
        self.host.num_ops()
    }

    fn injection_specs(&self) -> &[InjectionSpec] {
        self.host.injection_specs()
    }

    fn run(&self, ops: Range<usize>, x: &Tensor, mode: Mode) -> Result<Tensor, HostError> {
        self.host.run(ops, x, mode)
    }

    fn params(&self) -> &ParamSet {
        self.host.params()
    }

    fn reinitialise(&mut self, rng: &mut RunRng) -> Result<(), HostError> {
        self.host.reinitialise(rng)
    }

    fn op_costs(&self) -> &[OpCost] {
        self.host.op_costs()
    }

    fn evaluate(&self, ops: Range<usize>, x: &Tensor) -> Result<Tensor, HostError> {
        let is_last = ops.end == self.num_ops();
        let features = self.host.evaluate(ops, x)?;
        if is_last && self.step >= self.from {
            return Ok(features.f_mul_scalar(self.factor)?);
        }
        Ok(features)
    }

    fn refill(&mut self) -> Result<(), HostError> {
        self.step += 1;
        self.host.refill()
    }
}

/// One env that is left alone, whose logits in evaluation are multiplied by `factor` from step `from` on.
fn play_diverging(from: u32, factor: f64, rest: &str) -> Played {
    let text = scenario_text("n_envs: 1, rounds: 1, max_steps: 20", rest);
    let text = text.replace(
        r#"controller: "schedule", schedule: (builtin: "grow_one_seed", wait_on_illegal: true)"#,
        r#"controller: "wait""#,
    );
    let engine = Engine::builder().threads(2).from_ron(&text);
    let mut engine = engine.unwrap_or_else(|problems| panic!("{problems}"));
    let diverge = move |world: &mut World| {
        let envs: Vec<Entity> = world.query_filtered::<Entity, With<HostModel>>().iter(world).collect();
        for env in envs {
            let mut env = world.entity_mut(env);
            let HostModel(host) = env.take().unwrap();
            let host = SyncCell::to_inner(host);
            env.insert(HostModel(SyncCell::new(Box::new(Diverging {
                host,
                step: 0,
                from,
                factor,
            }))));
        }
    };
    let startup = diverge.in_set(EngineSet::Prepare).after(Work::EquipValidation);
    engine.app_mut().add_systems(Startup, startup.before(Work::Restore));
    played(engine)
}

fn steps_with(played: &Played, status: StepStatus) -> Vec<u32> {
    let pages = played.diary.pages.iter().filter(|page| page.status == status);
    pages.map(|page| page.step).collect()
}

#[test]
fn a_host_that_diverges_in_evaluation_alone_is_rolled_back_once_then_taken_as_it_is() {
    let played = play_diverging(12, 1e4, "");

    // Suspected in steps 12 and 13, rolled back in step 14, and not again in step 17: nothing has changed since.
    assert_eq!(steps_with(&played, StepStatus::RolledBack), [14]);
    assert_eq!(played.page(0, 17).panics, Some(2));
    assert!(played.page(0, 17).loss() > 12.0);
    assert_eq!(played.page(0, 17).command, Some(LifecycleOp::Wait), "nothing is vetoed");
    assert_eq!(
        played.page(0, 20).panics,
        Some(2),
        "later steps are compared with step 17"
    );

    // The episode continues, no decision is charged.
    let end = played.stats[0].end.unwrap();
    assert_eq!((end.reason, end.step), (EpisodeEnd::Horizon, 20));
    let rollback = played.page(0, 14).rollback.as_ref().unwrap();
    assert!(!rollback.blamed && rollback.raw_penalty == 0.0);
}

#[test]
fn a_rollback_that_cannot_help_ends_the_episode() {
    let played = play_diverging(8, f64::NAN, "");

    assert_eq!(steps_with(&played, StepStatus::RolledBack), [8, 9]);
    let end = played.stats[0].end.unwrap();
    assert_eq!((end.reason, end.step), (EpisodeEnd::GovernorLimit, 9));
}

#[test]
fn an_episode_that_has_played_a_step_has_a_measured_accuracy_however_it_ends() {
    // Rolled back to the fresh host, which was never validated.
    let played = play_diverging(1, f64::NAN, "");

    let stats = &played.stats[0];
    assert_eq!(
        (stats.end.unwrap().reason, stats.rollbacks),
        (EpisodeEnd::GovernorLimit, 2)
    );
    let shown = stats
        .last_val
        .expect("measured in the step of the rollback")
        .accuracy_percent;
    assert!(shown.is_finite() && stats.best_accuracy_percent >= shown, "{shown}");
}
