use crate::telemetry::examples;
use crate::telemetry::payload::Decision;

#[test]
fn the_terms_of_a_decision_add_up_to_its_reward() {
    let reward = examples::decision().paid.unwrap();
    let sum: f64 = reward.terms.values().map(|term| term.0).sum();
    assert!((sum - reward.reward.0).abs() <= 1e-9 * (1.0 + reward.reward.0.abs()));
}

#[test]
fn a_decision_without_reward_has_no_fields_of_rewards() {
    let unpaid = Decision {
        paid: None,
        ..examples::decision()
    };

    let text = serde_json::to_string(&unpaid).unwrap();

    assert!(
        !text.contains("reward") && !text.contains("terms") && !text.contains("context"),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<Decision>(&text).unwrap(), unpaid);
}
