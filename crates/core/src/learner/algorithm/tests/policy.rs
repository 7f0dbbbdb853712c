//! A small policy: what a learner needs of one, in a few lines per part.
//!
//! An encoder, a core with or without memory, one linear head per action head that has anything to choose, a value head.
//! Heads do not see what was chosen before them, but for their masks.

use std::f64::consts::SQRT_2;

use crate::extend::{
    Evaluation, HEADS, Head, HeadIndices, HostSyncCounter, NoGrad, OPS, ParamGroup, PolicyParam, RELEVANCE,
    SequenceInput, TrainablePolicy, ValueUnits, read_f32,
};
use crate::prelude::{self, Domain, Draw, LifecycleOp, PolicyError, RecurrentState, RunRng};
use tch::{Device, Kind, Tensor};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// Remembers.
    Lstm,
    /// Sees the current step alone.
    FeedForward,
}

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub observation: usize,
    pub hidden: usize,
    pub slots: usize,
    pub blueprints: usize,
    /// Heads that ever have a choice, those that others depend on first; the rest hold their placeholders.
    pub heads: &'static [Head],
}

struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    /// Orthogonal weights times `gain`, biases 0.
    fn new(inputs: usize, outputs: usize, gain: f64, rng: &mut RunRng) -> Self {
        let (tall, flat) = (inputs.max(outputs), inputs.min(outputs));
        let mut values = vec![0.0f32; tall * flat];
        rng.fill_normal(&mut values, 1.0);
        let square = Tensor::from_slice(&values).reshape([tall as i64, flat as i64]);
        let (columns, _) = Tensor::linalg_qr(&square, "reduced");
        let weight = if outputs >= inputs {
            columns
        } else {
            columns.transpose(0, 1)
        };
        Self {
            weight: (weight * gain).contiguous().set_requires_grad(true),
            bias: Tensor::zeros([outputs as i64], (Kind::Float, Device::Cpu)).set_requires_grad(true),
        }
    }

    fn forward(&self, input: &Tensor) -> Tensor {
        input.linear(&self.weight, Some(&self.bias))
    }
}

/// Without parameters of its own.
fn layer_norm(input: &Tensor) -> Tensor {
    let width = input.size()[1];
    input.layer_norm([width], None::<&Tensor>, None::<&Tensor>, 1e-5, false)
}

pub struct SmallPolicy {
    pub sizes: Sizes,
    core: Core,
    encoder: Linear,
    input: Linear,
    recurrent: Linear,
    /// By head, in storage order.
    heads: Vec<Option<Linear>>,
    value: Linear,
    /// Least probability of every valid member, before the learner's scale.
    pub floor: f64,
    floor_scale: f64,
}

/// What was chosen for every row.
pub struct Chosen {
    pub indices: Vec<HeadIndices>,
    pub log_probs: Vec<[f32; HEADS]>,
    pub value_normalised: Vec<f32>,
}

/// Log-probabilities and entropies of one head, rows × members, and their reductions.
struct HeadScore {
    log_prob: Tensor,
    entropy: Tensor,
}

impl SmallPolicy {
    pub fn new(core: Core, sizes: Sizes, seed: u64) -> Self {
        let mut rng = RunRng::new(seed, Domain::PolicyInit, &[0]);
        let hidden = sizes.hidden;
        let gates = match core {
            Core::Lstm => 4 * hidden,
            Core::FeedForward => hidden,
        };
        let encoder = Linear::new(sizes.observation, hidden, SQRT_2, &mut rng);
        let input = Linear::new(hidden, gates, 1.0, &mut rng);
        let recurrent = Linear::new(hidden, gates, 1.0, &mut rng);
        if core == Core::Lstm {
            // What is remembered stays remembered until the policy learns otherwise.
            let _no_grad = NoGrad::new();
            let _ = input.bias.narrow(0, hidden as i64, hidden as i64).fill_(1.0);
        }
        let heads = Head::ALL.map(|head| {
            let size = head.size(sizes.slots, sizes.blueprints);
            sizes
                .heads
                .contains(&head)
                .then(|| Linear::new(hidden, size, 0.01, &mut rng))
        });
        Self {
            value: Linear::new(hidden, 1, 0.1, &mut rng),
            heads: heads.into(),
            sizes,
            core,
            encoder,
            input,
            recurrent,
            floor: 0.0,
            floor_scale: 1.0,
        }
    }

    /// `[layers, width]` of each state tensor.
    pub fn state_shape(&self) -> Vec<[i64; 2]> {
        match self.core {
            Core::Lstm => vec![[1, self.sizes.hidden as i64]; 2],
            Core::FeedForward => Vec::new(),
        }
    }

