//! Ways to make a network read other data, as fields of a scenario.

use crate::grow::Variant;
use crate::growth::SlotId;
use crate::host::{HostError, HostPlan};
use crate::random::{Domain, RunRng};
use crate::scenario::{InitialSeed, InitialTopology, STATISTICS, ron_text, stands_for};
use crate::torch::Backend;

/// The kinds of seeds that are tried, in every slot, by rising size.
pub const SEEDS: [&str; 5] = ["conv_rank2", "conv_rank4", "conv_quarter", "conv_half", "conv_full"];
/// The kind at which the learning rate of all of them is chosen.
pub const TUNED: &str = "conv_quarter";
/// Weight decay and momentum of every row.
const RULE: &str = "momentum: 0.9, weight_decay: 5e-4";

/// What learns; everything else stays as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Nothing.
    Given,
    /// The running statistics of batch norms.
    Statistics,
    /// The last layer.
    Head,
    /// Statistics, and the last layer.
    StatisticsAndHead,
    /// Statistics, factors and offsets of all norms, and the last layer.
    Norms,
    /// The same, and a seed of this kind in every slot.
    Seeds(&'static str),
    /// All weights of a copy, whose statistics stay.
    CopyKept,
    /// All of a copy.
    Copy,
    /// All of a copy, from as many old images as there are new ones, too.
    Replayed,
}

impl Method {
    /// As tables call it.
    pub fn name(self) -> String {
        match self {
            Self::Given => "as given".into(),
            Self::Statistics => "statistics".into(),
            Self::Head => "head".into(),
            Self::StatisticsAndHead => "statistics, head".into(),
            Self::Norms => "norms, head".into(),
            Self::Seeds(blueprint) => format!("norms, head, {blueprint}"),
            Self::CopyKept => "fine-tuned, statistics kept".into(),
            Self::Copy => "fine-tuned".into(),
            Self::Replayed => "fine-tuned, old replayed".into(),
        }
    }

    /// Whether the given network is still inside.
    pub const fn keeps(self) -> bool {
        !matches!(self, Self::CopyKept | Self::Copy | Self::Replayed)
    }

    /// Whether a learning rate matters.
    pub const fn learns(self) -> bool {
        !matches!(self, Self::Given | Self::Statistics)
    }

    /// Whether it is tried from where [`Self::StatisticsAndHead`] ends, too: a head that is trained first leaves the features more as
    /// they are (Kumar et al. 2022, arXiv:2202.10054).
    pub const fn may_follow_head(self) -> bool {
        matches!(
            self,
            Self::Norms | Self::Seeds(_) | Self::CopyKept | Self::Copy | Self::Replayed
        )
    }
}

/// Names of the given network's tensors, by what they are, and the slots for seeds.
pub struct Parts {
    /// All layers but the last.
    inner: Vec<String>,
    /// Tensors of the last.
    head: Vec<String>,
    /// Factors and offsets of norms.
    norms: Vec<String>,
    /// All other weights.
    body: Vec<String>,
    slots: Vec<SlotId>,
}

impl Parts {
    /// Those of the host that `plan` is of, with these slots.
    ///
    /// # Errors
    /// The host cannot be built.
    pub fn of(plan: &HostPlan, slots: &[SlotId]) -> Result<Self, HostError> {
        let host = plan.build(&mut RunRng::new(0, Domain::HostInit, &[]), Backend::CPU)?;
        let mut inner = plan.outline().layers;
        let last = inner.pop().unwrap_or_default();
        let mut parts = Self {
            inner,
            head: Vec::new(),
            norms: Vec::new(),
            body: Vec::new(),
            slots: slots.to_vec(),
        };
        for param in host.params().trainable() {
            let name = &param.name;
            let list = match param.tensor.dim() {
                _ if stands_for(&last, name) => &mut parts.head,
                // A bias of a convolution does what the offset of its norm does.
                1 if !name.ends_with("conv.bias") => &mut parts.norms,
                _ => &mut parts.body,
            };
            list.push(name.clone());
        }
        Ok(parts)
    }

    /// Whether seeds can grow in it.
    pub fn has_slots(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Fields of a training by `method` at `rate`, of `steps` passes over the data.
    pub fn variant(&self, method: Method, rate: f64, steps: u32) -> Variant {
        let all_of = |lists: &[&[String]]| Some(lists.concat());
        let freeze = match method {
            Method::Given => Some(vec!["all".into()]),
            Method::Head => Some(self.inner.clone()),
            Method::Statistics => all_of(&[&self.body, &self.norms, &self.head]),
            Method::StatisticsAndHead => all_of(&[&self.body, &self.norms]),
            Method::Norms | Method::Seeds(_) => Some(self.body.clone()),
            Method::CopyKept => Some(vec![STATISTICS.into()]),
            Method::Copy | Method::Replayed => None,
        };
        let steps = match method {
            Method::Given => 1,
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
        if let Method::Seeds(blueprint) = method {
            let seeds = self.slots.iter().map(|&slot| InitialSeed {
                slot,
                blueprint: blueprint.into(),
                style: None,
            });
            sets.push(("initial_topology", ron_text(&InitialTopology::Seeds(seeds.collect()))));
            sets.push(("lifecycle.max_seeds", self.slots.len().to_string()));
        }
        Variant {
            sets,
            is_single: true,
            ..Variant::default()
        }
    }
}

#[cfg(test)]
mod tests;
