//! The samples of a test part that a kept network gets right, for paired comparisons of networks.

use tch::{Kind, TchError, Tensor};

use crate::data::{DataError, TaskData};
use crate::network::{GrownNetwork, NetworkError};
use crate::torch::{HostSyncCounter, read_f32};

/// Samples and answers of a test part, as files hold them.
pub struct TestPart {
    samples: Tensor,
    answers: Tensor,
}

impl TestPart {
    /// The test part of `data`, or `None` if there is none.
    ///
    /// # Errors
    /// Samples that cannot be read, or are too many for the memory.
    pub fn of(data: &TaskData) -> Result<Option<Self>, DataError> {
        let (samples, answers) = match data {
            TaskData::Images(set) => {
                if set.test.is_empty() {
                    return Ok(None);
                }
                let [height, width, channels] = set.shape.dimensions();
                let pixels = Tensor::f_from_slice(&set.test.pixels()?)
                    .and_then(|pixels| pixels.f_view([set.test.len() as i64, height, width, channels]));
                (pixels, Tensor::f_from_slice(&set.test.labels))
            }
            TaskData::Tokens(set) => {
                if set.test.is_empty() {
                    return Ok(None);
                }
                let (mut inputs, mut targets) = (Vec::new(), Vec::new());
                for window in set.test.clone() {
                    let (input, target) = set.window(window)?;
                    inputs.extend(input.into_iter().map(i64::from));
                    targets.extend(target.into_iter().map(i64::from));
                }
                let shape = [set.test.len() as i64, set.block as i64];
                let rows = |values: &[i64]| Tensor::f_from_slice(values).and_then(|values| values.f_view(shape));
                (rows(&inputs), rows(&targets))
            }
        };
        let device = |cause: TchError| DataError::device(data.name(), cause);
        Ok(Some(Self {
            samples: samples.map_err(device)?,
            answers: answers.map_err(device)?,
        }))
    }

    /// The verdict on each sample: true if the network is right.
    ///
    /// # Errors
    /// A network that cannot be built, or reads other samples.
    pub fn right(&self, network: &GrownNetwork) -> Result<Vec<bool>, NetworkError> {
        let guesses = network.predict(&self.samples)?.f_argmax(-1, false)?;
        let hits = guesses.f_eq_tensor(&self.answers)?.f_to_kind(Kind::Float)?;
        let hits = read_f32(&hits.f_flatten(0, -1)?, &HostSyncCounter::default())?;
        Ok(hits.into_iter().map(|hit| hit > 0.5).collect())
    }

    /// Sets the running statistics of the network to those of these samples.
    ///
    /// # Errors
    /// Those of [`Self::right`].
    pub fn measure(&self, network: &mut GrownNetwork) -> Result<(), NetworkError> {
        network.measure_statistics(&self.samples)
    }

    /// Percent of batches of `size` samples that the network recognises, of `domain`. `None` if it can't tell.
    ///
    /// # Errors
    /// A network that reads other samples.
    pub fn recognised(
        &self,
        network: &GrownNetwork,
        domain: Option<&str>,
        size: i64,
    ) -> Result<Option<f64>, NetworkError> {
        let (mut right, mut all) = (0, 0);
        for batch in self.samples.f_split(size, 0)? {
            let Some(found) = network.domain_of(&batch)? else {
                return Ok(None);
            };
            right += usize::from(found == domain);
            all += 1;
        }
        Ok(Some(100.0 * right as f64 / all as f64))
    }
}