    pub fn zero_state(&self, rows: usize) -> RecurrentState {
        let zeros = |[layers, width]: [i64; 2]| Tensor::zeros([layers, rows as i64, width], (Kind::Float, Device::Cpu));
        RecurrentState(self.state_shape().into_iter().map(zeros).collect())
    }

    /// One step of the core: features `[n, H]` and the state after it.
    fn step(&self, observations: &Tensor, state: &RecurrentState) -> (Tensor, RecurrentState) {
        let encoded = layer_norm(&self.encoder.forward(observations)).relu();
        match self.core {
            Core::FeedForward => (
                self.input.forward(&encoded).relu() + encoded,
                RecurrentState(Vec::new()),
            ),
            Core::Lstm => {
                let (hidden, cell) = encoded.lstm_cell(
                    &[&state.0[0].select(0, 0), &state.0[1].select(0, 0)],
                    &self.input.weight,
                    &self.recurrent.weight,
                    Some(&self.input.bias),
                    Some(&self.recurrent.bias),
                );
                let next = RecurrentState(vec![hidden.unsqueeze(0), cell.unsqueeze(0)]);
                (layer_norm(&hidden) + encoded, next)
            }
        }
    }

    /// Samples an action for each row; returns it with the state after the step.
    pub fn act(
        &self,
        observations: &Tensor,
        masks: &Tensor,
        state: &RecurrentState,
        rng: &mut impl Draw,
    ) -> (Chosen, RecurrentState) {
        let _no_grad = NoGrad::new();
        let rows = observations.size()[0] as usize;
        let (features, next) = self.step(observations, state);
        let mut indices = vec![Head::ALL.map(|head| head.placeholder() as u8); rows];
        for &head in self.sizes.heads {
            let actions = actions_tensor(&indices);
            let (log_probs, mask) = self.distribution(head, &features, &actions, masks);
            let probabilities = read_f32(&log_probs.exp(), &HostSyncCounter::default()).expect("CPU");
            let allowed = read_f32(&mask, &HostSyncCounter::default()).expect("CPU");
            let size = probabilities.len() / rows;
            for (row, indices) in indices.iter_mut().enumerate() {
                let op = usize::from(indices[Head::Op as usize]);
                let draw = rng.uniform_f64();
                if RELEVANCE[op][head as usize] {
                    let range = row * size..(row + 1) * size;
                    indices[head as usize] = sample(&probabilities[range.clone()], &allowed[range], draw);
                }
            }
        }
        let scores = self.score(&features, &actions_tensor(&indices), masks);
        let log_probs: Vec<Tensor> = scores.into_iter().map(|score| score.log_prob).collect();
        let log_probs = read_f32(&Tensor::stack(&log_probs, -1), &HostSyncCounter::default()).expect("CPU");
        let values = self.value.forward(&features);
        let chosen = Chosen {
            indices,
            log_probs: log_probs.as_chunks::<HEADS>().0.to_vec(),
            value_normalised: read_f32(&values, &HostSyncCounter::default()).expect("CPU"),
        };
        (chosen, next)
    }

    /// Raw values of the states that `observations` lead to.
    pub fn values(&self, observations: &Tensor, state: &RecurrentState, units: ValueUnits) -> Vec<f32> {
        let _no_grad = NoGrad::new();
        let (features, _) = self.step(observations, state);
        let values = read_f32(&self.value.forward(&features), &HostSyncCounter::default()).expect("CPU");
        values.into_iter().map(|value| units.raw(value.into()) as f32).collect()
    }

    /// Log-probabilities of a head's members under its effective mask, and that mask.
    fn distribution(&self, head: Head, features: &Tensor, actions: &Tensor, masks: &Tensor) -> (Tensor, Tensor) {
        let mask = self.effective_mask(head, actions, masks);
        let logits = self.heads[head as usize]
            .as_ref()
            .expect("a head with choices")
            .forward(features);
        (self.log_softmax(&logits, &mask), mask)
    }

    /// Over valid members; a large negative number, not -∞, keeps rows without any defined.
    fn log_softmax(&self, logits: &Tensor, mask: &Tensor) -> Tensor {
        let log_probs = logits
            .masked_fill(&mask.logical_not(), -1e9)
            .log_softmax(-1, Kind::Float);
        let floor = self.floor * self.floor_scale;
        if floor == 0.0 {
            return log_probs;
        }
        let members = mask.sum_dim_intlist([-1i64].as_slice(), true, Kind::Float);
        let kept: Tensor = 1.0 - members * floor;
        let mixed = log_probs.exp() * kept + floor;
        mixed.masked_fill(&mask.logical_not(), 0.0).clamp_min(1e-30).log()
    }

