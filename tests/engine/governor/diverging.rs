//! A network that trains well and is wrecked only in evaluation: no rollback can mend it.

use std::ops::Range;

use bevy_platform::cell::SyncCell;
use simic_engine::internals::host::{Host, HostError, InjectionSpec, OpCost};
use simic_engine::internals::telemetry::EndReason;
use simic_engine::prelude::*;

use super::diary::{Played, played, scenario_text, steps_with};

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
fn play_diverging(from: u32, factor: f64) -> Played {
    let text = scenario_text("n_envs: 1, rounds: 1, max_steps: 20", "");
    let text = text.replace(r#"controller: "schedule""#, r#"controller: "wait""#);
    let mut engine = crate::support::engine(&text);
    let diverge = move |world: &mut World| {
        let env = world.query_filtered::<Entity, With<HostModel>>().single(world);
        let mut env = world.entity_mut(env.unwrap());
        let host = SyncCell::to_inner(env.take::<HostModel>().unwrap().0);
        let diverging = Diverging {
            host,
            step: 0,
            from,
            factor,
        };
        env.insert(HostModel(SyncCell::new(Box::new(diverging))));
    };
    let startup = diverge.in_set(EngineSet::Prepare).after(Work::EquipValidation);
    engine.app_mut().add_systems(Startup, startup.before(Work::Restore));
    played(engine)
}

#[test]
fn a_host_that_diverges_in_evaluation_alone_is_rolled_back_once_then_taken_unchanged() {
    let played = play_diverging(12, 1e4);

    // Suspected in steps 12 and 13, rolled back in step 14, and not again in step 17: nothing has changed since.
    assert_eq!(steps_with(&played.diary.pages, StepStatus::RolledBack), [14]);
    let page = played.page(0, 17);
    assert!(page.loss() > 12.0);
    assert_eq!(page.command, Some(LifecycleOp::Wait), "nothing is vetoed");
    // Later steps are compared with step 17.
    assert_eq!([page.panics, played.page(0, 20).panics], [Some(2); 2]);

    // The episode continues, no decision is charged.
    let end = played.stats[0].end.unwrap();
    assert_eq!((end.reason, end.step), (EndReason::Horizon, 20));
    let rollback = played.page(0, 14).rollback.as_ref().unwrap();
    assert!(!rollback.blamed && rollback.raw_penalty == 0.0);
}

#[test]
fn a_rollback_that_cannot_help_ends_the_episode() {
    let played = play_diverging(8, f64::NAN);

    assert_eq!(steps_with(&played.diary.pages, StepStatus::RolledBack), [8, 9]);
    let end = played.stats[0].end.unwrap();
    assert_eq!((end.reason, end.step), (EndReason::GovernorLimit, 9));
}

#[test]
fn an_episode_that_has_played_a_step_has_a_measured_accuracy_however_it_ends() {
    // Rolled back to the fresh host, which was never validated.
    let played = play_diverging(1, f64::NAN);

    let stats = &played.stats[0];
    let end = stats.end.unwrap().reason;
    assert_eq!((end, stats.rollbacks), (EndReason::GovernorLimit, 2));
    let measured = stats.last_val.expect("measured in the step of the rollback");
    let shown = measured.accuracy_percent;
    assert!(shown.is_finite() && stats.best_accuracy_percent >= shown, "{shown}");
}
