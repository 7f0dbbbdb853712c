//! A rollout in a checkpoint inside a round: as far as it goes, none of it learnt from yet.

use tch::Tensor;

use super::buffer::RolloutBuffer;
use crate::health::Failure;
use crate::torch::{TorchError, catch};
use crate::unfinished::{UnfinishedRound, UnfinishedRoundError};

impl RolloutBuffer {
    /// Keeps everything; between two steps.
    ///
    /// # Errors
    /// A device error.
    pub fn save(&self, round: &mut UnfinishedRound) -> Result<(), UnfinishedRoundError> {
        round.put("rollout.rows", &self.rows)?;
        round.put("rollout.contributions", &self.contributions)?;
        round.put("rollout.seeds", &self.seeds)?;
        round.put("rollout.charges", &self.charges)?;
        round.put("rollout.mark", &self.mark)?;
        round.put_tensor("rollout.masks", &Tensor::from_slice(&self.masks))?;
        for (name, tensor) in self.named_cells() {
            round.put_tensor(name, tensor)?;
        }
        round.put("rollout.final_states", &self.final_states.first().map_or(0, Vec::len))?;
        for (kind, noted) in self.final_states.iter().enumerate() {
            for (index, numbers) in noted.iter().enumerate() {
                round.put_tensor(final_state_name(kind, index), numbers)?;
            }
        }
        Ok(())
    }

    /// Takes back what [`save`](Self::save) of a buffer of the same shape has kept.
    ///
    /// # Errors
    /// What was kept is not there, or is another buffer's; a device error.
    pub fn restore(&mut self, round: &UnfinishedRound) -> Result<(), Failure> {
        for (name, tensor) in self.named_cells() {
            round.copy_to(&name, tensor)?;
        }
        let masks = round.tensor("rollout.masks")?.to_tensor()?;
        self.masks = Vec::try_from(masks).map_err(TorchError::from)?;
        self.rows = round.get("rollout.rows")?;
        self.contributions = round.get("rollout.contributions")?;
        self.seeds = round.get("rollout.seeds")?;
        self.charges = round.get("rollout.charges")?;
        self.mark = round.get("rollout.mark")?;
        let noted: usize = round.get("rollout.final_states")?;
        for (kind, states) in self.final_states.iter_mut().enumerate() {
            let kept = (0..noted).map(|index| {
                let numbers = round.tensor(&final_state_name(kind, index))?.to_tensor()?;
                Ok(catch(|| numbers.to_device(self.device))?)
            });
            *states = kept.collect::<Result<_, Failure>>()?;
        }
        Ok(())
    }

    /// The tensors of all steps, each with its name.
    fn named_cells(&self) -> impl Iterator<Item = (String, &Tensor)> {
        let cells = &self.cells;
        let fields = [
            ("rollout.observations", &cells.observations),
            ("rollout.raw_observations", &cells.raw_observations),
            ("rollout.blueprints", &cells.blueprints),
        ];
        let states = cells.states.iter().enumerate();
        fields
            .into_iter()
            .map(|(name, tensor)| (name.to_owned(), tensor))
            .chain(states.map(|(kind, tensor)| (format!("rollout.states.{kind}"), tensor)))
    }
}

fn final_state_name(kind: usize, index: usize) -> String {
    format!("rollout.final_states.{kind}.{index}")
}
