//! What a learned policy thought when it decided, in the words of telemetry.

use std::collections::BTreeMap;

use crate::controller::{HEADS, Head, MaskSet, Sample, relevant};
use crate::growth::LifecycleOp;
use crate::learner::ValueUnits;
use crate::telemetry::{Alternative, Num, PolicyThought};

/// Operations shown beside the chosen one.
const ALTERNATIVES: usize = 2;

/// What a learned policy thought when it chose `op` under `masks`; `forced` marks heads without a choice, `units` are
/// those that its value was in.
pub fn thought(
    sample: &Sample,
    op: LifecycleOp,
    masks: &MaskSet,
    forced: [bool; HEADS],
    units: ValueUnits,
) -> PolicyThought {
    let by_head = |value: &dyn Fn(Head) -> Option<f32>| -> BTreeMap<String, Num> {
        let relevant = Head::ALL.into_iter().filter(|&head| relevant(op, head));
        relevant
            .filter_map(|head| Some((head.name().into(), Num::from(value(head)?))))
            .collect()
    };
    let mut others: Vec<LifecycleOp> = LifecycleOp::ALL
        .iter()
        .copied()
        .filter(|&other| other != op && masks.ops().contains(other.code()))
        .collect();
    let probability = |op: LifecycleOp| sample.op_probabilities[op.code()];
    others.sort_by(|&a, &b| probability(b).total_cmp(&probability(a)));
    others.truncate(ALTERNATIVES);
    PolicyThought {
        p: by_head(&|head| Some(sample.log_probs[head as usize].exp())),
        h: by_head(&|head| (!forced[head as usize]).then(|| sample.entropies[head as usize])),
        op_probs: sample.op_probabilities.map(Num::from).into(),
        alternatives: others
            .into_iter()
            .map(|op| Alternative {
                op,
                p: probability(op).into(),
            })
            .collect(),
        value: Num(units.raw(sample.value.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Choices, DecisionPoint};
    use crate::scenario::{LifecycleConfig, MaskConfig};
    use crate::seed::{Limits, SlotSet};

    #[test]
    fn a_thought_tells_of_the_heads_that_mattered_and_of_what_could_have_been_done() {
        // One empty slot: nothing but waiting and germinating is allowed.
        let all = SlotSet::first(1);
        let limits = Limits::new(&LifecycleConfig::default(), &MaskConfig::default(), all, all, 0);
        let at = DecisionPoint {
            env: 0,
            episode: 0,
            step: 1,
        };
        let masks = MaskSet::build(at, &[None], &[Choices::first_n(3)], &limits).unwrap();
        let mut sample = Sample {
            log_probs: [0.0; HEADS],
            entropies: [0.5; HEADS],
            op_probabilities: [0.75, 0.25, 0.0, 0.0, 0.0, 0.0],
            value: -0.25,
        };
        sample.log_probs[Head::Op as usize] = 0.75_f32.ln();
        let mut forced = [false; HEADS];
        forced[Head::Slot as usize] = true;

        let units = ValueUnits {
            mean: 2.0,
            deviation: 10.0,
        };
        let waiting = thought(&sample, LifecycleOp::Wait, &masks, forced, units);
        let germinating = thought(&sample, LifecycleOp::Germinate, &masks, forced, units);

        assert_eq!(waiting.p, BTreeMap::from([("op".into(), Num(0.75))]));
        assert_eq!(waiting.value, Num(-0.5), "in units of reward");
        let alternative = Alternative {
            op: LifecycleOp::Germinate,
            p: Num(0.25),
        };
        assert_eq!(waiting.alternatives, [alternative]);
        assert_eq!(germinating.p.get("slot"), Some(&Num(1.0)));
        assert_eq!(germinating.h.get("slot"), None, "there was nothing to choose");
        assert_eq!(germinating.h.get("blueprint"), Some(&Num(0.5)));
        assert_eq!(germinating.p.get("alpha_speed"), None, "it does not matter");
    }
}
