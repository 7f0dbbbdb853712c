use proptest::prelude::*;

use super::*;

const SIZES: Sizes = Sizes {
    observation: 3,
    slots: 2,
    masks: 4,
};

fn segment(env: i64, steps: usize) -> Segment {
    let count = |width: usize| (0..steps * width).map(|value| value as f32);
    Segment {
        round: vec![1],
        env: vec![env],
        policy_version: vec![7],
        finish: vec![SegmentFinish::Ended as i64],
        final_observation: vec![0.5; 3],
        final_blueprints: vec![-1, 4],
        step: (1..=steps as i32).collect(),
        observation: count(3).collect(),
        blueprints: count(2).map(|value| value as i32 - 1).collect(),
        actions: count(HEADS).map(|value| value as i32 % 5).collect(),
        effective_op: vec![0; steps],
        log_probs: count(HEADS).map(|value| -value / 10.0).collect(),
        masks: count(4).map(|value| value as u8 % 2).collect(),
        flags: vec![FORCED; steps],
        reward: count(1).map(f64::from).collect(),
        parts: count(PARTS.len()).map(|value| f64::from(value) / 3.0).collect(),
    }
}

fn decoded(bytes: &[u8], sizes: Sizes) -> Result<Vec<Segment>, (&'static str, String)> {
    Segment::decode(&SafeTensors::deserialize(bytes).unwrap(), sizes)
}

proptest! {
    #[test]
    fn segments_are_read_as_they_were_written(lengths in prop::collection::vec(1_usize..6, 1..5)) {
        let segments: Vec<Segment> = lengths.iter().zip(0..).map(|(&steps, env)| segment(env, steps)).collect();

        let bytes = Segment::encode(&segments, SIZES).unwrap();

        prop_assert_eq!(decoded(&bytes, SIZES).unwrap(), segments);
    }
}

#[test]
fn a_choice_or_an_operation_that_does_not_exist_is_an_error() {
    let mut damaged = segment(0, 2);
    let chosen = damaged.choice(0).unwrap();
    damaged.actions[HEADS] = 256;
    damaged.effective_op[0] = -1;

    assert_eq!(chosen, ([0, 1, 2, 3, 4, 0, 1, 2], LifecycleOp::Wait));
    let refused = [0, 1].map(|step| damaged.choice(step).unwrap_err().to_string());
    let of = |index: &str, head: &str| format!("index {index} is no member of the action head {head}");
    assert_eq!(refused, [of("18446744073709551615", "op"), of("256", "slot")]);
}

#[test]
fn a_tensor_of_another_shape_is_named() {
    let bytes = Segment::encode(&[segment(0, 2), segment(1, 3)], SIZES).unwrap();

    let observation = 4;
    let (tensor, why) = decoded(&bytes, Sizes { observation, ..SIZES }).unwrap_err();

    assert_eq!(tensor, "final_observation");
    assert_eq!(why, "is F32 [2, 3], expected F32 [2, 4]");
}
