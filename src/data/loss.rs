//! Loss and correctness (spec 02 §6.1): per sample `ℓ = logsumexp(z) − z_y` in f32 whatever the logits' type; a sample
//! is correct when the first largest logit is its target's. Small hosts spend their time in dispatch, so each function
//! is as few operations as it can be.

use tch::{Kind, Reduction, TchError, Tensor};

/// No label is ever negative, so nothing is ignored.
const IGNORE_NOTHING: i64 = -100;

/// The loss of a training batch.
#[derive(Debug)]
pub struct TrainLoss {
    /// What is minimised: the mean over the batch, with label smoothing; carries the graph.
    pub objective: Tensor,
    /// What is reported: the mean without smoothing, detached, f32.
    pub mean: Tensor,
}

/// Mean cross-entropy of `logits [n, C]` on `targets i64 [n]`; with smoothing ε the objective is
/// `(1−ε)·ℓ + ε·mean_k(logsumexp(z) − z_k)`.
///
/// # Errors
/// libtorch's, when shapes or devices disagree.
pub fn train_loss(logits: &Tensor, targets: &Tensor, label_smoothing: f64) -> Result<TrainLoss, TchError> {
    let log_probabilities = logits.f_log_softmax(-1, Kind::Float)?;
    let plain = log_probabilities.f_nll_loss::<Tensor>(targets, None, Reduction::Mean, IGNORE_NOTHING)?;
    let mean = plain.f_detach()?;
    let objective = if label_smoothing == 0.0 {
        plain
    } else {
        let spread = log_probabilities.f_mean(None)?;
        plain
            .f_mul_scalar(1.0 - label_smoothing)?
            .f_sub(&spread.f_mul_scalar(label_smoothing)?)?
    };
    Ok(TrainLoss { objective, mean })
}

/// Loss (f32) and correctness (bool) of each row, both `[K, b]`, for `logits [K·b, C]` of K configurations on the same
/// `targets i64 [b]`; rows `k·b..(k+1)·b` belong to configuration k.
///
/// # Errors
/// libtorch's, when shapes or devices disagree.
pub fn evaluate_rows(logits: &Tensor, targets: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    let samples = targets.numel() as i64;
    let classes = logits.size().last().copied().unwrap_or(0);
    let logits = logits.f_reshape([-1, samples, classes])?;
    let configurations = logits.size()[0];
    let index = targets
        .f_view([1, samples, 1])?
        .f_expand([configurations, samples, 1], true)?;
    let losses = logits
        .f_log_softmax(-1, Kind::Float)?
        .f_gather(2, &index, false)?
        .f_squeeze_dim(2)?
        .f_neg_()?;
    let is_correct = logits.f_argmax(2, false)?.f_eq_tensor(targets)?;
    Ok((losses, is_correct))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logits() -> Tensor {
        Tensor::from_slice2(&[[1.0f32, 2.0, 0.5], [0.0, 0.0, 0.0]])
    }

    fn close(tensor: &Tensor, expected: f64) {
        let found = f64::try_from(tensor).unwrap();
        assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
    }

    #[test]
    fn the_loss_is_the_mean_of_logsumexp_minus_the_targets_logit() {
        // ln(e + e² + e^0.5) − 2 = 0.4643688; ln 3 = 1.0986123.
        let loss = train_loss(&logits(), &Tensor::from_slice(&[1i64, 2]), 0.0).unwrap();

        close(&loss.mean, 0.781_490_5);
        close(&loss.objective, 0.781_490_5);
    }

    #[test]
    fn smoothing_changes_the_objective_and_not_the_report() {
        // Mean over classes of logsumexp − z_k: 2.4643688 − 3.5/3 = 1.2977021 and ln 3.
        let logits = logits().set_requires_grad(true);

        let loss = train_loss(&logits, &Tensor::from_slice(&[1i64, 2]), 0.1).unwrap();

        close(&loss.mean, 0.781_490_5);
        close(&loss.objective, 0.9 * 0.781_490_5 + 0.1 * 1.198_157_2);
        assert!(loss.objective.requires_grad());
        assert!(!loss.mean.requires_grad());
    }

    #[test]
    fn half_precision_logits_are_evaluated_in_f32() {
        let halves = logits().to_kind(Kind::BFloat16);

        let (losses, _) = evaluate_rows(&halves, &Tensor::from_slice(&[1i64, 2])).unwrap();

        assert_eq!(losses.kind(), Kind::Float);
        close(&losses.get(0).get(1), 1.098_612_3);
    }

    #[test]
    fn rows_of_every_configuration_meet_the_same_targets() {
        let both = Tensor::cat(&[logits(), logits().flip([1])], 0);

        let (losses, is_correct) = evaluate_rows(&both, &Tensor::from_slice(&[1i64, 0])).unwrap();

        assert_eq!(losses.size(), [2, 2]);
        close(&losses.get(0).get(0), 0.464_368_8);
        // A tie goes to the lowest index, so the constant row is right about class 0.
        assert_eq!(
            Vec::<bool>::try_from(is_correct.view(-1)).unwrap(),
            [true, true, true, true]
        );
        let (_, is_correct) = evaluate_rows(&both, &Tensor::from_slice(&[2i64, 1])).unwrap();
        assert_eq!(Vec::<bool>::try_from(is_correct.view(-1)).unwrap(), [false; 4]);
    }
}
