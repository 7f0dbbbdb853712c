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
fn a_breakdown_is_written_without_zeros_and_reads_back_exactly() {
    let mut breakdown = RewardBreakdown::default();
    breakdown.pay(Term::Pbrs, 0.1 + 0.2);
    breakdown.context.delta_cf = Some(-0.1);

    let text = serde_json::to_string(&breakdown).unwrap();

    assert_eq!(
        text,
        r#"{"terms":{"pbrs":0.30000000000000004},"context":{"delta_cf":-0.1}}"#
    );
    assert_eq!(serde_json::from_str::<RewardBreakdown>(&text).unwrap(), breakdown);
}

#[test]
fn a_term_s_name_is_what_serde_writes() {
    for &term in Term::ALL {
        assert_eq!(serde_json::to_value(term).unwrap(), term.name());
    }
}
