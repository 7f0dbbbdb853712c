use super::*;

#[test]
fn what_is_asked_for_by_name_is_honoured_on_a_cpu_and_auto_is_f32() {
    assert_eq!(mixed_kind("training.amp", AmpMode::Off, false), None);
    assert_eq!(mixed_kind("training.amp", AmpMode::Auto, false), None);
    assert_eq!(mixed_kind("training.amp", AmpMode::Bf16, false), Some(Kind::BFloat16));
    assert_eq!(mixed_kind("training.amp", AmpMode::Fp16, false), Some(Kind::Half));
    assert_eq!(mixed_name(Some(Kind::Half)), Some("fp16"));
}
