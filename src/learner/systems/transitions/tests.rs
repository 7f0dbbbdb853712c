use super::*;
use crate::growth::LifecycleOp;
use crate::seed::Unheeded;

fn credited(outcome: &CommandOutcome, is_fine: bool) -> Vec<Head> {
    let causal = causal_heads(outcome, is_fine);
    Head::ALL.into_iter().filter(|&head| causal[head as usize]).collect()
}

#[test]
fn fine_relevance_leaves_out_what_made_no_difference_and_nothing_else_does() {
    let young_prune = CommandOutcome {
        effective_op: LifecycleOp::Prune,
        slot: Some(0),
        refusal: None,
        unheeded: Unheeded {
            style: false,
            speed: true,
            curve: true,
        },
    };
    assert_eq!(credited(&young_prune, true), [Head::Slot, Head::Op]);
    let all = [Head::Slot, Head::AlphaSpeed, Head::AlphaCurve, Head::Op];
    assert_eq!(credited(&young_prune, false), all);

    let heeded = CommandOutcome {
        unheeded: Unheeded::default(),
        ..young_prune
    };
    assert_eq!(credited(&heeded, true), all);
    assert_eq!(credited(&CommandOutcome::default(), true), [Head::Op], "a wait");
}
