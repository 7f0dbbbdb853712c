use super::*;
use crate::torch::fixtures::on_device;

fn logits() -> Tensor {
    on_device(Tensor::from_slice2(&[[1.0f32, 2.0, 0.5], [0.0, 0.0, 0.0]]))
}

fn targets(classes: [i64; 2]) -> Tensor {
    on_device(Tensor::from_slice(&classes))
}

fn close(tensor: &Tensor, expected: f64) {
    let found = f64::try_from(tensor).unwrap();
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

#[test]
fn the_loss_is_the_mean_of_logsumexp_minus_the_targets_logit() {
    // ln(e + e² + e^0.5) − 2 = 0.4643688; ln 3 = 1.0986123.
    let (objective, mean) = train_loss(&logits(), &targets([1, 2]), 0.0).unwrap();

    close(&mean, 0.781_490_5);
    close(&objective, 0.781_490_5);
}

#[test]
fn smoothing_changes_the_objective_and_not_the_report() {
    // Mean over classes of logsumexp − z_k: 2.4643688 − 3.5/3 = 1.2977021 and ln 3.
    let logits = logits().set_requires_grad(true);

    let (objective, mean) = train_loss(&logits, &targets([1, 2]), 0.1).unwrap();

    close(&mean, 0.781_490_5);
    close(&objective, 0.9 * 0.781_490_5 + 0.1 * 1.198_157_2);
    assert!(objective.requires_grad() && !mean.requires_grad());
}

#[test]
fn half_precision_logits_are_evaluated_in_f32() {
    let halves = logits().to_kind(Kind::BFloat16);

    let (losses, _) = evaluate_rows(&halves, &targets([1, 2])).unwrap();

    assert_eq!(losses.kind(), Kind::Float);
    close(&losses.get(0).get(1), 1.098_612_3);
}

#[test]
fn rows_of_every_configuration_meet_the_same_targets() {
    let both = Tensor::cat(&[logits(), logits().flip([1])], 0);

    let (losses, is_correct) = evaluate_rows(&both, &targets([1, 0])).unwrap();

    assert_eq!(losses.size(), [2, 2]);
    close(&losses.get(0).get(0), 0.464_368_8);
    // A tie goes to the lowest index, so the constant row is right about class 0.
    assert_eq!(Vec::<bool>::try_from(is_correct.view(-1)).unwrap(), [true; 4]);
    let (_, is_correct) = evaluate_rows(&both, &targets([2, 1])).unwrap();
    assert_eq!(Vec::<bool>::try_from(is_correct.view(-1)).unwrap(), [false; 4]);
}
