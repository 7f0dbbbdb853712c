//! The ways to make a network read other data, as fields of a scenario.

use crate::grow::Variant;
use crate::growth::SlotId;
use crate::host::{HostError, HostPlan};
use crate::random::{Domain, RunRng};
use crate::scenario::{InitialSeed, InitialTopology, STATISTICS, ron_text, stands_for};
use crate::seed::BlueprintRegistry;
use crate::torch::Backend;

/// The kinds of seeds. One of them grows in a slot.
const SEEDS: [&str; 5] = ["conv_rank2", "conv_rank4", "conv_quarter", "conv_half", "conv_full"];
/// Weight decay and momentum of every row.
const RULE: &str = "momentum: 0.9, weight_decay: 5e-4";

/// The part that learns. Everything else stays as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Nothing.
    Given,
    /// The running statistics of batch norms.
    Statistics,
    /// The last layer.
    Head,
    /// Statistics and the last layer.
    StatisticsAndHead,
    /// Statistics, factors and offsets of all norms, and the last layer.
    Norms,
    /// The same and the first layer, before which there is no slot, and seeds in slots.
    Seeds(Width),
    /// All weights of a copy, whose statistics stay.
    CopyKept,
    /// All of a copy.
    Copy,
    /// All of a copy, which also learns from as many old images as there are new ones.
    Replayed,
}

/// The total size of a row's seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    Narrow,
    Middle,
    Wide,
}

impl Width {
    /// The largest addition of a row with these seeds, in budgets.
    const fn share(self) -> f64 {
        match self {
            Self::Narrow => 0.25,
            Self::Middle => 0.5,
            Self::Wide => 1.0,
        }
    }
}

impl Method {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "as given",
            Self::Statistics => "statistics",
            Self::Head => "head",
            Self::StatisticsAndHead => "statistics, head",
            Self::Norms => "norms, head",
            Self::Seeds(Width::Narrow) => "narrow seeds",
            Self::Seeds(Width::Middle) => "seeds",
            Self::Seeds(Width::Wide) => "wide seeds",
            Self::CopyKept => "fine-tuned, statistics kept",
            Self::Copy => "fine-tuned",
            Self::Replayed => "fine-tuned, old replayed",
        }
    }

    /// Returns whether the given network is still inside.
    pub const fn keeps(self) -> bool {
        !matches!(self, Self::CopyKept | Self::Copy | Self::Replayed)
    }

    /// Returns whether a learning rate matters.
    pub const fn learns(self) -> bool {
        !matches!(self, Self::Given | Self::Statistics)
    }

    /// Returns whether the running statistics of its norms become those of the new images.
    pub const fn moves_statistics(self) -> bool {
        !matches!(self, Self::Given | Self::Head | Self::CopyKept)
    }

    /// Returns whether it is also tried from the end of [`Self::StatisticsAndHead`]: a head that is trained first leaves the features
    /// more as they were (Kumar et al. 2022, arXiv:2202.10054).
    pub const fn may_follow_head(self) -> bool {
        matches!(
            self,
            Self::Norms | Self::Seeds(_) | Self::CopyKept | Self::Copy | Self::Replayed
        )
    }
}

/// Names of the given network's tensors by their role, and the seeds.
pub struct Parts {
    /// All layers but the last.
    inner: Vec<String>,
    /// Tensors of the last layer.
    head: Vec<String>,
    /// Factors and offsets of norms.
    norms: Vec<String>,
    /// Other weights of the first layer.
    first: Vec<String>,
    /// Weights of all other layers.
    body: Vec<String>,
    slots: Vec<SlotId>,
    /// Seeds by width, all different.
    seeds: Vec<(Width, Vec<InitialSeed>)>,
    /// Values of the last layer.
    pub head_size: u64,
}

/// The slots, blueprints and budget from which seeds are chosen.
pub struct Room<'a> {
    /// Slots where they may grow, in the order of execution.
    pub slots: &'a [SlotId],
    /// All kinds.
    pub blueprints: &'a BlueprintRegistry,
    /// The largest addition of a row, in values.
    pub budget: f64,
}

