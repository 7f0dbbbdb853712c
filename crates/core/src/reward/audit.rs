//! The search for ways to earn a reward without what it is meant for: scripted exploiters against waiting and honest growth.
//!
//! Nothing is trained. A host that has learnt what it can, seeds of known worth and the scenario's own lifecycle, discount
//! and reward make a small [`world`]; each of the [`Strategy`]s plays one episode in it. A reward passes if honest growth
//! pays, no exploiter earns as much as it, or more than waiting, and committing at once no more than its committed accuracy
//! is worth.

mod world;
mod strategies;
#[cfg(any(test, feature = "testing"))]
#[allow(
    dead_code,
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    unused_imports,
    reason = "its tests are compiled only here"
)]
pub mod tests;

use serde::Serialize;

pub use self::strategies::Strategy;
use self::world::{Episode, World};
use super::inputs::RewardError;
use super::mode::RewardModes;
use crate::scenario::{Scenario, TaskSpec};

/// Returns that differ by less are equal.
const TOLERANCE: f64 = 1e-9;

/// A strategy's return, and whether it is allowed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditRow {
    /// Name of the strategy.
    pub strategy: &'static str,
    /// Behaviour of the strategy, in one line.
    pub summary: &'static str,
    /// Accuracy with committed seeds alone at the end, percent.
    pub committed_accuracy: f64,
    /// Discounted sum of its rewards.
    pub discounted: f64,
    /// Plain sum of its rewards.
    pub sum: f64,
    /// The most that it may earn, discounted; `None` for waiting, which sets the measure.
    pub allowed: Option<f64>,
    /// True if it earned no more than it may. For honest growth, true if it earned more than waiting.
    pub passes: bool,
}

/// The verdict on a reward.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audit {
    /// Name of the mode.
    pub mode: String,
    /// Discount per step.
    pub gamma: f64,
    /// Steps of an episode.
    pub max_steps: u32,
    /// Waiting, honest growth, then the exploiters.
    pub rows: Vec<AuditRow>,
}

impl Audit {
    /// The first strategy that earned more than it should, or honest growth that does not pay.
    pub fn first_failure(&self) -> Option<&AuditRow> {
        self.rows.iter().find(|row| !row.passes)
    }
}

/// Plays every strategy against the reward of a scenario; `task` is the one that it resolves to.
///
/// # Errors
/// A reward that cannot be computed.
pub fn audit(scenario: &Scenario, task: &TaskSpec, modes: &RewardModes) -> Result<Audit, RewardError> {
    let mode = modes.of(&scenario.reward)?;
    let play = |strategy: Strategy| World::new(scenario, task, mode.clone()).play(|world| strategy.order(world));
    let wait = play(Strategy::Wait)?;
    let honest = play(Strategy::HonestGrowth)?;
    let slots = task.slots.len();
    let mut rows = vec![
        row(Strategy::Wait, &wait, None, true),
        row(
            Strategy::HonestGrowth,
            &honest,
            None,
            honest.discounted() > wait.discounted() + TOLERANCE,
        ),
    ];
    for strategy in Strategy::EXPLOITERS
        .iter()
        .copied()
        .filter(|strategy| strategy.slots() <= slots)
    {
        let played = play(strategy)?;
        let allowed = match strategy {
            Strategy::CommitAtOnce => deserved(&played, &wait, &honest),
            _ => wait.discounted(),
        };
        let is_below_honest = strategy == Strategy::CommitAtOnce || played.discounted() < honest.discounted();
        let passes = played.discounted() <= allowed + TOLERANCE && is_below_honest;
        rows.push(row(strategy, &played, Some(allowed), passes));
    }
    Ok(Audit {
        mode: scenario.reward.mode().into(),
        gamma: scenario.learner.gamma,
        max_steps: task.max_steps,
        rows,
    })
}

/// The most that growth may earn by its committed accuracy, in proportion to honest growth: the largest share of those by
/// the episode's end, by its mean and by its gains as the learner discounts them. A reward may pay for any of them.
fn deserved(played: &Episode, wait: &Episode, honest: &Episode) -> f64 {
    let share = |accuracy: fn(&Episode) -> f64| {
        let gained = accuracy(honest) - accuracy(wait);
        (accuracy(played) - accuracy(wait)) / gained.max(TOLERANCE)
    };
    let share = share(|episode| episode.committed_at_end)
        .max(share(|episode| episode.committed_mean))
        .max(share(|episode| episode.committed_gains));
    wait.discounted() + share.max(0.0) * (honest.discounted() - wait.discounted())
}

fn row(strategy: Strategy, played: &Episode, allowed: Option<f64>, passes: bool) -> AuditRow {
    AuditRow {
        strategy: strategy.name(),
        summary: strategy.summary(),
        committed_accuracy: played.committed_at_end,
        discounted: played.discounted(),
        sum: played.rewards.total(),
        allowed,
        passes,
    }
}
