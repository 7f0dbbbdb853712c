//! The largest size of a grown network, and the seeds that fit into it.

use std::fmt;
use std::str::FromStr;

use crate::graph::SeedGraph;
use crate::growth::{AlphaAlgorithm, SlotId, Topology};
use crate::host::HostPlan;
use crate::scenario::HostOutline;
use crate::seed::BlueprintRegistry;

/// The largest size of a grown network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The amount.
    pub amount: Amount,
    /// `true` if it counts multiply-accumulates of a sample, not parameters.
    pub is_macs: bool,
}

/// A number, or a multiple of the host's size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Multiple of the host's size, above 1.
    Times(f64),
    /// Total size.
    Total(f64),
}

impl Budget {
    /// Returns whether a network of size `grown` from a host of this size fits.
    pub fn allows(self, host: Size, grown: Size) -> bool {
        let [host, grown] = [host, grown].map(|size| if self.is_macs { size.macs } else { size.parameters } as f64);
        match self.amount {
            Amount::Times(factor) => grown <= factor * host,
            Amount::Total(total) => grown <= total,
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let unit = ["parameters", "multiply-accumulates"][usize::from(self.is_macs)];
        match self.amount {
            Amount::Times(factor) => write!(f, "{factor} times the host's {unit}"),
            Amount::Total(total) => write!(f, "{total} {unit}"),
        }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` isn't a budget; valid: 2x (times the host's parameters), 120k or 1.5M (parameters), and the same with \
                 macs after it, e.g. 2xmacs, for multiply-accumulates"
            )
        };
        let (number, is_macs) = text.strip_suffix("macs").map_or((text, false), |number| (number, true));
        let parse = |digits: &str| {
            digits
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite() && *value > 0.0)
        };
        let amount = if let Some(factor) = number.strip_suffix('x') {
            let factor = parse(factor).ok_or_else(wrong)?;
            if factor <= 1.0 {
                return Err(format!(
                    "`{text}` leaves no room for a seed: it must exceed 1x, the host itself; valid: e.g. 2x"
                ));
            }
            Amount::Times(factor)
        } else {
            let units = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("", 1.0)];
            let scaled = units
                .iter()
                .find_map(|(unit, scale)| Some(parse(number.strip_suffix(unit)?)? * scale));
            Amount::Total(scaled.ok_or_else(wrong)?)
        };
        Ok(Self { amount, is_macs })
    }
}

/// Size of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Trainable values.
    pub parameters: u64,
    /// Multiply-accumulates of a sample.
    pub macs: u64,
}

impl Size {
    /// Size of a host.
    pub fn of(plan: &HostPlan) -> Self {
        Self {
            parameters: plan.outline().parameters,
            macs: plan.op_costs().iter().map(|cost| cost.macs).sum(),
        }
    }

    fn with(self, seed: &SeedGraph, positions: u64) -> Self {
        Self {
            parameters: self.parameters + seed.module.parameters(seed.channels),
            macs: self.macs + seed.module.macs(seed.channels, positions),
        }
    }
}

/// Seeds that are planted together: the slot of each, in policy order, and its blueprint.
pub type Planting = Vec<(String, &'static str)>;

/// The largest number of slots that are tried one by one.
const SINGLE_SLOTS: usize = 6;

/// Seeds for images and for texts from the strongest to the smallest, followed by the attention.
const fn ladder(topology: Topology) -> [&'static str; 4] {
    match topology {
        Topology::Image => ["conv_heavy", "conv_light", "depthwise", "attention"],
        Topology::Tokens => ["mlp", "lora_large", "lora", "attention"],
    }
}

/// Seeds planted blindly into `slots`, each planting as strong as `budget` allows; none where nothing fits.
///
/// From fresh weights: heavy, heavy, attention in the order of slots, and the same with fewer seeds. With `is_given`: into a
/// trained network a seed into the first and the last slot, and one into each slot alone, as which slot is right depends on
/// what has changed in the data.
pub fn plantings(
    plan: &HostPlan,
    slots: &[SlotId],
    blueprints: &BlueprintRegistry,
    budget: Budget,
    is_given: bool,
) -> Vec<Planting> {
    let outline = plan.outline();
    let depth = places(&outline, slots);
    let (Some(&first), Some(&last)) = (depth.first(), depth.last()) else {
        return Vec::new();
    };
    let heavy = |place: usize| (place, 0);
    let mut patterns: Vec<Vec<(usize, usize)>> = Vec::new();
    if is_given {
        patterns.push(vec![heavy(first), heavy(last)]);
        let every = depth.len().div_ceil(SINGLE_SLOTS).max(1);
        let singles = depth.iter().rev().step_by(every).rev();
        patterns.extend(singles.map(|&place| vec![heavy(place)]));
    } else {
        let middle = depth[depth.len() / 2];
        patterns.push(vec![heavy(first), heavy(middle), (last, 3)]);
        patterns.push(vec![heavy(first), heavy(middle)]);
        patterns.push(vec![heavy(first)]);
        patterns.push(vec![heavy(last)]);
    }
    let mut fitting: Vec<Planting> = Vec::new();
    for mut pattern in patterns {
        pattern.sort_unstable();
        pattern.dedup_by_key(|(place, _)| *place);
        let strongest = (0..4).find_map(|lighter| fit(&pattern, lighter, &outline, plan, blueprints, budget));
        fitting.extend(strongest.filter(|planting| !fitting.contains(planting)));
    }
    fitting
}

/// Injections at `slots` in the order of execution, by their place in policy order.
fn places(outline: &HostOutline, slots: &[SlotId]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..outline.injections.len()).collect();
    places.retain(|&place| slots.contains(&outline.injections[place].slot));
    places.sort_unstable_by_key(|&place| outline.injections[place].boundary);
    places
}

/// The pattern with every seed `lighter` rungs down the ladder, if it fits.
fn fit(
    pattern: &[(usize, usize)],
    lighter: usize,
    outline: &HostOutline,
    plan: &HostPlan,
    blueprints: &BlueprintRegistry,
    budget: Budget,
) -> Option<Planting> {
    let host = Size::of(plan);
    let (costs, ladder) = (plan.op_costs(), ladder(plan.topology()));
    let (mut grown, mut planting) = (host, Planting::new());
    for &(place, rung) in pattern {
        let spec = &outline.injections[place];
        let name = ladder[(rung + lighter).min(ladder.len() - 1)];
        let known = blueprints.for_topology(plan.topology());
        let blueprint = known
            .into_iter()
            .find_map(|(_, known)| (known.id() == name).then_some(known))?;
        let seed = SeedGraph {
            slot: spec.slot,
            blueprint: name.into(),
            channels: spec.channels,
            module: blueprint.graph(spec.channels),
            operator: AlphaAlgorithm::Add,
            amplitude: 1.0,
        };
        grown = grown.with(&seed, costs[spec.boundary - 1].positions);
        planting.push((spec.slot.to_string(), name));
    }
    budget.allows(host, grown).then_some(planting)
}

#[cfg(test)]
mod tests;