impl Parts {
    /// Returns the parts of the host of `plan`, with seeds in this room.
    ///
    /// # Errors
    /// The host cannot be built.
    pub fn of(plan: &HostPlan, room: &Room) -> Result<Self, HostError> {
        let host = plan.build(&mut RunRng::new(0, Domain::HostInit, &[]), Backend::CPU)?;
        let mut inner = plan.outline().layers;
        let last = inner.pop().unwrap_or_default();
        let mut parts = Self {
            inner,
            head: Vec::new(),
            norms: Vec::new(),
            first: Vec::new(),
            body: Vec::new(),
            slots: room.slots.to_vec(),
            seeds: Vec::new(),
            head_size: 0,
        };
        let mut body_size = 0;
        for param in host.params().trainable() {
            let (name, size) = (&param.name, param.tensor.numel() as u64);
            let list = match param.tensor.dim() {
                _ if stands_for(&last, name) => {
                    parts.head_size += size;
                    &mut parts.head
                }
                // A bias of a convolution has the effect of its norm's offset.
                1 if !name.ends_with("conv.bias") => &mut parts.norms,
                _ if parts.inner.first().is_some_and(|first| stands_for(first, name)) => &mut parts.first,
                _ => {
                    body_size += size;
                    &mut parts.body
                }
            };
            list.push(name.clone());
        }
        let all = host.params().all();
        let own = all.map(|param| param.tensor.numel() as u64).sum::<u64>() - body_size;
        for width in [Width::Middle, Width::Narrow, Width::Wide] {
            let seeds = room.seeds(plan, (width.share() * room.budget) as u64, own);
            if !seeds.is_empty() && parts.seeds.iter().all(|(_, others)| *others != seeds) {
                parts.seeds.push((width, seeds));
            }
        }
        Ok(parts)
    }

    /// Widths of rows. The first one's setting is also that of the others.
    pub fn widths(&self) -> impl Iterator<Item = Width> {
        self.seeds.iter().map(|(width, _)| *width)
    }

    /// Fields of a training by `method` at `rate`, of `steps` passes over the data.
    pub fn variant(&self, method: Method, rate: f64, steps: u32) -> Variant {
        let all_of = |lists: &[&[String]]| Some(lists.concat());
        let freeze = match method {
            Method::Given => Some(vec!["all".into()]),
            Method::Head => Some(self.inner.clone()),
            Method::Statistics => all_of(&[&self.first, &self.body, &self.norms, &self.head]),
            Method::StatisticsAndHead => all_of(&[&self.first, &self.body, &self.norms]),
            Method::Norms => all_of(&[&self.first, &self.body]),
            Method::Seeds(_) => Some(self.body.clone()),
            Method::CopyKept => Some(vec![STATISTICS.into()]),
            Method::Copy | Method::Replayed => None,
        };
        // In a network of two layers the body is empty.
        let freeze = freeze.filter(|names| !names.is_empty());
        let steps = match method {
            Method::Given | Method::Statistics => 1,
            _ => steps,
        };
        let rule = format!("sgd(lr: {rate}, {RULE})");
        // A tenth of the rate for the last part.
        let course = format!("step(every: {}, factor: 0.1)", (steps * 17).div_ceil(20).max(1));
        let mut sets = vec![
            (
                "task.freeze",
                freeze.map_or("None".into(), |names| format!("Some({})", ron_text(&names))),
            ),
            ("task.host_opt", rule.clone()),
            ("task.seed_opt", rule),
            ("training.host_lr", course.clone()),
            ("training.seed_lr", course),
            ("run.max_steps", steps.to_string()),
            ("lifecycle.slots", ron_text(&self.slots)),
        ];
        if let Some((_, seeds)) = self.seeds.iter().find(|(width, _)| method == Method::Seeds(*width)) {
            sets.push(("initial_topology", ron_text(&InitialTopology::Seeds(seeds.clone()))));
            sets.push(("lifecycle.max_seeds", self.slots.len().to_string()));
        }
        Variant {
            sets,
            is_single: true,
            ..Variant::default()
        }
    }
}

impl Room<'_> {
    /// Seeds that add at most `most` values together with the `own` ones of first layer, norms and head: in each slot in order
    /// the largest that fits, since a change in an early slot reaches all later layers.
    fn seeds(&self, plan: &HostPlan, most: u64, own: u64) -> Vec<InitialSeed> {
        let injections = plan.injection_specs();
        let mut room = most.saturating_sub(own);
        let seeds = self.slots.iter().filter_map(|&slot| {
            let dim = injections.iter().find(|found| found.slot == slot)?.channels;
            let kinds = self.blueprints.on_request().filter(|kind| SEEDS.contains(&kind.id()));
            let sizes = kinds.map(|kind| (kind.param_count(dim), kind.id()));
            let (size, blueprint) = sizes.filter(|(size, _)| *size <= room).max()?;
            room -= size;
            Some(InitialSeed {
                slot,
                blueprint: blueprint.into(),
                style: None,
            })
        });
        seeds.collect()
    }
}

#[cfg(test)]
mod tests;
