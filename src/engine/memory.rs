//! How much memory a run takes at least, reckoned before any of it is asked for: what no machine has is an error with a
//! place to mend it, not the end of the process in the middle of an allocation.

use std::fmt;

use crate::controller::{ObservationFeatures, ObservationSchema};
use crate::scenario::{CriticConfig, CriticCore, Loaded};
use crate::torch::DeviceSpec;

/// Bytes of an element of most tensors.
const F32_BYTES: u128 = 4;
/// Bytes of a stored token.
const TOKEN_BYTES: u128 = 4;
/// Parameters, gradients and moments.
const TRAINED_COPIES: u128 = 3;

/// One of the things that take memory, in bytes, and the fields that it grows with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    what: &'static str,
    fields: &'static str,
    bytes: u128,
}

/// A scenario that needs more memory than there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryShortage {
    /// The largest first.
    needs: Vec<Need>,
    available: u64,
}

impl fmt::Display for MemoryShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: u128 = total(&self.needs);
        write!(
            f,
            "the run needs at least {} of memory, this machine has {}; what takes most of it:",
            size(total),
            size(self.available.into())
        )?;
        let most = self.needs.iter().filter(|need| need.bytes > total / 20);
        for Need { what, fields, bytes } in most {
            write!(f, "\n  {what} {} (smaller with {fields})", size(*bytes))?;
        }
        Ok(())
    }
}

impl std::error::Error for MemoryShortage {}

/// Whether a scenario fits into so many bytes; `None` where the machine does not say how many it has.
///
/// # Errors
/// It certainly does not: only what every run allocates is reckoned, so one that passes may still be too large.
pub fn check_memory(loaded: &Loaded, available: Option<u64>) -> Result<(), MemoryShortage> {
    let Some(available) = available else { return Ok(()) };
    let mut needs = needs_of(loaded);
    if total(&needs) <= u128::from(available) {
        return Ok(());
    }
    needs.sort_unstable_by_key(|need| std::cmp::Reverse(need.bytes));
    Err(MemoryShortage { needs, available })
}

fn total(needs: &[Need]) -> u128 {
    needs.iter().fold(0, |total, need| total.saturating_add(need.bytes))
}

fn needs_of(loaded: &Loaded) -> Vec<Need> {
    let (run, policy, task) = (&loaded.scenario.run, &loaded.scenario.policy, &loaded.task);
    let mut needs = vec![Need {
        what: "data",
        fields: "the sizes of its parts in task.data",
        bytes: data_bytes(loaded),
    }];
    // What lives on other devices takes none of the machine's memory.
    if run.devices.iter().all(|device| *device == DeviceSpec::Cpu) {
        let envs = run.n_envs as u128;
        let parameters = u128::from(loaded.host.parameters);
        needs.push(Need {
            what: "hosts",
            fields: "run.n_envs, task.host",
            bytes: product([envs, parameters, TRAINED_COPIES, F32_BYTES]),
        });
        if policy.controller == LEARNED {
            let schema = ObservationSchema::new(
                &loaded.slots,
                task.max_steps,
                policy.obs,
                &ObservationFeatures::default(),
            );
            let observation = schema.len() as u128;
            let rounds = u128::from(loaded.scenario.learner.episodes_per_update);
            needs.push(Need {
                what: "a rollout",
                fields: "run.n_envs, run.max_steps, learner.episodes_per_update",
                // Observations are kept as they came and as the policy saw them.
                bytes: product([
                    envs,
                    rounds,
                    task.max_steps.into(),
                    observation,
                    2 + rehearsed_rollouts(&loaded.scenario.learner.critic),
                    F32_BYTES,
                ]),
            });
            let (features, hidden) = (policy.net_cfg.feature_dim as u128, policy.net_cfg.hidden_dim as u128);
            let trunks = match policy.net_cfg.critic_core {
                CriticCore::Shared => 1,
                CriticCore::Separate => 2,
            };
            let weights = product([trunks, features, observation.saturating_add(hidden)]);
            needs.push(Need {
                what: "the policy",
                fields: "policy.net_cfg",
                bytes: product([weights, TRAINED_COPIES, F32_BYTES]),
            });
        }
    }
    needs
}

/// The controller whose policy is trained.
const LEARNED: &str = "actor_critic";

/// Rollouts that the critic keeps for its own passes.
fn rehearsed_rollouts(critic: &CriticConfig) -> u128 {
    if critic.epochs > 0 { critic.rollouts.into() } else { 0 }
}

fn data_bytes(loaded: &Loaded) -> u128 {
    let data = &loaded.task.data;
    if let (Some(sizes), Some(text)) = (data.part_sizes(&loaded.task.split), data.text()) {
        let samples = [sizes.train, sizes.val, sizes.test].map(|samples| samples as u128);
        let samples = samples.into_iter().fold(0, u128::saturating_add);
        return product([samples, text.block as u128 + 1, TOKEN_BYTES]);
    }
    let (Some(sizes), Some(shape)) = (data.part_sizes(&loaded.task.split), data.shape()) else {
        // Files are as large as they are; they are read before anything is made of them.
        return 0;
    };
    let samples = [sizes.train, sizes.val, sizes.test].map(|samples| samples as u128);
    let samples = samples.into_iter().fold(0, u128::saturating_add);
    let pixels = [shape.channels, shape.height, shape.width].map(|size| size.max(0) as u128);
    product([samples, product(pixels)])
}

fn product<const N: usize>(factors: [u128; N]) -> u128 {
    factors.into_iter().fold(1, u128::saturating_mul)
}

/// `15.6 GiB`
pub(crate) fn size(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} bytes"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests;
