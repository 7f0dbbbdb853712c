use super::*;
use crate::growth::SeedStage;
use crate::reward::fixtures::{Step, assert_close, seed};

fn episode(rewards: &[f64]) -> EpisodeReward {
    let steps = rewards.iter().zip(1..).map(|(&reward, step)| {
        let mut rewarded = RewardedStep {
            step,
            ..RewardedStep::default()
        };
        rewarded.breakdown.pay(Term::Attribution, reward);
        rewarded
    });
    EpisodeReward { steps: steps.collect() }
}

#[test]
fn an_episode_sums_its_steps_and_terms() {
    let episode = episode(&[1.0, -2.0, 0.0, 4.0]);

    assert_eq!(episode.total(), 3.0);
    assert_eq!(episode.discounted(0.5), 1.0 - 1.0 + 0.5);
    let TermSummary { n, sum, abs, min, max } = episode.terms()[&Term::Attribution];
    assert_eq!((n, [sum, abs, min, max]), (3, [3.0, 7.0, -2.0, 4.0].map(Num)));
}

#[test]
fn rent_is_a_mean_over_steps_and_stays_when_a_rollback_forfeits_their_pay() {
    let mut episode = episode(&[5.0, 5.0]);
    episode.steps[0].rent = 0.5;
    episode.steps[1].rent = 0.25;

    episode.charge_rollback(1, -10.0);

    assert_eq!(episode.mean_rent(), 0.375);
    assert_eq!(EpisodeReward::default().mean_rent(), 0.0);
}

#[test]
fn a_rollback_is_charged_to_the_last_step_of_its_segment() {
    let mut episode = episode(&[1.0, 2.0, 3.0]);
    EpisodeReward::default().charge_rollback(1, -10.0);
    episode.charge_rollback(1, -10.0);

    let rewards: Vec<f64> = episode.steps.iter().map(|step| step.breakdown.total()).collect();
    assert_eq!(rewards, [1.0, 0.0, -10.0]);
    assert_eq!(episode.steps[2].breakdown.get(Term::Governor), -10.0);
}

#[test]
fn parameters_seeds_and_commits_cost() {
    let held = seed(SeedStage::Holding, 3).alpha(1.0).params(500);
    let of = |seeds: Vec<_>, host| standard_rent(&Step::new(40).host(host).after(seeds).build());
    assert_close(of(vec![held.clone()], 17), 0.6264288391479838);
    assert_close(of(vec![held.clone().params(10_000)], 17), 1.5);
    assert_eq!(of(vec![seed(SeedStage::Training, 1)], 17), 0.0);

    let seeds = [SeedStage::Germinated, SeedStage::Committed, SeedStage::Training];
    let seeds = seeds.map(|stage| seed(stage, 1).alpha(0.0).params(0));
    assert_close(of(seeds.to_vec(), 100_000), 0.5 * 0.0039_f64.ln_1p() + 0.02 + 0.002);
}

fn paid(amounts: &[(Term, f64)]) -> EpisodeReward {
    let mut step = RewardedStep::default();
    for &(term, amount) in amounts {
        step.breakdown.pay(term, amount);
    }
    EpisodeReward { steps: vec![step] }
}

#[test]
fn a_round_tells_the_mean_sum_of_each_term() {
    let one = paid(&[(Term::Attribution, 3.0), (Term::ComputeRent, -1.0)]);
    let two = paid(&[(Term::Attribution, 1.0)]);

    let round = round_rewards(&[&one, &two]).unwrap();

    assert_eq!((round.reward_mean, round.reward_std), (Num(1.5), Num(0.5)));
    let terms = [("attribution".into(), Num(2.0)), ("compute_rent".into(), Num(-0.5))];
    assert_eq!(round.reward_terms_mean, BTreeMap::from(terms));
    assert_eq!(round_rewards(&[]), None);
}
