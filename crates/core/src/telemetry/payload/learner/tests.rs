use super::*;
use crate::telemetry::examples;

#[test]
fn what_is_undefined_has_no_key_and_what_is_no_number_has_one() {
    let mut update = examples::learner_update();
    update.measured.approx_kl = None;
    update.measured.loss_value = Some(Num(f64::NAN));

    let written = serde_json::to_value(&update).unwrap();

    assert_eq!(written.get("approx_kl"), None);
    assert_eq!(written["loss_value"], "nan");
    assert_eq!(serde_json::from_value::<LearnerUpdate>(written).unwrap(), update);
}

#[test]
fn an_update_without_a_usable_rollout_keeps_what_was_measured() {
    let mut update = examples::learner_update();
    update.update_performed = false;
    update.skip_reason = UpdateSkip::Empty;
    update.data = None;

    let written = serde_json::to_value(&update).unwrap();

    assert_eq!(written["skip_reason"], "empty");
    assert_eq!(written.get("steps_valid"), None);
    assert_eq!(serde_json::from_value::<LearnerUpdate>(written).unwrap(), update);
}
