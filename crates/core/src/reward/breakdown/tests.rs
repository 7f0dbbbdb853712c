use super::*;

#[test]
fn a_reward_is_the_sum_of_its_terms() {
    let mut breakdown = RewardBreakdown::default();
    for (term, amount) in [
        (Term::Attribution, 0.4),
        (Term::ComputeRent, -0.15),
        (Term::Pbrs, 0.05),
        (Term::Synergy, 0.10),
        (Term::Intervention, -0.1),
    ] {
        breakdown.pay(term, amount);
    }

    assert!((breakdown.total() - 0.3).abs() < 1e-9);
    assert_eq!(RewardBreakdown::default().total(), 0.0);
}

#[test]
fn terms_that_are_zero_are_passed_over() {
    let mut breakdown = RewardBreakdown::default();
    breakdown.pay(Term::Governor, -1.0);
    breakdown.pay(Term::Pbrs, 0.1 + 0.2);

    let terms: Vec<(Term, f64)> = breakdown.iter().collect();

    assert_eq!(terms, [(Term::Pbrs, 0.1 + 0.2), (Term::Governor, -1.0)]);
}
