use super::*;

#[test]
fn heads_are_available_where_a_valid_op_needs_them() {
    use Head::*;
    let available_heads = |ops: &[LifecycleOp]| -> Vec<Head> {
        let mask = ops.iter().map(|op| op.code()).collect();
        Head::ALL.into_iter().filter(|&head| available(mask, head)).collect()
    };
    let [wait, germinate, _, prune, _, advance] = LifecycleOp::ALL;
    assert_eq!(available_heads(&[wait]), [Op]);
    let of_growth = [Slot, Blueprint, Style, Tempo, AlphaTarget, Op];
    assert_eq!(available_heads(&[wait, germinate]), of_growth);
    let of_pruning = [Slot, AlphaSpeed, AlphaCurve, Op];
    assert_eq!(available_heads(&[wait, prune, advance]), of_pruning);
}