    fn slot_masks(&self, masks: &Tensor) -> Tensor {
        let slots = self.sizes.slots as i64;
        masks.narrow(-1, 0, OPS as i64 * slots).reshape([-1, OPS as i64, slots])
    }

    /// `[n, members]`, with the op and slot of `actions` chosen.
    fn effective_mask(&self, head: Head, actions: &Tensor, masks: &Tensor) -> Tensor {
        let (slots, blueprints) = (self.sizes.slots as i64, self.sizes.blueprints as i64);
        let by_op = self.slot_masks(masks);
        let pick = |table: &Tensor, chosen: Head| {
            let index = actions.select(1, chosen as i64).reshape([-1, 1, 1]);
            let size = table.size();
            table
                .gather(1, &index.expand([size[0], 1, size[2]], false), false)
                .squeeze_dim(1)
        };
        match head {
            Head::Op => by_op.any_dim(-1, false),
            Head::Slot => pick(&by_op, Head::Op),
            Head::Blueprint => {
                let by_slot = masks.narrow(-1, OPS as i64 * slots, slots * blueprints);
                pick(&by_slot.reshape([-1, slots, blueprints]), Head::Slot)
            }
            _ => {
                let before = Head::PARAMETERS.iter().take_while(|&&other| other != head);
                let offset: usize = before.map(|other| other.size(0, 0)).sum();
                let start = OPS as i64 * slots + slots * blueprints + offset as i64;
                masks.narrow(-1, start, head.size(0, 0) as i64)
            }
        }
    }

    /// Every head's score of the chosen members, exactly 0 where the head is irrelevant.
    fn score(&self, features: &Tensor, actions: &Tensor, masks: &Tensor) -> Vec<HeadScore> {
        let relevance: Vec<bool> = RELEVANCE.iter().flatten().copied().collect();
        let relevance = Tensor::from_slice(&relevance).reshape([OPS as i64, HEADS as i64]);
        let relevant = relevance.index_select(0, &actions.select(1, Head::Op as i64));
        let nothing = || Tensor::zeros([features.size()[0]], (Kind::Float, Device::Cpu));
        let score = |head: Head| {
            if !self.sizes.heads.contains(&head) {
                return HeadScore {
                    log_prob: nothing(),
                    entropy: nothing(),
                };
            }
            let (log_probs, mask) = self.distribution(head, features, actions, masks);
            let chosen = log_probs.gather(1, &actions.select(1, head as i64).unsqueeze(-1), false);
            let irrelevant = relevant.select(1, head as i64).logical_not();
            HeadScore {
                log_prob: chosen.squeeze_dim(1).masked_fill(&irrelevant, 0.0),
                entropy: normalised_entropy(&log_probs, &mask).masked_fill(&irrelevant, 0.0),
            }
        };
        Head::ALL.into_iter().map(score).collect()
    }

    /// Mean entropy of a head over the branches that are open: the ops that are valid and use it.
    fn open_entropy(&self, head: Head, features: &Tensor, masks: &Tensor) -> Tensor {
        let by_op = self.slot_masks(masks);
        let allowed = by_op.any_dim(-1, false).to_kind(Kind::Float);
        let rows = features.size()[0];
        let mut total = Tensor::zeros([rows], (Kind::Float, Device::Cpu));
        let mut branches = Tensor::zeros([rows], (Kind::Float, Device::Cpu));
        if !self.sizes.heads.contains(&head) {
            return total;
        }
        for op in LifecycleOp::ALL.iter().filter(|op| RELEVANCE[op.code()][head as usize]) {
            let code = op.code() as i64;
            let lowest_slot = by_op.select(1, code).to_kind(Kind::Int64).argmax(-1, false);
            let mut branch = Tensor::zeros([rows, HEADS as i64], (Kind::Int64, Device::Cpu));
            let _ = branch.select(1, Head::Op as i64).fill_(code);
            branch.select(1, Head::Slot as i64).copy_(&lowest_slot);
            branch = branch.detach();
            let (log_probs, mask) = self.distribution(head, features, &branch, masks);
            let weight = allowed.select(1, code);
            total += normalised_entropy(&log_probs, &mask) * &weight;
            branches += weight;
            if head == Head::Op {
                break;
            }
        }
        total / branches.clamp_min(1.0)
    }
}

