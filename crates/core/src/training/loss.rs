//! Loss and correctness: per sample `ℓ = logsumexp(z) − z_y` in f32 for any type of logits; a sample
//! is correct when the first largest logit is its target's. Small hosts spend their time in dispatch, so each function
//! is as few operations as it can be.

use tch::{Kind, Reduction, TchError, Tensor};

/// No label is ever negative, so nothing is ignored.
const IGNORE_NOTHING: i64 = -100;

/// Mean cross-entropy of `logits [n, C]` on `targets i64 [n]`, as it is minimised, with the graph, and as it is reported,
/// without smoothing, detached and in f32. With smoothing ε the first is `(1−ε)·ℓ + ε·mean_k(logsumexp(z) − z_k)`.
///
/// # Errors
/// libtorch's, when shapes or devices disagree.
pub fn train_loss(logits: &Tensor, targets: &Tensor, label_smoothing: f64) -> Result<(Tensor, Tensor), TchError> {
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
    Ok((objective, mean))
}

/// Loss (f32) and correctness (bool) of each row, both `[K, b]`, for `logits [K·b, C]` of K configurations on the same
/// `targets i64 [b]`; rows `k·b..(k+1)·b` belong to configuration k. Of texts, `[K·b, T, C]` on `[b, T]`, each token is a
/// row.
///
/// # Errors
/// libtorch's, when shapes or devices disagree.
pub fn evaluate_rows(logits: &Tensor, targets: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    let targets = targets.f_reshape([-1])?;
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
    let is_correct = logits.f_argmax(2, false)?.f_eq_tensor(&targets)?;
    Ok((losses, is_correct))
}

#[cfg(test)]
mod tests;
