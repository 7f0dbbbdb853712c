//! Every decision of a run is paid, the terms add up, and neither threads nor the plugin's absence change the rest.

use simic_engine::extend::EngineBuilder;
use simic_engine::internals::prior_art::PriorArtPlugin;
use simic_engine::internals::reward::RewardPlugin;
use simic_engine::prelude::*;

use crate::recorded::ONE_SEED;
use crate::support::builder;

const ROUNDS: usize = 2;
const STEPS: usize = 20;
const ENVS: usize = 2;

/// One seed per env, committed at step 18.
const SCENARIO: &str = r#"(
    preset: "manual", task: preset("digits_impaired"),
    run: (rounds: 2, n_envs: 2, max_steps: 20),
    policy: (controller: "schedule", schedule: (ENTRIES)),
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

fn play(reward: &str, builder: EngineBuilder) -> Engine {
    let engine = builder
        .with(PriorArtPlugin)
        .from_ron(&SCENARIO.replace("REWARD", reward).replace("ENTRIES", ONE_SEED));
    let mut engine = engine.expect("the scenario is sound");
    let watch = watch.in_set(EngineSet::Record).after(Work::EmitStep);
    engine.app_mut().init_resource::<Watched>().add_systems(StepEnd, watch);
    engine.run().expect("the run completes");
    engine
}

#[test]
fn every_step_of_every_env_is_paid_with_any_number_of_threads() {
    let mut one = play("contribution(shaped())", builder().threads(1));
    let two = play("contribution(shaped())", builder().threads(2));

    let paid = &one.world().resource::<Watched>().rewards;
    assert_eq!(paid.len(), ROUNDS * STEPS * ENVS);
    assert_eq!(*paid, two.world().resource::<Watched>().rewards);
    for (_, breakdown) in paid {
        let terms: f64 = breakdown.iter().map(|(_, amount)| amount).sum();
        let total = breakdown.total();
        assert!(total.is_finite() && (total - terms).abs() <= 1e-9 * (1.0 + total.abs()));
    }
    let count = |is_it: fn(&RewardBreakdown) -> bool| paid.iter().filter(|(_, paid)| is_it(paid)).count();
    let commits = count(|paid| paid.get(Term::CommitShaping) != 0.0);
    let germinations = count(|paid| paid.get(Term::Intervention) == -0.15);
    let ends = count(|paid| paid.get(Term::TerminalAccuracy) > 0.0);
    assert_eq!([commits, germinations, ends], [ROUNDS * ENVS; 3]);

    let last_round: [f64; ENVS] = std::array::from_fn(|env| {
        let of_env = paid.iter().filter(|(index, _)| *index == env);
        of_env.skip(STEPS).map(|(_, paid)| paid.total()).sum()
    });
    let mut episodes = one.world_mut().query::<(&EnvId, &EpisodeReward)>();
    for (id, episode) in episodes.iter(one.world()) {
        assert_eq!(episode.steps.len(), STEPS);
        assert_eq!(episode.total(), last_round[id.index]);
    }
}

#[test]
fn the_engine_runs_alike_without_rewards() {
    let [paid, unpaid] = [builder(), builder().without::<RewardPlugin>()];
    let [paid, unpaid] = [paid, unpaid].map(|builder| play("contribution(sparse())", builder.threads(1)));

    let (paid, unpaid) = (paid.world().resource::<Watched>(), unpaid.world().resource::<Watched>());
    assert_eq!(paid.accuracies, unpaid.accuracies);
    assert!(unpaid.rewards.is_empty());
    let outcomes = paid.rewards.iter().filter(|(_, paid)| paid.total() != 0.0);
    assert_eq!(outcomes.count(), ROUNDS * ENVS);
}
