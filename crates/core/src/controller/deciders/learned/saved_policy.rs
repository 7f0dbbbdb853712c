//! A saved policy without a run: what those need who apply it elsewhere.

use tch::Device;

use super::storage::{FORMAT, PolicyManifest, VALUE_HEAD, WEIGHTS_FILE, load_policy, read_manifest};
use crate::actions::{HEADS, PolicyError};
use crate::controller::saved::{SavedFolder, storage};
use crate::controller::view::{ElementScale, ObservationFeatures, ObservationNormaliser, ObservationSchema};
use crate::growth::SlotId;
use crate::policy::{ActorCritic, EMBEDDING_SIZE, Floor, NetContext, NetRegistry, NetSpec};
use crate::scenario::FeatureGroup;
use crate::schema::Settings;

/// A policy of the built-in network that sees the built-in features.
pub struct SavedPolicy {
    /// The network with its weights, on the CPU.
    pub net: Box<dyn ActorCritic>,
    /// Names of the slots, in policy order.
    pub slots: Vec<String>,
    /// Names of the blueprints by index.
    pub blueprints: Vec<String>,
    /// The treatment that brings the elements of an observation to one scale.
    pub scales: Vec<ElementScale>,
    /// The minimum probability of each valid member, by head in storage order, before the cap that many members put on it.
    pub floors: [f64; HEADS],
    /// Updates that the weights have seen.
    pub updates: u64,
}

impl SavedPolicy {
    /// Reads the policy from the folder of a checkpoint or of a saved controller.
    ///
    /// # Errors
    /// `Storage` for files that can't be understood, and for custom features or a custom network of an
    /// application. `IncompatiblePolicy` for weights that don't fit.
    pub fn read(folder: &SavedFolder) -> Result<Self, PolicyError> {
        let manifest = read_manifest(folder)?;
        let unfit = |why: &str| storage(folder.path(), &why);
        let own = "it reads features that an application defines, so only that application can use it";
        let schema = schema_of(&manifest).ok_or_else(|| unfit(own))?;
        // No more is allocated than the file can fill: values of the two largest kinds of weights.
        let (net, size) = (manifest.net_cfg, |size: usize| size as f64);
        let seen = size(manifest.observation) + size(EMBEDDING_SIZE) * size(manifest.slots.len());
        let least = size(net.hidden_dim).powi(2) * size(net.layers) + size(net.hidden_dim) * seen;
        if least > size(folder.file(WEIGHTS_FILE)?.len() / size_of::<f32>()) {
            return Err(unfit("its weights file is too short for the sizes in its manifest"));
        }
        let spec = NetSpec {
            kind: manifest.net.clone(),
            observation: manifest.observation,
            slots: manifest.slots.len(),
            blueprints: manifest.blueprints.len(),
            config: manifest.net_cfg,
        };
        let context = NetContext {
            spec,
            device: Device::Cpu,
            seed: 0,
        };
        let net = NetRegistry::default().build(context, &Settings::default())?;
        let read = PolicyManifest {
            format: FORMAT,
            value_head: VALUE_HEAD,
            ..manifest.clone()
        };
        load_policy(folder, &read, net.params())?;
        let mut normaliser = ObservationNormaliser::new(&schema);
        normaliser.restore(&manifest.statistics)?;
        let floors = Floor::of_heads(manifest.floor_scale);
        Ok(Self {
            net,
            scales: normaliser.scales(),
            floors: floors.map(|floor| floor.epsilon),
            slots: manifest.slots,
            blueprints: manifest.blueprints,
            updates: manifest.updates,
        })
    }
}

/// The layout that the policy was trained on, if all of its features are built in.
fn schema_of(manifest: &PolicyManifest) -> Option<ObservationSchema> {
    let slots: Vec<SlotId> = manifest
        .slots
        .iter()
        .map(|slot| slot.parse().ok())
        .collect::<Option<_>>()?;
    let with = |groups: &[FeatureGroup]| ObservationSchema::new(&slots, 1, groups, &ObservationFeatures::default());
    let mut known = [with(&[]), with(&[FeatureGroup::RewardParts])].into_iter();
    known.find(|schema| schema.hash() == manifest.schema_hash && schema.len() == manifest.observation)
}
