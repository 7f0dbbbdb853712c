use super::*;
use crate::reward::{RewardedStep, Term};

fn episode(amounts: &[(Term, f64)]) -> EpisodeReward {
    let mut step = RewardedStep::default();
    for &(term, amount) in amounts {
        step.breakdown.pay(term, amount);
    }
    EpisodeReward { steps: vec![step] }
}

#[test]
fn a_round_tells_the_mean_sum_of_each_term() {
    let one = episode(&[(Term::Attribution, 3.0), (Term::ComputeRent, -1.0)]);
    let two = episode(&[(Term::Attribution, 1.0)]);

    let round = round_rewards(&[&one, &two]).unwrap();

    assert_eq!((round.reward_mean, round.reward_std), (Num(1.5), Num(0.5)));
    let terms = [("attribution".into(), Num(2.0)), ("compute_rent".into(), Num(-0.5))];
    assert_eq!(round.reward_terms_mean, BTreeMap::from(terms));
    assert_eq!(round_rewards(&[]), None);
}
