//! Every decision of a run is paid, the terms add up, and neither threads nor the plugin's absence change the rest.

use bevy_ecs::prelude::*;
use simic_engine::internals::prior_art::PriorArtPlugin;
use simic_engine::internals::reward::{EpisodeReward, RewardBreakdown, RewardPlugin, StepReward, Term};
use simic_engine::prelude::*;

const ROUNDS: usize = 2;
const STEPS: usize = 20;
const ENVS: usize = 2;

/// One seed per env, committed at step 18.
const SCENARIO: &str = r#"(
    preset: "manual", task: preset("digits_impaired"),
    run: (rounds: 2, n_envs: 2, max_steps: 20),
    policy: (controller: "schedule", schedule: (builtin: "grow_one_seed")),
    reward: REWARD,
)"#;

/// Validation accuracy of each env and step, and what the decision was paid.
#[derive(Resource, Default)]
struct Watched {
    accuracies: Vec<(usize, f64)>,
    rewards: Vec<(usize, RewardBreakdown)>,
}

fn watch(envs: Query<(&EnvId, &ValMetrics, Option<&StepReward>)>, mut watched: ResMut<Watched>) {
    for (id, metrics, reward) in &envs {
        watched.accuracies.push((id.index, metrics.accuracy_percent));
        if let Some(breakdown) = reward.and_then(|reward| reward.0) {
            watched.rewards.push((id.index, breakdown));
        }
    }
}

fn play(reward: &str, threads: usize, is_paid: bool) -> Engine {
    let builder = Engine::builder().with(PriorArtPlugin).threads(threads);
    let builder = if is_paid {
        builder
    } else {
        builder.without::<RewardPlugin>()
    };
    let text = SCENARIO.replace("REWARD", reward);
    let mut engine = builder.from_ron(&text).expect("the scenario is sound");
    engine
        .app_mut()
        .init_resource::<Watched>()
        .add_systems(StepEnd, watch.in_set(EngineSet::Record).after(Work::EmitStep));
    engine.run().expect("the run completes");
    engine
}

#[test]
fn every_step_of_every_env_is_paid_with_any_number_of_threads() {
    let mut one = play("contribution(shaped())", 1, true);
    let two = play("contribution(shaped())", 2, true);

    let paid = &one.world().resource::<Watched>().rewards;
    assert_eq!(paid.len(), ROUNDS * STEPS * ENVS);
    assert_eq!(*paid, two.world().resource::<Watched>().rewards);
    for (_, breakdown) in paid {
        let terms: f64 = breakdown.iter().map(|(_, amount)| amount).sum();
        let total = breakdown.total();
        assert!(total.is_finite() && (total - terms).abs() <= 1e-9 * (1.0 + total.abs()));
    }
    let commits = paid.iter().filter(|(_, paid)| paid.get(Term::CommitShaping) != 0.0);
    assert_eq!(commits.count(), ROUNDS * ENVS);
    let germinations = paid.iter().filter(|(_, paid)| paid.get(Term::Intervention) == -0.15);
    assert_eq!(germinations.count(), ROUNDS * ENVS);
    let ends = paid.iter().filter(|(_, paid)| paid.get(Term::TerminalAccuracy) > 0.0);
    assert_eq!(ends.count(), ROUNDS * ENVS);

    let last_round: Vec<f64> = (0..ENVS)
        .map(|env| {
            let of_env = paid.iter().filter(|(index, _)| *index == env);
            of_env.skip(STEPS).map(|(_, paid)| paid.total()).sum()
        })
        .collect();
    let mut episodes = one.world_mut().query::<(&EnvId, &EpisodeReward)>();
    for (id, episode) in episodes.iter(one.world()) {
        assert_eq!(episode.steps.len(), STEPS);
        assert_eq!(episode.total(), last_round[id.index]);
    }
}

#[test]
fn the_engine_runs_alike_without_rewards() {
    let paid = play("contribution(sparse())", 1, true);
    let unpaid = play("contribution(sparse())", 1, false);

    let (paid, unpaid) = (paid.world().resource::<Watched>(), unpaid.world().resource::<Watched>());
    assert_eq!(paid.accuracies, unpaid.accuracies);
    assert!(unpaid.rewards.is_empty());
    let outcomes = paid.rewards.iter().filter(|(_, paid)| paid.total() != 0.0);
    assert_eq!(outcomes.count(), ROUNDS * ENVS);
}

#[test]
fn the_other_modes_pay_a_whole_run() {
    for reward in [
        "contribution(committed())",
        "contribution(escrow())",
        "contribution(simplified())",
        "contribution(basic())",
        "contribution(basic_plus())",
        "contribution(sparse())",
        "contribution(minimal())",
        "loss((preset: cifar10))",
    ] {
        let app = play(reward, 2, true);
        assert_eq!(
            app.world().resource::<Watched>().rewards.len(),
            ROUNDS * STEPS * ENVS,
            "{reward}"
        );
    }
}
