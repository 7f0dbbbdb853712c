use super::*;

#[test]
fn what_a_control_rests_on_is_played_with_it() {
    assert_eq!(
        Control::wanted(&[Control::Periodic, Control::EqualCompute, Control::Periodic]),
        [Control::EqualEpochs, Control::EqualCompute, Control::Periodic]
    );
    assert_eq!(Control::wanted(&[]).len(), 9);
}
