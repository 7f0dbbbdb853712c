use super::*;

#[test]
fn head_sizes() {
    let sizes: usize = Head::ALL.iter().map(|head| head.size(3, 13)).sum();
    assert_eq!(sizes, 41);
}

#[test]
fn distinct_commands_with_seven_blueprints() {
    let count = |slots: usize| -> usize {
        LifecycleOp::ALL
            .iter()
            .map(|&op| {
                Head::ALL
                    .iter()
                    .filter(|&&head| head != Head::Op && relevant(op, head))
                    .map(|head| head.size(slots, 7))
                    .product::<usize>()
            })
            .sum()
    };
    assert_eq!([count(1), count(3), count(10)], [515, 1543, 5141]);
}

#[test]
fn heads_are_available_where_a_valid_op_needs_them() {
    let available_heads = |ops: &[LifecycleOp]| -> Vec<Head> {
        let mask = ops.iter().map(|op| op.code()).collect();
        Head::ALL.into_iter().filter(|&head| available(mask, head)).collect()
    };
    use LifecycleOp::*;
    assert_eq!(available_heads(&[Wait]), [Head::Op]);
    assert_eq!(
        available_heads(&[Wait, Germinate]),
        [
            Head::Slot,
            Head::Blueprint,
            Head::Style,
            Head::Tempo,
            Head::AlphaTarget,
            Head::Op
        ]
    );
    assert_eq!(
        available_heads(&[Wait, Prune, Advance]),
        [Head::Slot, Head::AlphaSpeed, Head::AlphaCurve, Head::Op]
    );
}
