use super::*;

#[test]
fn slots_are_ordered_by_row_then_column_as_numbers() {
    let mut slots = ["r1c0", "r0c10", "r0c2"].map(|text| text.parse::<SlotId>().unwrap());
    slots.sort();
    assert_eq!(slots.map(|slot| slot.to_string()), ["r0c2", "r0c10", "r1c0"]);
}

#[test]
fn only_the_written_form_is_a_slot_id() {
    for text in ["early", "r-1c0", "r0", "R0C0", "r0c0 ", "r0c1c2", "rc", "r0c70000", ""] {
        let error = text.parse::<SlotId>().unwrap_err();
        assert!(error.to_string().contains("r<row>c<column>"));
    }
}

#[test]
fn stage_codes_are_the_one_hot_indices_of_the_observation_and_there_is_no_fourth_gate() {
    let names: Vec<_> = SeedStage::ALL.iter().map(|stage| stage.name()).collect();
    assert_eq!(
        names.join(" "),
        "UNKNOWN DORMANT GERMINATED TRAINING BLENDING HOLDING COMMITTED PRUNED EMBARGOED RESETTING"
    );
    assert_eq!(SeedStage::from_code(10), None);
    assert_eq!(GateLevel::from_code(4), None);
    assert_eq!(GateLevel::from_code(5), Some(GateLevel::G5));
}

#[test]
fn styles_fix_curve_and_operator() {
    use AlphaAlgorithm::{Add, Gate, Multiply};
    use AlphaCurve::{Linear, Sigmoid};
    let pairs = GerminationStyle::ALL.map(|style| (style.curve(), style.algorithm()));
    let expected = [(Linear, Add), (Linear, Multiply), (Sigmoid, Add), (Linear, Gate)];
    assert_eq!(pairs, expected);
}
