//! Names as an engine has them, with a stand-in for its hosts: a slot for each block.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::growth::{InjectionSpec, SlotId, Topology};
use crate::scenario::{
    BlueprintEntry, Catalog, ContributionMode, Entry, HostChoice, HostOutline, KnownHosts, KnownRewards,
    MeasurementNeed, RewardConfig, RewardProfile, task_presets,
};

/// The catalog of an engine without plugins.
pub fn catalog() -> Catalog {
    let entries = |names: &[&str]| names.iter().map(|name| Entry::new(*name, "for tests")).collect();
    let blueprints = "noop conv_light attention norm depthwise bottleneck conv_small conv_heavy";
    let blueprint = |(index, name): (usize, &str)| BlueprintEntry {
        index: Some(index),
        name: name.into(),
        summary: "for tests".into(),
        selectable: index > 0,
        grows_in: Topology::ALL.to_vec(),
    };
    Catalog {
        tasks: task_presets(),
        data: Vec::new(),
        images: None,
        hosts: Arc::new(Blocks),
        blueprints: blueprints.split(' ').enumerate().map(blueprint).collect(),
        controllers: entries(&["actor_critic", "heuristic", "random", "schedule", "wait"]),
        nets: entries(&["gru", "lstm", "mlp"]),
        rewards: Vec::new(),
        profiles: Arc::new(Modes),
        settings: BTreeMap::new(),
    }
}

#[derive(Debug)]
struct Modes;

impl KnownRewards for Modes {
    fn profile(&self, reward: &RewardConfig) -> RewardProfile {
        RewardProfile::needing(match reward {
            RewardConfig::Contribution(ContributionMode::Committed(_)) => MeasurementNeed::EveryStep,
            RewardConfig::Custom { .. } => MeasurementNeed::Unknown,
            _ => MeasurementNeed::AtTheEnd,
        })
    }
}

#[derive(Debug)]
struct Blocks;

impl KnownHosts for Blocks {
    fn entries(&self) -> Vec<Entry> {
        vec![Entry::new("resnet20", "for tests")]
    }

    fn outline(&self, host: &HostChoice, classes: i64, _: Option<&Path>) -> Result<HostOutline, String> {
        let (channels, side, blocks) = match host {
            HostChoice::Cnn(cnn) => (cnn.in_channels, cnn.input_hw, cnn.n_blocks),
            _ => (3, 32, 3),
        };
        let slot = |column: u16| InjectionSpec {
            slot: SlotId::new(0, column),
            channels: 8,
            boundary: usize::from(column) + 1,
            order: u32::from(column),
        };
        Ok(HostOutline {
            topology: Topology::Image,
            channels,
            side,
            parameters: 100,
            ops: 4,
            layers: vec!["block0".into(), "head".into()],
            op_outputs: vec![8, 8, 8, classes.unsigned_abs()],
            injections: (0..u16::try_from(blocks).unwrap_or(0)).map(slot).collect(),
            batch_norms: Vec::new(),
            problems: Vec::new(),
        })
    }
}
