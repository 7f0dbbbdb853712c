//! A segment, an unbroken stretch of one env's episode, and segments as the tensors of a shard.

use std::collections::HashMap;
use std::ops::Range;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};

use crate::actions::{HEADS, Head, HeadIndices};
use crate::growth::LifecycleOp;
use crate::reward::PARTS;

/// Exactly one action was possible.
pub const FORCED: u8 = 1;
/// The reward is what a rollback charged.
pub const CHARGED: u8 = 2;

/// The end of a segment, by what comes after its last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(i64)]
pub enum SegmentFinish {
    /// Still open: never written.
    #[default]
    Open = 0,
    /// The env was rolled back: nothing follows.
    RolledBack = 1,
    /// The episode is over; the observation after it is known.
    Ended = 2,
    /// The env failed: its earlier record is whole, its end is not known.
    Failed = 3,
}

/// Widths of a step's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Elements of an observation.
    pub observation: usize,
    /// Slots of a host.
    pub slots: usize,
    /// Blueprints that a slot can be given.
    pub blueprints: usize,
    /// Elements of the masks of all heads.
    pub masks: usize,
}

/// A number of a shard.
trait Element: Copy {
    const KIND: Dtype;
    fn put(self, bytes: &mut Vec<u8>);
    fn of(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! elements {
    ($($number:ty => $kind:ident),+) => {$(
        impl Element for $number {
            const KIND: Dtype = Dtype::$kind;
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
            fn of(bytes: &[u8]) -> Vec<Self> {
                bytes.as_chunks().0.iter().map(|&chunk| Self::from_le_bytes(chunk)).collect()
            }
        }
    )+};
}

elements!(u8 => U8, i32 => I32, i64 => I64, f32 => F32, f64 => F64);

/// Declares what a segment holds: for each name its type, whether it has one row per step or per segment, and the row's width.
macro_rules! columns {
    ($($(#[$doc:meta])+ $name:ident: $number:ty, $rows:ident, $width:expr;)+) => {
        /// An unbroken stretch of one env's episode, row after row in flat lists.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct Segment {
            $($(#[$doc])+ pub $name: Vec<$number>,)+
        }

        impl Segment {
            /// The segments as one file of tensors.
            pub(crate) fn encode(segments: &[Self], sizes: Sizes) -> Result<Vec<u8>, safetensors::SafeTensorError> {
                let lengths = segments.iter().map(Self::len);
                let mut offset = 0;
                let ends = lengths.map(|length| { offset += length; offset });
                let offsets: Vec<usize> = std::iter::once(0).chain(ends).collect();
                let mut tensors: Vec<(&str, Dtype, Vec<usize>, Vec<u8>)> =
                    vec![(OFFSETS, Dtype::I64, vec![offsets.len()], bytes_of(offsets.iter().map(|&offset| offset as i64)))];
                $({
                    let rows = Rows::$rows.count(&offsets);
                    let bytes = bytes_of(segments.iter().flat_map(|segment| segment.$name.iter().copied()));
                    tensors.push((stringify!($name), <$number>::KIND, shape(rows, ($width)(sizes)), bytes));
                })+
                let views = tensors.iter().map(|(name, kind, shape, bytes)| Ok((*name, TensorView::new(*kind, shape.clone(), bytes)?)));
                let views: Vec<_> = views.collect::<Result<_, safetensors::SafeTensorError>>()?;
                serialize(views, None::<HashMap<String, String>>)
            }

            /// The segments of a file of tensors; else the tensor that is not as it should be, and the reason.
            pub(crate) fn decode(file: &SafeTensors, sizes: Sizes) -> Result<Vec<Self>, (&'static str, String)> {
                let offsets: Vec<usize> = column::<i64>(file, OFFSETS, None)?.into_iter().map(|offset| offset as usize).collect();
                let is_rising = offsets.first() == Some(&0) && offsets.windows(2).all(|pair| pair[0] < pair[1]);
                if !is_rising {
                    return Err((OFFSETS, "does not rise from 0".into()));
                }
                let mut segments = vec![Self::default(); offsets.len() - 1];
                $({
                    let (width, name) = (($width)(sizes), stringify!($name));
                    let rows = Rows::$rows.count(&offsets);
                    let values = column::<$number>(file, name, Some(shape(rows, width)))?;
                    for (index, segment) in segments.iter_mut().enumerate() {
                        let range = Rows::$rows.range(&offsets, index);
                        segment.$name = values[range.start * width..range.end * width].to_vec();
                    }
                })+
                segments.iter().try_for_each(|segment| segment.check_choices(sizes))?;
                Ok(segments)
            }
        }
    };
}

columns! {
    /// Round, from 0.
    round: i64, Segment, |_| 1;
    /// Index in the run.
    env: i64, Segment, |_| 1;
    /// Updates seen by the policy that acted.
    policy_version: i64, Segment, |_| 1;
    /// State after the last step: 1 nothing, as the env was rolled back; 2 the episode was over; 3 not known, as the env failed.
    finish: i64, Segment, |_| 1;
    /// Observation after the last step; NaN where nothing follows, or it is not known.
    final_observation: f32, Segment, |sizes: Sizes| sizes.observation;
    /// Blueprints after the last step.
    final_blueprints: i32, Segment, |sizes: Sizes| sizes.slots;
    /// Step of the episode, from 1.
    step: i32, Step, |_| 1;
    /// Observation as measured, before any normaliser.
    observation: f32, Step, |sizes: Sizes| sizes.observation;
    /// Blueprints of each slot, by index; -1 where it is empty.
    blueprints: i32, Step, |sizes: Sizes| sizes.slots;
    /// Chosen members, by head.
    actions: i32, Step, |_| HEADS;
    /// Executed operation.
    effective_op: i32, Step, |_| 1;
    /// Log-probabilities of the behaviour, by head; NaN where unknown, 0 where the head did not matter.
    log_probs: f32, Step, |_| HEADS;
    /// Members that could have been chosen: op by slot, blueprint by slot, then the other heads.
    masks: u8, Step, |sizes: Sizes| sizes.masks;
    /// 1 only one action was possible; 2 the reward is what a rollback charged.
    flags: u8, Step, |_| 1;
    /// Reward as paid.
    reward: f64, Step, |_| 1;
    /// Parts of the reward: [`PARTS`].
    parts: f64, Step, |_| PARTS.len();
}

/// First steps of the segments, and the number of all steps.
const OFFSETS: &str = "offsets";

impl Segment {
    /// Steps.
    pub fn len(&self) -> usize {
        self.step.len()
    }

    /// Returns whether it has none.
    pub fn is_empty(&self) -> bool {
        self.step.is_empty()
    }

    /// The choice in a step of the segment, and the executed operation.
    pub fn choice(&self, step: usize) -> (HeadIndices, LifecycleOp) {
        let chosen = std::array::from_fn(|head| self.actions[step * HEADS + head] as u8);
        let executed = LifecycleOp::from_code(self.effective_op[step] as usize);
        (chosen, executed.unwrap_or(LifecycleOp::Wait))
    }

    /// Refuses what no head, or no operation, has: the file is damaged.
    fn check_choices(&self, sizes: Sizes) -> Result<(), (&'static str, String)> {
        for (row, step) in self.step.iter().enumerate() {
            let chosen = Head::ALL.iter().zip(&self.actions[row * HEADS..]);
            let chosen = chosen.map(|(&head, &code)| ("actions", head, code));
            for (tensor, head, code) in chosen.chain([("effective_op", Head::Op, self.effective_op[row])]) {
                // A head without members has its placeholder, 0.
                let last = head.size(sizes.slots, sizes.blueprints).max(1) - 1;
                if !(0..=last as i32).contains(&code) {
                    let place = format!("step {step} of env {}", self.env[0]);
                    return Err((tensor, format!("has {code} for {head} in {place}, valid: 0 to {last}")));
                }
            }
        }
        Ok(())
    }
}

fn shape(rows: usize, width: usize) -> Vec<usize> {
    if width == 1 { vec![rows] } else { vec![rows, width] }
}

fn bytes_of<T: Element>(values: impl Iterator<Item = T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.for_each(|value| value.put(&mut bytes));
    bytes
}

fn column<T: Element>(
    file: &SafeTensors,
    name: &'static str,
    wanted: Option<Vec<usize>>,
) -> Result<Vec<T>, (&'static str, String)> {
    let tensor = file.tensor(name).map_err(|_| (name, "is missing".to_owned()))?;
    let (kind, shape) = (tensor.dtype(), tensor.shape());
    let is_fit = kind == T::KIND && wanted.as_deref().map_or(shape.len() == 1, |wanted| wanted == shape);
    if !is_fit {
        let wanted = wanted.map_or_else(|| "one dimension".into(), |wanted| format!("{wanted:?}"));
        return Err((name, format!("is {kind:?} {shape:?}, expected {:?} {wanted}", T::KIND)));
    }
    Ok(T::of(tensor.data()))
}

/// The rows of a column: one per segment or per step.
#[derive(Clone, Copy)]
enum Rows {
    Segment,
    Step,
}

impl Rows {
    fn count(self, offsets: &[usize]) -> usize {
        match self {
            Self::Segment => offsets.len() - 1,
            Self::Step => offsets[offsets.len() - 1],
        }
    }

    /// Rows of the segment with that index.
    fn range(self, offsets: &[usize], index: usize) -> Range<usize> {
        match self {
            Self::Segment => index..index + 1,
            Self::Step => offsets[index]..offsets[index + 1],
        }
    }
}

#[cfg(test)]
mod tests;
