//! The engine's own hosts: a family a file, each turning its fields of a scenario into a plan.

mod cnn;
mod presets;
mod resnet;
mod transformer;
mod vgg;
#[cfg(test)]
mod tests;

pub use presets::presets;

use super::HostPlan;
use crate::scenario::{HostChoice, HostProblem};

/// Widest first stage, and transformer, as `task.host.base_channels` and `task.host.width` say.
const WIDEST: i64 = 4096;
/// Most stages of a network that doubles its channels with each.
const MOST_STAGES: usize = 8;

/// Most blocks of a stage, and layers of a network without stages, that a plan is made of.
const MOST_BLOCKS: usize = 64;

/// The beginning of a plan. Ranges of single fields are checked elsewhere, and all faults of a scenario are reported at once:
/// any values must give some plan.
fn begin(channels: i64, side: i64) -> HostPlan {
    /// More than any field allows.
    const LARGEST: i64 = 1 << 16;
    HostPlan::new(channels.clamp(1, LARGEST), side.clamp(1, LARGEST))
}

/// Channels after `doublings` doublings, for any values.
fn doubled(base_channels: i64, doublings: usize) -> i64 {
    /// One less than the most blocks of a CNN.
    const MOST: usize = 11;
    base_channels.clamp(1, WIDEST) << doublings.min(MOST)
}

/// The same host for images of `channels` channels and `side` pixels a side, where it reads images of any kind.
pub fn reading(mut host: HostChoice, channels: i64, side: i64) -> HostChoice {
    let (in_channels, input_hw) = match &mut host {
        HostChoice::Cnn(cnn) => (&mut cnn.in_channels, &mut cnn.input_hw),
        HostChoice::Resnet(resnet) => (&mut resnet.in_channels, &mut resnet.input_hw),
        HostChoice::Vgg(vgg) => (&mut vgg.in_channels, &mut vgg.input_hw),
        _ => return host,
    };
    (*in_channels, *input_hw) = (channels, side);
    host
}

/// The next wider host of the same family. `None` if there is none.
pub fn widened(mut host: HostChoice) -> Option<HostChoice> {
    let (width, step) = match &mut host {
        HostChoice::Cnn(cnn) => (&mut cnn.base_channels, 1),
        HostChoice::Resnet(resnet) => (&mut resnet.base_channels, 1),
        HostChoice::Vgg(vgg) => (&mut vgg.base_channels, 1),
        // The heads divide it, with an even number of channels a head.
        HostChoice::Transformer(text) => (&mut text.width, 2 * text.heads),
        _ => return None,
    };
    *width += step;
    (*width <= WIDEST).then_some(host)
}

/// Faults of the stages of a network.
fn stage_problems(blocks: &[usize]) -> Vec<HostProblem> {
    if (1..=MOST_STAGES).contains(&blocks.len()) {
        return Vec::new();
    }
    vec![HostProblem {
        fields: vec!["blocks"],
        message: format!("{} stages; valid: 1 to {MOST_STAGES}", blocks.len()),
    }]
}

/// The fault where `pools` halve an image of `side` pixels. `culprit` is the field with their number.
fn pool_problem(side: i64, pools: usize, culprit: &'static str) -> Option<HostProblem> {
    let pools = u32::try_from(pools).unwrap_or(u32::MAX);
    if side.checked_shr(pools).unwrap_or(0) > 0 {
        return None;
    }
    let most = side.checked_ilog2().unwrap_or(0);
    Some(HostProblem {
        fields: vec![culprit, "input_hw"],
        message: format!("{pools} pools shrink {side}x{side} pixels to nothing; at most {most} fit"),
    })
}
