use super::*;

#[test]
fn terms_that_are_zero_are_passed_over() {
    let mut breakdown = RewardBreakdown::default();
    breakdown.pay(Term::Governor, -1.0);
    breakdown.pay(Term::Pbrs, 0.1 + 0.2);

    let terms: Vec<(Term, f64)> = breakdown.iter().collect();

    assert_eq!(terms, [(Term::Pbrs, 0.1 + 0.2), (Term::Governor, -1.0)]);
}
