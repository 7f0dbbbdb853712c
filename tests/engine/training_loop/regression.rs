//! Hosts learn as much as they should, alone and with seeds. With seeds it is slow; run it with
//! `cargo test --release --test engine -- --ignored`.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::internals::env::{GrowingEnv, GrowthContext};
use simic_engine::internals::growth::{AlphaCurve, AlphaTarget, GerminationStyle, SeedStage, Tempo};
use simic_engine::internals::seed::{
    Change, Effect, GateNetwork, Germination, Plan, RampShape, SeedIdentity, germinate,
};
use simic_engine::prelude::*;

use super::support::{WAIT, app, play, scenario};

/// Validation accuracy of every env at its last step, percent.
#[derive(Resource, Default)]
struct Final(Vec<f64>);

fn note(envs: Query<&ValMetrics>, mut accuracies: ResMut<Final>) {
    accuracies.0 = envs.iter().map(|metrics| metrics.accuracy_percent).collect();
}

/// Envs of a preset that are left alone for 100 steps.
fn waiting(preset: &str, n_envs: usize) -> Engine {
    let text = scenario(&format!(r#"preset("{preset}")"#), n_envs, 100, WAIT);
    app(&text, |app: &mut App| {
        app.init_resource::<Final>()
            .add_systems(StepEnd, note.after(Work::EmitStep));
    })
}

fn accuracies(app: Engine) -> Vec<f64> {
    let n_envs = app.world().resource::<Experiment>().envs.len();
    let Final(accuracies) = play(app);
    assert_eq!(accuracies.len(), n_envs);
    accuracies
}

/// Commits a seed at alpha 1 in every slot before the first step, past all stages in between.
fn commit_seeds(mut envs: Query<GrowingEnv>, mut growth: GrowthContext) {
    let limits = growth.experiment.limits();
    let blueprint = growth
        .blueprints
        .names()
        .position(|name| name == "conv_heavy")
        .expect("a built-in");
    for mut env in &mut envs {
        for index in 0..env.slots.0.len() {
            let spec = env.slots.0[index].spec;
            let recipe = growth.blueprints.get(blueprint).expect("a built-in");
            let identity = SeedIdentity {
                seed_id: format!("e{}.{}.0", env.id.index, spec.slot),
                germination: index as u32,
                slot: spec.slot,
                blueprint: recipe.id().into(),
                blueprint_index: blueprint,
                style: GerminationStyle::SigmoidAdd,
                tempo: Tempo::Standard,
                target: AlphaTarget::Full,
                seed_params: recipe.param_count(spec.channels),
            };
            let germination = Germination {
                identity,
                gate_params: GateNetwork::param_count(spec.channels),
                accuracy: 0.0,
            };
            let plan = germinate(germination, &growth.rules(&limits)).expect("the slot is empty");
            growth.apply(plan, index, &mut env, false).expect("a seed can be built");

            let mut committed = env.slots.0[index].record.clone().expect("it germinated");
            committed.stage = SeedStage::Committed;
            let full = RampShape::new(AlphaCurve::Linear, 1.0);
            committed.alpha.retarget(1.0, 0, full).expect("alpha rests");
            let change = Change {
                effects: [Effect::CreateOptimizer].into_iter().collect(),
                ..Change::default()
            };
            let next = Some(committed);
            let plan = Plan { next, change };
            growth
                .apply(plan, index, &mut env, false)
                .expect("an optimizer can be built");
        }
    }
}

#[test]
fn a_capable_host_alone_reads_at_least_88_percent_of_the_digits() {
    let accuracies = accuracies(waiting("digits_baseline", 2));
    assert!(accuracies.iter().all(|accuracy| *accuracy >= 88.0), "{accuracies:?}");
}

#[test]
fn an_impaired_host_alone_reads_at_most_35_percent_of_the_digits() {
    let accuracies = accuracies(waiting("digits_impaired", 2));
    assert!(accuracies.iter().all(|accuracy| *accuracy <= 35.0), "{accuracies:?}");
}

#[test]
#[ignore = "slow: trains four hosts and twelve seeds for 100 steps"]
fn an_impaired_host_with_a_seed_in_every_slot_reads_at_least_70_percent_of_the_digits() {
    let mut app = waiting("digits_impaired", 4);
    app.app_mut()
        .add_systems(RoundStart, commit_seeds.after(Work::BeginControllerEpisodes));

    let accuracies = accuracies(app);
    assert!(accuracies.iter().all(|accuracy| *accuracy >= 70.0), "{accuracies:?}");
}
