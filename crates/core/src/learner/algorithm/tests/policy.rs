//! A small policy: what a learner needs of one, in a few lines per part.
//!
//! An encoder, a core with or without memory, one linear head per action head that has anything to choose, a value head.

use std::cell::Cell;
use std::f64::consts::SQRT_2;

use tch::{Kind, Tensor};

use super::tasks::{BLUEPRINTS, Task};
use crate::actions::{HEADS, Head, HeadIndices, MaskSet, PolicyError};
use crate::learner::algorithm::ValueUnits;
use crate::nn::Linear;
use crate::policy::fixtures::{normal, values};
use crate::policy::{
    DecideMode, Evaluation, Floor, LogitLayout, OpTables, ParamGroup, PolicyParam, RecurrentState, SequenceInput,
    Stored, TrainablePolicy, choose, head_terms,
};
use crate::random::{Domain, Draw, RunRng};
use crate::scenario::HeadConditioning;
use crate::torch::fixtures::{on_device, test_device};
use crate::torch::{HostSyncCounter, NoGrad, read_f32};

/// Width of every layer.
const HIDDEN: i64 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// Remembers.
    Lstm,
    /// Sees only the current step.
    FeedForward,
}

pub struct SmallPolicy {
    core: Core,
    slots: usize,
    layout: LogitLayout,
    encoder: Linear,
    input: Linear,
    recurrent: Linear,
    /// Heads that ever have a choice, those that others depend on first; the rest hold their placeholders.
    choices: &'static [Head],
    /// By head, in storage order.
    heads: [Option<Linear>; HEADS],
    value: Linear,
    /// Minimum probability of each valid member, before the learner's scale.
    pub floor: f64,
    pub floor_scale: f64,
    /// The precision that it claims to compute in.
    pub precision: Option<Kind>,
    /// A fault: sees every evaluation of an update, with its number.
    pub spoil: fn(usize, &mut Evaluation),
    pub evaluations: Cell<usize>,
}

/// Choices for a row: indices, their log-probabilities, the normalised value.
pub type Chosen = (HeadIndices, [f32; HEADS], f32);

impl SmallPolicy {
    pub fn new<T: Task>(core: Core, seed: u64) -> Self {
        let mut rng = RunRng::new(seed, Domain::PolicyInit, &[0]);
        let mut layer = |inputs, outputs, gain| linear([inputs, outputs], gain, &mut rng);
        let gates = match core {
            Core::Lstm => 4 * HIDDEN,
            Core::FeedForward => HIDDEN,
        };
        let encoder = layer(T::OBSERVATION as i64, HIDDEN, SQRT_2);
        let input = layer(HIDDEN, gates, 1.0);
        let recurrent = layer(HIDDEN, gates, 1.0);
        if let (Core::Lstm, Some(bias)) = (core, &input.bias) {
            // The memory is kept until the policy learns otherwise.
            let _no_grad = NoGrad::new();
            let _ = bias.narrow(0, HIDDEN, HIDDEN).fill_(1.0);
        }
        let heads = Head::ALL.map(|head| {
            let size = head.size(T::SLOTS, BLUEPRINTS) as i64;
            T::HEADS.contains(&head).then(|| layer(HIDDEN, size, 0.01))
        });
        Self {
            value: layer(HIDDEN, 1, 0.1),
            heads,
            core,
            slots: T::SLOTS,
            layout: LogitLayout::new(HeadConditioning::Shared, T::SLOTS, BLUEPRINTS),
            choices: T::HEADS,
            encoder,
            input,
            recurrent,
            floor: 0.0,
            floor_scale: 1.0,
            precision: None,
            spoil: |_, _| (),
            evaluations: Cell::default(),
        }
    }

    pub fn zero_state(&self, rows: usize) -> RecurrentState {
        let shapes = match self.core {
            Core::Lstm => vec![[1, rows as i64, HIDDEN]; 2],
            Core::FeedForward => Vec::new(),
        };
        RecurrentState::zeros(&shapes, test_device())
    }

    /// One step of the core: features `[n, H]` and the state after it.
    fn step(&self, observations: &Tensor, state: &RecurrentState) -> (Tensor, RecurrentState) {
        let encoded = layer_norm(&forward(&self.encoder, observations)).relu();
        if self.core == Core::FeedForward {
            return (
                forward(&self.input, &encoded).relu() + encoded,
                RecurrentState::default(),
            );
        }
        let (hidden, cell) = encoded.lstm_cell(
            &[&state.0[0].select(0, 0), &state.0[1].select(0, 0)],
            &self.input.weight,
            &self.recurrent.weight,
            self.input.bias.as_ref(),
            self.recurrent.bias.as_ref(),
        );
        let next = RecurrentState(vec![hidden.unsqueeze(0), cell.unsqueeze(0)]);
        (layer_norm(&hidden) + encoded, next)
    }

    /// Laid out as the layout says, 0 where there is never a choice.
    fn logits(&self, features: &Tensor) -> Tensor {
        // The op's columns come first.
        let mut order = Head::ALL;
        order.rotate_right(1);
        let rows = features.size()[0];
        let columns = order.map(|head| match &self.heads[head as usize] {
            Some(layer) => forward(layer, features),
            None => Tensor::zeros([rows, self.layout.head(head).size as i64], (Kind::Float, test_device())),
        });
        Tensor::cat(&columns, -1)
    }