impl TrainablePolicy for SmallPolicy {
    fn params(&self) -> Vec<PolicyParam> {
        let mut params = Vec::new();
        let mut add = |name: &str, layer: &Linear, group| {
            for (part, tensor) in [("weight", &layer.weight), ("bias", &layer.bias)] {
                params.push(PolicyParam {
                    name: format!("{name}.{part}"),
                    tensor: tensor.shallow_clone(),
                    group,
                });
            }
        };
        add("encoder", &self.encoder, ParamGroup::Shared);
        add("core.input", &self.input, ParamGroup::Shared);
        if self.core == Core::Lstm {
            add("core.recurrent", &self.recurrent, ParamGroup::Shared);
        }
        for (head, layer) in Head::ALL.iter().zip(&self.heads) {
            if let Some(layer) = layer {
                add(&format!("head.{head}.0"), layer, ParamGroup::ActorHeads);
            }
        }
        add("value.0", &self.value, ParamGroup::Critic);
        params
    }

    fn value_output(&self) -> prelude::Linear {
        prelude::Linear {
            weight: self.value.weight.shallow_clone(),
            bias: Some(self.value.bias.shallow_clone()),
        }
    }

    fn evaluate(&self, input: &SequenceInput) -> Result<Evaluation, PolicyError> {
        let size = input.observations.size();
        let (rows, steps) = (size[0], size[1]);
        let mut state = RecurrentState(input.initial.0.iter().map(Tensor::shallow_clone).collect());
        let mut features = Vec::new();
        for step in 0..steps {
            let (output, next) = self.step(&input.observations.select(1, step), &state);
            features.push(output);
            // Padding does not move the state.
            let valid = input.valid.select(1, step).reshape([1, -1, 1]);
            let kept = next
                .0
                .iter()
                .zip(&state.0)
                .map(|(new, old)| new.where_self(&valid, old));
            state = RecurrentState(kept.collect());
        }
        let features = Tensor::stack(&features, 1).reshape([rows * steps, self.sizes.hidden as i64]);
        let actions = input.actions.reshape([rows * steps, HEADS as i64]);
        let masks = input.masks.reshape([rows * steps, -1]);
        let scores = self.score(&features, &actions, &masks);
        let (log_probs, entropies): (Vec<Tensor>, Vec<Tensor>) =
            scores.into_iter().map(|score| (score.log_prob, score.entropy)).unzip();
        let open: Vec<Tensor> = Head::ALL
            .iter()
            .map(|&head| self.open_entropy(head, &features, &masks))
            .collect();
        let by_head = |columns: &[Tensor]| Tensor::stack(columns, -1).reshape([rows, steps, HEADS as i64]);
        Ok(Evaluation {
            log_probs: by_head(&log_probs),
            value: self.value.forward(&features).reshape([rows, steps]),
            entropy_causal: by_head(&entropies),
            entropy_available: by_head(&open),
            final_state: RecurrentState(state.0.iter().map(Tensor::detach).collect()),
        })
    }

    fn set_floor_scale(&mut self, scale: f64) {
        self.floor_scale = scale;
    }
}

/// `H / ln n` over `n` valid members; 0 where there is no choice.
fn normalised_entropy(log_probs: &Tensor, mask: &Tensor) -> Tensor {
    let terms = (log_probs.exp() * log_probs).masked_fill(&mask.logical_not(), 0.0);
    let members = mask.sum_dim_intlist([-1i64].as_slice(), false, Kind::Float);
    let entropy = -terms.sum_dim_intlist([-1i64].as_slice(), false, Kind::Float);
    (entropy / members.clamp_min(2.0).log()).masked_fill(&members.lt(2.0), 0.0)
}

fn actions_tensor(indices: &[HeadIndices]) -> Tensor {
    let flat: Vec<i64> = indices.iter().flatten().map(|&index| index.into()).collect();
    Tensor::from_slice(&flat).reshape([indices.len() as i64, HEADS as i64])
}

/// The member at which the running sum passes `draw`; never one that is not allowed.
fn sample(probabilities: &[f32], allowed: &[f32], draw: f64) -> u8 {
    let total: f64 = probabilities.iter().map(|&p| f64::from(p)).sum();
    let (mut sum, mut chosen) = (0.0, 0);
    for (index, &probability) in probabilities.iter().enumerate() {
        if allowed[index] == 0.0 {
            continue;
        }
        chosen = index as u8;
        sum += f64::from(probability) / total;
        if draw < sum {
            break;
        }
    }
    chosen
}
