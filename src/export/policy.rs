//! A policy as plain PyTorch: its constants and its network in `policy.py`, and its weights.

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};

use super::library::{POLICY, POLICY_HEAD, READ};
use super::{ExportError, Files};
use crate::actions::{Head, relevant};
use crate::controller::{ElementScale, OBSERVATION_CLIP, SavedPolicy};
use crate::growth::LifecycleOp;
use crate::policy::EMBEDDING_SIZE;
use crate::scenario::HeadConditioning;
use crate::torch::PlainTensor;

/// The files of a policy.
///
/// # Errors
/// Memory.
pub fn export_policy(policy: &SavedPolicy) -> Result<Files, ExportError> {
    Ok(vec![
        ("policy.py", policy_py(policy).into_bytes()),
        ("policy.safetensors", tensors(policy)?),
    ])
}

fn policy_py(policy: &SavedPolicy) -> String {
    let spec = policy.net.spec();
    let (config, layout) = (spec.config, spec.layout());
    let of_heads = |value: &dyn Fn(Head) -> Value| Head::ALL.map(|head| entry(head, &value(head))).concat();
    let members = of_heads(&|head| {
        let members = head.members(&policy.slots, &policy.blueprints).into_iter();
        members.map(str::to_lowercase).collect()
    });
    let relevance = of_heads(&|head| {
        LifecycleOp::ALL
            .iter()
            .map(|&op| u8::from(relevant(op, head)))
            .collect()
    });
    let engine = env!("CARGO_PKG_VERSION");
    format!(
        r#""""A policy that simic-engine {engine} has trained in {updates} updates. It decides what to do in each slot of a network that grows.

`load()` returns it with its weights. `decide` plays it on the engine's `VectorEnv`. It needs torch alone.
"""

{imports}

# The heads of an action in their order, and what each may choose.
MEMBERS = {{
{members}}}
# Whether a head matters to each operation.
RELEVANT = {{
{relevance}}}
# Rows of a head's logits: by slot, by the operations that it matters to, or one.
ROWS = {{
{rows}}}
PER_SLOT = {per_slot}
# The least probability of a legal member.
FLOORS = {{
{floors}}}
OBSERVATION, CLIP = {observation}, {OBSERVATION_CLIP:?}
EMBEDDING, HIDDEN, LAYERS = {EMBEDDING_SIZE}, {hidden}, {layers}


{READ}

{POLICY}"#,
        updates = policy.updates,
        imports = POLICY_HEAD.trim_end(),
        rows = of_heads(&|head| layout.head(head).rows.into()),
        per_slot = match config.head_conditioning {
            HeadConditioning::PerSlot => "True",
            HeadConditioning::PerOp | HeadConditioning::Shared => "False",
        },
        floors = of_heads(&|head| policy.floors[head as usize].into()),
        observation = spec.observation,
        hidden = config.hidden_dim,
        layers = config.layers,
    )
}

/// A line of a table by head. Texts and numbers in JSON are valid Python.
fn entry(head: Head, value: &Value) -> String {
    format!("    {}: {value},\n", json!(head.name()))
}

/// The `state_dict`: weights, and the scales of observations.
fn tensors(policy: &SavedPolicy) -> Result<Vec<u8>, ExportError> {
    let weights = policy.net.params().iter().map(|param| {
        // `nn.LSTM` counts its layers, of which each of ours has one.
        let is_recurrent = param.name.contains(".lstm.");
        let name = format!("{}{}", param.name, if is_recurrent { "_l0" } else { "" });
        Ok((name, PlainTensor::of(&param.tensor)?))
    });
    let weights = weights.collect::<Result<Vec<_>, ExportError>>()?;
    let floats = |of: fn(&ElementScale) -> f64| -> Vec<u8> {
        let values = policy.scales.iter().map(|scale| (of(scale) as f32).to_le_bytes());
        values.flatten().collect()
    };
    let (mean, deviation) = (floats(|scale| scale.mean), floats(|scale| scale.deviation));
    let flag = |scale: &ElementScale| scale.occupied_by.map_or(-1, |flag| flag as i64).to_le_bytes();
    let flag: Vec<u8> = policy.scales.iter().flat_map(flag).collect();
    let shape = || vec![policy.scales.len()];
    let mut views = vec![
        ("mean", TensorView::new(Dtype::F32, shape(), &mean)?),
        ("deviation", TensorView::new(Dtype::F32, shape(), &deviation)?),
        ("flag", TensorView::new(Dtype::I64, shape(), &flag)?),
    ];
    for (name, weight) in &weights {
        views.push((
            name,
            TensorView::new(Dtype::F32, weight.shape().to_vec(), weight.bytes())?,
        ));
    }
    Ok(serialize(views, None)?)
}
