use crate::telemetry::examples;
use crate::telemetry::payload::Decision;

#[test]
fn a_decision_without_reward_has_no_fields_of_rewards() {
    let mut unpaid = examples::decision();
    unpaid.paid = None;

    let text = serde_json::to_string(&unpaid).unwrap();

    for field in ["reward", "terms", "context"] {
        assert!(!text.contains(field), "{text}");
    }
    assert_eq!(serde_json::from_str::<Decision>(&text).unwrap(), unpaid);
}
