//! The learner as a whole, with a small recurrent policy on small tasks.

mod policy;
mod tasks;
mod training;
mod bench;
mod credit;
mod failures;
mod faulty;
mod padding;
mod rollouts;
mod scaling;
mod unfinished;
mod updates;

use policy::Core;
use tasks::{BanditTask, CueTask};
use tch::Tensor;
use training::{Training, final_score, small_config};

use crate::scenario::LearnerConfig;
use crate::torch::{HostSyncCounter, read_f64};

const UPDATES: u64 = 100;

fn cue(config: LearnerConfig) -> Training<CueTask> {
    Training::new(CueTask::new(8), Core::Lstm, config, UPDATES, 7)
}

fn read(tensor: &Tensor) -> Vec<f64> {
    read_f64(tensor, &HostSyncCounter::default()).expect("read")
}

/// The unit of reward does not matter.
#[test]
fn a_recurrent_policy_learns_to_recall_a_cue() {
    let score = final_score(CueTask::new(32).paying(100.0), Core::Lstm, small_config(), 80, 1);
    assert!(score >= 0.9, "{score}");
}

#[test]
fn a_policy_without_memory_cannot_recall_a_cue() {
    let score = final_score(CueTask::new(32).paying_late(), Core::FeedForward, small_config(), 30, 1);
    assert!((0.35..0.65).contains(&score), "{score}");
}

/// Six heads, masks that depend on the context, and a context in which waiting is best.
#[test]
fn every_head_of_a_masked_action_learns_its_part() {
    let score = final_score(BanditTask::new(256), Core::FeedForward, small_config(), 80, 1);
    assert!(score >= 0.95, "{score}");
}
