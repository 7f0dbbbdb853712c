//! Generalised advantage estimation, segment by segment (Schulman et al. 2016).

/// What a segment's steps are worth, in units of scaled reward.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Advantages {
    pub advantages: Vec<f64>,
    pub returns: Vec<f64>,
    /// One-step errors of the critic.
    pub td_errors: Vec<f64>,
}

/// Advantages of one segment from its rewards and raw values, in f64. `after` is the value of what follows its last
/// step: 0 if nothing does. The recursion never looks beyond the segment.
pub(super) fn gae(rewards: &[f64], values: &[f64], after: f64, gamma: f64, lambda: f64) -> Advantages {
    let steps = rewards.len();
    let mut result = Advantages {
        advantages: vec![0.0; steps],
        returns: vec![0.0; steps],
        td_errors: vec![0.0; steps],
    };
    let (mut next_value, mut next_advantage) = (after, 0.0);
    for t in (0..steps).rev() {
        let td_error = rewards[t] + gamma * next_value - values[t];
        let advantage = td_error + gamma * lambda * next_advantage;
        result.td_errors[t] = td_error;
        result.advantages[t] = advantage;
        result.returns[t] = advantage + values[t];
        (next_value, next_advantage) = (values[t], advantage);
    }
    result
}

#[cfg(test)]
mod tests;
