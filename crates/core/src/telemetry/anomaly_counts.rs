//! Counts of anomalies, with one entry for one cause: a host that never learns is one, however many of its seeds
//! have no gradients. A part of the [live state](super::LiveState), from which the lines of rounds and the summary are drawn.

use std::collections::BTreeMap;

use serde::Serialize;

use super::event::{Event, Payload};
use super::payload::AnomalyState;
use crate::files::counted;

/// The entry of hosts that weren't better in their last step than in their first.
const NEVER_LEARNT: &str = "never_learnt";
/// Detectors that speak of such a host, and of seeds because they are in one.
const IMPLIED: [&str; 3] = ["dead_host", "gradient_pathology", "stuck_seed"];
/// Points by which the best accuracy of a host that has learnt exceeds its first one, at least.
const LEAST_RISE: f64 = 1.0;

/// The number of findings of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AnomalyCount {
    /// Times that it began.
    pub times: u64,
    /// Episodes in which it was found; none for anomalies of the run as a whole.
    pub hosts: u64,
    /// Seeds that germinated in hosts that never learnt.
    pub seeds: u64,
}

/// Counts of anomalies by detector or common cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnomalyCounts {
    /// Counts in the run.
    pub run: BTreeMap<String, AnomalyCount>,
    /// Counts in the hosts of the newest round that have ended.
    pub round: BTreeMap<String, AnomalyCount>,
    /// Counts in hosts that train, by env.
    training: BTreeMap<u32, BTreeMap<String, u64>>,
}

impl AnomalyCounts {
    /// Takes the next event; `first`: the accuracy of its env in the first step, percent.
    pub(super) fn apply(&mut self, event: &Event, first: Option<f64>) {
        match (&event.payload, event.env) {
            (Payload::Anomaly(anomaly), env) if anomaly.state == AnomalyState::Onset => {
                let rule = anomaly.rule.clone();
                *match env {
                    Some(env) => self.training.entry(env).or_default().entry(rule).or_default(),
                    None => &mut self.run.entry(rule).or_default().times,
                } += 1;
            }
            (Payload::EpisodeFinished(episode), Some(env)) => {
                let mut found = self.training.remove(&env).unwrap_or_default();
                let has_risen = first.is_none_or(|first| episode.best_accuracy.0 >= first + LEAST_RISE);
                if found.contains_key("dead_host") && !has_risen {
                    found.retain(|rule, _| !IMPLIED.contains(&rule.as_str()));
                    self.add(NEVER_LEARNT, 1, episode.growth.germinated.into());
                }
                found.iter().for_each(|(rule, &times)| self.add(rule, times, 0));
            }
            _ => {}
        }
    }

    /// Adds the findings of one host.
    fn add(&mut self, cause: &str, times: u64, seeds: u64) {
        for counts in [&mut self.run, &mut self.round] {
            let count = counts.entry(cause.into()).or_default();
            count.times += times;
            count.hosts += 1;
            count.seeds += seeds;
        }
    }
}

impl AnomalyCount {
    /// Describes the count in words, next to the number of hosts of the round or the run.
    pub fn describe(self, cause: &str, all_hosts: u64) -> String {
        let Self { times, hosts, seeds } = self;
        let all_hosts = counted(all_hosts, "host");
        match (cause, hosts) {
            (NEVER_LEARNT, _) => {
                let seeds = counted(seeds, "seed");
                format!("{hosts} of {all_hosts} never learnt (dead from the first step; {seeds} in vain)")
            }
            (_, 0) => format!("{cause} {times}x"),
            _ => format!("{cause} {times}x in {hosts} of {all_hosts}"),
        }
    }
}
