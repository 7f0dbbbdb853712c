//! What a checkpoint keeps. Of a learner, beside its optimizer's moments: counters and statistics, and how they differ from a live
//! one's; no generator state, since every draw is derived from seed and round. Of a rollout, in a checkpoint inside a round: as
//! far as it goes, none of it learnt from yet.

use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::buffer::{RolloutBuffer, Row};
use super::normalise::{RewardNormalizer, ValueNormalizer};
use crate::health::Failure;
use crate::torch::{HostSyncCounter, TorchError, catch, read_f64};
use crate::unfinished::{UnfinishedRound, UnfinishedRoundError};

/// Names of second moments begin with it.
const SQUARES: &str = "exp_avg_sq.";

/// How far learning has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Successful updates: what all schedules run on.
    pub updates: u64,
    /// Failed updates since the last successful one.
    pub consecutive_failures: u32,
}

/// The plain part of a learner's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LearnerState {
    /// Updates so far.
    pub counters: Counters,
    /// Statistics of rewards.
    pub rewards: RewardNormalizer,
    /// Statistics of returns.
    pub values: ValueNormalizer,
}

/// One line for everything in the plain state that is not finite.
pub(super) fn nonfinite_numbers(saved: &LearnerState) -> Vec<String> {
    let finite = |is_finite: bool, what: &str| (!is_finite).then(|| format!("{what} are not finite"));
    [
        finite(saved.rewards.moments.is_finite(), "the statistics of rewards"),
        finite(saved.values.moments.is_finite(), "the statistics of returns"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One line for every tensor with a value that no optimizer can reach: not finite, or a negative second moment.
///
/// # Errors
/// A device error.
pub(super) fn impossible_tensors(saved: &[(String, Tensor)]) -> Result<Vec<String>, TorchError> {
    let mut impossible = Vec::new();
    for (name, tensor) in saved {
        let values = read_f64(tensor, &HostSyncCounter::default())?;
        let is_negative = name.starts_with(SQUARES) && values.iter().any(|&value| value < 0.0);
        if !values.iter().all(|value| value.is_finite()) {
            impossible.push(format!("`{name}` holds values that are not finite"));
        } else if is_negative {
            impossible.push(format!("`{name}` holds squares below 0"));
        }
    }
    Ok(impossible)
}

/// One line for every tensor that is missing, unknown, or of another shape or kind.
pub(super) fn differences_of_tensors(saved: &[(String, Tensor)], live: &[(String, Tensor)]) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, tensor) in live {
        match saved.iter().find(|(saved, _)| saved == name) {
            None => differences.push(format!("`{name}` is missing")),
            Some((_, saved)) if saved.size() != tensor.size() => {
                let (old, new) = (saved.size(), tensor.size());
                differences.push(format!("`{name}` has the shape {old:?}, expected {new:?}"));
            }
            Some((_, saved)) if saved.kind() != tensor.kind() => {
                let (old, new) = (saved.kind(), tensor.kind());
                differences.push(format!("`{name}` is {old:?}, expected {new:?}"));
            }
            Some(_) => {}
        }
    }
    let unknown = saved
        .iter()
        .filter(|(name, _)| live.iter().all(|(live, _)| live != name));
    differences.extend(unknown.map(|(name, _)| format!("`{name}` is no tensor of this learner")));
    differences
}

impl RolloutBuffer {
    /// Keeps everything that was written; between two steps. What else the buffer holds is of rollouts before.
    ///
    /// # Errors
    /// A device error.
    pub fn save(&self, round: &mut UnfinishedRound) -> Result<(), UnfinishedRoundError> {
        round.put("rollout.rows", &self.rows)?;
        let cells = self.written_cells();
        let masks = taken(&self.masks, self.shape.mask_width(), &cells);
        round.put_tensor("rollout.masks", &Tensor::from_slice(&masks))?;
        for (name, tensor, index) in self.named_cells()? {
            round.put_tensor(name, &catch(|| tensor.index_select(0, &index))?)?;
        }
        Ok(())
    }

    /// Takes back what [`save`](Self::save) of a buffer of the same shape has kept.
    ///
    /// # Errors
    /// What was kept is not there, or is another buffer's; a device error.
    pub fn restore(&mut self, round: &UnfinishedRound) -> Result<(), Failure> {
        let rows: Vec<Row> = round.get("rollout.rows")?;
        let fits = |row: &Row| row.steps.len() <= self.shape.steps && row.states <= self.shape.states_per_row();
        if rows.len() != self.shape.envs || !rows.iter().all(fits) {
            return Err(unreadable("rollout.rows", "they are those of another rollout").into());
        }
        self.rows = rows;
        let cells = self.written_cells();
        let masks = round.tensor("rollout.masks")?.to_tensor()?;
        let masks: Vec<bool> = Vec::try_from(masks).map_err(TorchError::from)?;
        put_back("rollout.masks", masks, &mut self.masks, self.shape.mask_width(), &cells)?;
        for (name, tensor, index) in self.named_cells()? {
            let part = catch(|| tensor.index_select(0, &index))?;
            round.copy_to(&name, &part)?;
            let _ = catch(|| tensor.shallow_clone().index_copy_(0, &index, &part))?;
        }
        Ok(())
    }

    /// Cells of all steps, by env, then by step.
    fn written_cells(&self) -> Vec<usize> {
        let rows = self.rows.iter().enumerate();
        rows.flat_map(|(env, row)| (0..row.steps.len()).map(move |step| self.cell(env, step)))
            .collect()
    }

    /// The tensors of all steps and states, each with its name and the cells that were written.
    fn named_cells(&self) -> Result<Vec<(String, Tensor, Tensor)>, TorchError> {
        let numbers = |cells: Vec<usize>| -> Result<Tensor, TorchError> {
            let cells: Vec<i64> = cells.into_iter().map(|cell| cell as i64).collect();
            catch(|| Tensor::from_slice(&cells).to_device(self.device))
        };
        let rows = self.rows.iter().enumerate();
        let states = rows.flat_map(|(env, row)| {
            let first = env * self.shape.states_per_row();
            first..first + row.states
        });
        let (steps, states) = (numbers(self.written_cells())?, numbers(states.collect())?);
        let cells = &self.cells;
        let fields = [
            ("rollout.observations", &cells.observations),
            ("rollout.raw_observations", &cells.raw_observations),
            ("rollout.blueprints", &cells.blueprints),
        ];
        let of_steps = fields.map(|(name, tensor)| (name.to_owned(), tensor.shallow_clone(), steps.shallow_clone()));
        let of_states = cells.states.iter().enumerate().map(|(kind, tensor)| {
            let name = format!("rollout.states.{kind}");
            (name, tensor.shallow_clone(), states.shallow_clone())
        });
        Ok(of_steps.into_iter().chain(of_states).collect())
    }
}

/// What a list with `width` elements a cell holds of these cells.
fn taken<T: Clone>(all: &[T], width: usize, cells: &[usize]) -> Vec<T> {
    let of_cell = |&cell: &usize| all[cell * width..(cell + 1) * width].iter().cloned();
    cells.iter().flat_map(of_cell).collect()
}

/// The reverse of [`taken`].
fn put_back<T: Clone>(
    name: &str,
    kept: Vec<T>,
    all: &mut [T],
    width: usize,
    cells: &[usize],
) -> Result<(), UnfinishedRoundError> {
    if kept.len() != width * cells.len() {
        let why = format!(
            "it has {} elements; {} steps have {width} each",
            kept.len(),
            cells.len()
        );
        return Err(unreadable(name, why));
    }
    for (of_cell, &cell) in kept.chunks_exact(width.max(1)).zip(cells) {
        all[cell * width..(cell + 1) * width].clone_from_slice(of_cell);
    }
    Ok(())
}

fn unreadable(name: &str, why: impl Into<String>) -> UnfinishedRoundError {
    UnfinishedRoundError::Unreadable {
        name: name.into(),
        why: why.into(),
    }
}
