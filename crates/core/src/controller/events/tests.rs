use super::*;
use crate::actions::fixtures::{empty, limits, masks};

#[test]
fn a_readout_tells_of_the_heads_that_mattered_and_of_what_could_have_been_done() {
    // Nothing but waiting and germinating is allowed.
    let masks = masks(&empty(1), &limits());
    let mut sample = Sample {
        log_probs: [0.0; HEADS],
        op_probabilities: [0.75, 0.25, 0.0, 0.0, 0.0, 0.0],
        value: -0.25,
    };
    sample.log_probs[Head::Op as usize] = 0.75_f32.ln();
    let mut forced = [false; HEADS];
    forced[Head::Slot as usize] = true;

    let value_of = |value: f64| value * 10.0 + 2.0;
    let waiting = readout(&sample, LifecycleOp::Wait, &masks, forced, value_of);
    let germinating = readout(&sample, LifecycleOp::Germinate, &masks, forced, value_of);

    assert_eq!(waiting.p, BTreeMap::from([("op".into(), Num(0.75))]));
    assert_eq!(waiting.value, Num(-0.5), "in units of reward");
    assert_eq!(waiting.op_probs, [Num(0.75), Num(0.25)], "of those that are allowed");
    assert_eq!(germinating.p.get("slot"), None, "there was nothing to choose");
    assert_eq!(germinating.p.get("blueprint"), Some(&Num(1.0)));
    assert_eq!(germinating.p.get("alpha_speed"), None, "it does not matter");
}