    fn floors(&self) -> [Floor; HEADS] {
        let epsilon = self.floor * self.floor_scale;
        [Floor { epsilon }; HEADS]
    }

    /// Samples an action for each row and returns it with the state after the step.
    pub fn act(
        &self,
        observations: &Tensor,
        masks: &[&MaskSet],
        state: &RecurrentState,
        rng: &mut impl Draw,
    ) -> (Vec<Chosen>, RecurrentState) {
        let _no_grad = NoGrad::new();
        let (features, next) = self.step(observations, state);
        let mut uniforms = vec![[0.5; HEADS]; masks.len()];
        for &head in self.choices {
            for row in &mut uniforms {
                row[head as usize] = rng.uniform_f64();
            }
        }
        let read = |tensor: &Tensor| read_f32(tensor, &HostSyncCounter::default()).expect("read");
        let (logits, values) = (read(&self.logits(&features)), read(&forward(&self.value, &features)));
        let (floors, mode) = (self.floors(), DecideMode::Sample);
        let rows = logits.chunks(self.layout.width()).zip(masks).zip(&uniforms).zip(values);
        let chosen = rows.map(|(((logits, masks), uniforms), value)| {
            let (indices, sample) = choose(logits, &self.layout, masks, &floors, uniforms, mode);
            (indices, sample.log_probs, value)
        });
        (chosen.collect(), next)
    }

    /// Raw values of the states that `observations` lead to.
    pub fn values(&self, observations: &Tensor, state: &RecurrentState, units: ValueUnits) -> Vec<f32> {
        let _no_grad = NoGrad::new();
        let (features, _) = self.step(observations, state);
        let normalised = values(&forward(&self.value, &features)).into_iter();
        normalised.map(|value| units.raw(value) as f32).collect()
    }
}

impl TrainablePolicy for SmallPolicy {
    fn params(&self) -> Vec<PolicyParam> {
        let mut params = Vec::new();
        let mut add = |name: &str, layer: &Linear, group: ParamGroup| {
            let Linear { weight, bias } = layer.share();
            for (part, tensor) in [("weight", Some(weight)), ("bias", bias)] {
                let name = format!("{name}.{part}");
                params.extend(tensor.map(|tensor| PolicyParam { name, tensor, group }));
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

    fn value_output(&self) -> Linear {
        self.value.share()
    }

    fn precision(&self) -> Option<Kind> {
        self.precision
    }

    fn evaluate(&self, input: &SequenceInput) -> Result<Evaluation, PolicyError> {
        let [rows, steps] = [0, 1].map(|dim| input.valid.size()[dim]);
        let mut state = self.zero_state(rows as usize);
        let mut features = Vec::new();
        for step in 0..steps {
            let (output, next) = self.step(&input.observations.select(1, step), &state);
            features.push(output);
            // Padding does not move the state.
            let valid = input.valid.select(1, step).reshape([1, -1, 1]);
            let pairs = next.0.iter().zip(&state.0);
            state = RecurrentState(pairs.map(|(new, old)| new.where_self(&valid, old)).collect());
        }
        let features = Tensor::stack(&features, 1).flatten(0, 1);
        let logits = self.logits(&features).reshape([rows, steps, -1]);
        let tables = OpTables::new(test_device());
        let stored = Stored::new(input.masks, input.actions, self.slots, BLUEPRINTS, &tables);
        let terms = head_terms(&logits, &self.layout, &stored, &tables, &self.floors());
        let mut evaluation = Evaluation {
            log_probs: terms.log_probs,
            value: forward(&self.value, &features).reshape([rows, steps]),
            entropy_causal: terms.entropy_causal,
            entropy_available: terms.entropy_available,
            final_state: state.detach(),
        };
        (self.spoil)(self.evaluations.replace(self.evaluations.get() + 1), &mut evaluation);
        Ok(evaluation)
    }

    fn set_floor_scale(&mut self, scale: f64) {
        self.floor_scale = scale;
    }
}

/// Orthogonal weights times `gain`, biases 0.
fn linear([inputs, outputs]: [i64; 2], gain: f64, rng: &mut RunRng) -> Linear {
    let (columns, _) = Tensor::linalg_qr(&normal(rng, &[inputs.max(outputs), inputs.min(outputs)]), "reduced");
    let weight = if outputs >= inputs { columns } else { columns.tr() };
    Linear {
        weight: on_device((weight * gain).contiguous()).set_requires_grad(true),
        bias: Some(Tensor::zeros([outputs], (Kind::Float, test_device())).set_requires_grad(true)),
    }
}

fn forward(layer: &Linear, input: &Tensor) -> Tensor {
    layer.forward(input).expect("layers fit")
}

/// Without parameters of its own.
fn layer_norm(input: &Tensor) -> Tensor {
    input.layer_norm([HIDDEN], None::<&Tensor>, None::<&Tensor>, 1e-5, false)
}
