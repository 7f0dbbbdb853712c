//! Weights fitted to the batch on which a seed is created: what the inits that need data have in common.

use tch::{Device, Kind, TchError, Tensor};

/// Mean squares and norms up to this count as nothing: what is that small is not scaled.
const NOTHING: f64 = 1e-20;

/// The factor, a scalar tensor, that gives `output` a mean square of 1; 1 where it is nothing or not finite
/// (LSUV: Mishkin and Matas 2016, arXiv:1511.06422, with the variance taken about 0).
pub(super) fn factor_to_unit(output: &Tensor) -> Result<Tensor, TchError> {
    let mean_square = output.f_square()?.f_mean(Kind::Float)?;
    let factor = mean_square.f_rsqrt()?;
    let is_sound = mean_square.f_gt(NOTHING)?.f_logical_and(&factor.f_isfinite()?)?;
    factor.f_where_self(&is_sound, &factor.f_ones_like()?)
}

/// Gives each row of `weight` the direction of the same row of `wanted` and keeps its norm, in place; rows without a
/// direction stay. Rows are slices along the first dimension.
pub(super) fn turn_rows(weight: &Tensor, wanted: &Tensor) -> Result<(), TchError> {
    let norm_of = |tensor: &Tensor| -> Result<Tensor, TchError> {
        let rows = tensor.f_reshape([tensor.size().first().copied().unwrap_or(1), -1])?;
        let mut shape = vec![1; tensor.dim()];
        shape[0] = -1;
        rows.f_square()?
            .f_sum_dim_intlist([1_i64].as_slice(), false, Kind::Float)?
            .f_sqrt()?
            .f_view(shape.as_slice())
    };
    let wanted_norm = norm_of(wanted)?;
    let turned = wanted.f_mul(&norm_of(weight)?.f_div(&wanted_norm)?)?;
    let is_sound = wanted_norm.f_gt(NOTHING)?.f_logical_and(&wanted_norm.f_isfinite()?)?;
    weight.shallow_clone().f_copy_(&turned.f_where_self(&is_sound, weight)?)
}

/// Singular values below this share of the largest are rounding.
const ROUNDING: f64 = 1e-6;

/// The `count` right singular vectors of `matrix` with the largest singular values, times these, as rows in its type and
/// on its device; zero where there is no more than rounding. Each points to the side on which `forward`, a vector, lies,
/// so that the result does not depend on how the decomposition chose its signs.
pub(super) fn leading_directions(matrix: &Tensor, count: i64, forward: &Tensor) -> Result<Tensor, TchError> {
    let exact = |tensor: &Tensor| tensor.f_to_device(Device::Cpu)?.f_to_kind(Kind::Double);
    let (_, values, directions) = exact(matrix)?.f_svd(true, true)?;
    let is_sound = values.f_gt_tensor(&values.f_max()?.f_mul_scalar(ROUNDING)?)?;
    let directions = directions
        .f_mul(&values.f_mul(&is_sound.f_to_kind(Kind::Double)?)?)?
        .f_transpose(0, 1)?;
    let directions = directions.f_narrow(0, 0, count.min(directions.size2()?.0))?;
    let side = directions.f_matmul(&exact(forward)?)?.f_sign()?;
    // A direction at right angles stays as it is.
    let side = side.f_add(&side.f_eq(0.0)?.f_to_kind(Kind::Double)?)?;
    directions
        .f_mul(&side.f_view([-1, 1])?)?
        .f_to_kind(matrix.kind())?
        .f_to_device(matrix.device())
}

#[cfg(test)]
mod tests;
