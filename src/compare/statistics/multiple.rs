//! Several tests at once: p-values that keep the probability of any false claim among them.

/// Holm's step-down correction (1979): the `k`-th smallest of `m` p-values becomes `max over j ≤ k of
/// min(1, (m − j + 1)·p_j)`. In the order of the input. Tests whose adjusted value is below α are claimed together with
/// a probability of at most α that any of them claims what is not so.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![f64::NAN; p_values.len()];
    let mut highest = 0.0_f64;
    for (rank, &test) in order.iter().enumerate() {
        highest = highest.max(((p_values.len() - rank) as f64 * p_values[test]).min(1.0));
        adjusted[test] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests;
