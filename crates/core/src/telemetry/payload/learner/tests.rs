use super::*;
use crate::telemetry::examples;

#[test]
fn an_undefined_value_has_no_key_and_one_of_nan_has_one() {
    let mut update = examples::learner_update();
    update.measured.approx_kl = None;
    update.measured.loss_value = Some(Num(f64::NAN));
    // The rollout was unusable.
    (update.update_performed, update.skip_reason, update.data) = (false, UpdateSkip::Empty, None);

    let written = serde_json::to_value(&update).unwrap();

    assert_eq!((written.get("approx_kl"), written.get("steps_valid")), (None, None));
    assert_eq!(written["loss_value"], "nan");
    assert_eq!(written["skip_reason"], "empty");
    assert_eq!(serde_json::from_value::<LearnerUpdate>(written).unwrap(), update);
}
