//! The learner as a whole, with a small recurrent policy on small tasks.

mod policy;
mod tasks;
mod training;
pub(super) mod bench;
mod credit;
mod failures;
mod padding;
mod rollouts;
mod scaling;
mod unfinished;
mod updates;

use policy::Core;
use tasks::{BanditTask, CueTask};
use training::{Training, score_reached};

use crate::policy::TrainablePolicy;
use crate::policy::fixtures::values;
use crate::scenario::LearnerConfig;

const UPDATES: u64 = 100;

fn cue(config: LearnerConfig) -> Training<CueTask> {
    Training::new(CueTask::new(8), Core::Lstm, config, UPDATES, 7)
}

fn params(policy: &dyn TrainablePolicy) -> Vec<f64> {
    policy.params().iter().flat_map(|param| values(&param.tensor)).collect()
}

/// The unit of reward does not matter. The example `learner` recalls a cue in the gate.
#[test]
#[ignore = "long tier"]
fn a_recurrent_policy_learns_to_recall_a_cue() {
    let mut task = CueTask::new(32);
    task.reward = 100.0;
    let score = score_reached(task, Core::Lstm, 80, 0.9);
    assert!(score >= 0.9, "{score}");
}

/// Six heads, masks that depend on the context, and a context in which waiting is best.
#[test]
fn every_head_of_a_masked_action_learns_its_part() {
    let score = score_reached(BanditTask::new(256), Core::FeedForward, 80, 0.95);
    assert!(score >= 0.95, "{score}");
}
