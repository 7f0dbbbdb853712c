//! A scenario may narrow what controllers can choose; every one of them then stays within it.

use simic_engine::internals::actions::Head;
use simic_engine::internals::controller::{Chosen, Masks};
use simic_engine::internals::growth::{AlphaTarget, Tempo};
use simic_engine::prelude::*;

use crate::support::engine;

/// Everything chosen in a run, and the blueprints that were offered.
#[derive(Resource, Default)]
struct Choices {
    chosen: Vec<[u8; 8]>,
    offered: Vec<Vec<usize>>,
}

fn note(envs: Query<(&Chosen, &Masks)>, mut choices: ResMut<Choices>) {
    for (chosen, masks) in &envs {
        choices.chosen.extend(chosen.0.iter().map(|decision| decision.indices));
        let masks = masks.0.iter();
        choices
            .offered
            .extend(masks.map(|masks| masks.blueprints_for(0).iter().collect()));
    }
}

#[test]
fn controllers_choose_within_the_action_space() {
    for controller in ["actor_critic", "random", "heuristic"] {
        let mut engine = engine(&format!(
            r#"(
                preset: "manual", task: preset("digits_impaired", (batches_per_step: count(2), val_batches_per_step: count(1))),
                run: (rounds: 1, n_envs: 4, max_steps: 24),
                policy: (controller: "{controller}", masks: (action_space: (
                    allowed_ops: ["wait", "germinate", "commit", "advance"], blueprint: ["norm", "conv_small"],
                    tempo: ["fast", "standard"], alpha_target: ["full"],
                ))),
            )"#
        ));
        let note = note.in_set(EngineSet::Record).after(Work::EndSegments);
        let app = engine.app_mut().init_resource::<Choices>();
        app.add_systems(StepEnd, note.before(Work::EvaluateTest));
        engine.run().expect("the run ends well");

        let choices = engine.world().resource::<Choices>();
        assert_eq!(choices.chosen.len(), 4 * 24, "{controller}");
        assert!(choices.offered.iter().all(|offered| *offered == [3, 6]), "{controller}");
        let mut germinations = 0;
        for indices in &choices.chosen {
            let of = |head: Head| usize::from(indices[head as usize]);
            let op = LifecycleOp::from_code(of(Head::Op)).expect("an op");
            let is_allowed = ![LifecycleOp::Prune, LifecycleOp::SetAlphaTarget].contains(&op);
            assert!(is_allowed, "{controller}");
            if op == LifecycleOp::Germinate {
                germinations += 1;
                assert!([3, 6].contains(&of(Head::Blueprint)), "{controller}");
                assert_ne!(of(Head::Tempo), Tempo::Slow.code(), "{controller}");
                assert_eq!(of(Head::AlphaTarget), AlphaTarget::Full.code(), "{controller}");
            }
        }
        assert!(germinations > 0, "{controller} grew nothing: nothing was tested");
    }
}
