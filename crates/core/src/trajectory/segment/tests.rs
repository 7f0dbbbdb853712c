use proptest::prelude::*;

use super::*;

const SIZES: Sizes = Sizes {
    observation: 3,
    slots: 2,
    blueprints: 2,
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
        actions: count(HEADS).map(|value| value as i32 % 2).collect(),
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
fn a_choice_or_an_operation_that_does_not_exist_is_refused_with_its_place() {
    let refused = |damage: fn(&mut Segment)| {
        let mut damaged = segment(3, 2);
        damage(&mut damaged);
        decoded(&Segment::encode(&[segment(0, 1), damaged], SIZES).unwrap(), SIZES).unwrap_err()
    };

    assert_eq!(segment(0, 2).choice(0), ([0, 1, 0, 1, 0, 1, 0, 1], LifecycleOp::Wait));
    let slot = "has 2 for slot in step 2 of env 3, valid: 0 to 1".to_owned();
    assert_eq!(refused(|damaged| damaged.actions[HEADS] = 2), ("actions", slot));
    let op = "has -1 for op in step 1 of env 3, valid: 0 to 5".to_owned();
    assert_eq!(refused(|damaged| damaged.effective_op[0] = -1), ("effective_op", op));
}

#[test]
fn a_tensor_of_another_shape_is_named() {
    let bytes = Segment::encode(&[segment(0, 2), segment(1, 3)], SIZES).unwrap();

    let observation = 4;
    let (tensor, why) = decoded(&bytes, Sizes { observation, ..SIZES }).unwrap_err();

    assert_eq!(tensor, "final_observation");
    assert_eq!(why, "is F32 [2, 3], expected F32 [2, 4]");
}
