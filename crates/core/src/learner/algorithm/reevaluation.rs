//! Steps that another policy, or an earlier one, has played, as the present one sees them.

use tch::Tensor;

use super::advantages::StepTargets;
use super::buffer::RolloutBuffer;
use super::error::LearnerError;
use super::normalise::ValueUnits;
use super::sequences::{SequenceBatch, sequences};
use super::steps::SegmentEnd;
use crate::actions::{HEADS, Head};
use crate::policy::{RecurrentState, TrainablePolicy};
use crate::scenario::LearnerConfig;
use crate::telemetry::statistics;
use crate::torch::{HostSyncCounter, NoGrad, catch, read_f32};

/// Mean of the ratios' magnitudes, in nats, from which on a segment says nothing about the present policy.
const STALE: f64 = 2.0;

impl RolloutBuffer {
    /// Mean over the steps with a choice of how unlikely the policy finds it, in nats; `None` if there are none.
    pub fn negative_log_likelihood(&self) -> Option<f64> {
        let records = self.valid_steps().map(|(env, step)| &self.rows[env].steps[step]);
        let choices = records.filter(|record| record.is_free()).map(|record| {
            let causal = Head::ALL.iter().filter(|&&head| record.is_causal(head));
            -causal
                .map(|&head| f64::from(record.log_probs[head as usize]))
                .sum::<f64>()
        });
        statistics::mean_and_std(&choices.collect::<Vec<_>>()).map(|(mean, _)| mean)
    }

    /// Leaves out the segments that the present policy is by far less, or more, likely to play than the one that did.
    pub fn leave_out_stale(&mut self) {
        for row in &mut self.rows {
            for segment in &mut row.segments {
                let steps = &row.steps[segment.steps()];
                let total: f64 = steps.iter().map(|record| record.log_ratio().abs()).sum();
                segment.valid &= total <= STALE * steps.len() as f64;
            }
        }
    }

    /// Puts the policy's log-probabilities of the stored choices, and its raw values, in the place of those that were stored.
    /// `behind` gives the value behind each segment, `[segments]`, f32, in the units of `units`, from the state in which it
    /// leaves the policy; truncated segments are credited with it. For buffers whose segments are not cut into chunks.
    ///
    /// # Errors
    /// A stored choice that its mask forbids, a device error.
    pub fn reevaluate(
        &mut self,
        policy: &dyn TrainablePolicy,
        (config, units): (&LearnerConfig, ValueUnits),
        reads: &HostSyncCounter,
        behind: impl FnOnce(&RecurrentState) -> Result<Tensor, LearnerError>,
    ) -> Result<(), LearnerError> {
        let sequences = sequences(self);
        let longest = sequences.iter().map(|sequence| sequence.len).max().unwrap_or(0);
        if longest == 0 {
            return Ok(());
        }
        let rows = self.rows.iter();
        let targets: Vec<_> = rows.map(|row| vec![StepTargets::default(); row.steps.len()]).collect();
        let (outputs, behind) = {
            let _no_grad = NoGrad::new();
            let batch = SequenceBatch::gather(self, &targets, &sequences, longest, true, config)?;
            let evaluation = catch(|| policy.evaluate(&batch.input()))??;
            let outputs = catch(|| Tensor::cat(&[&evaluation.log_probs, &evaluation.value.unsqueeze(-1)], -1))?;
            let behind = behind(&evaluation.final_state)?;
            (read_f32(&outputs, reads)?, read_f32(&behind, reads)?)
        };
        let raw = |value: f32| units.raw(value.into()) as f32;
        for (sequence, outputs) in sequences.iter().zip(outputs.chunks(longest * (HEADS + 1))) {
            let steps = sequence.start..sequence.start + sequence.len;
            let records = self.rows[sequence.env].steps[steps].iter_mut();
            for (record, output) in records.zip(outputs.chunks(HEADS + 1)) {
                record.log_probs.copy_from_slice(&output[..HEADS]);
                record.value = raw(output[HEADS]);
            }
        }
        let segments = self.rows.iter_mut().flat_map(|row| &mut row.segments);
        for (segment, value) in segments.filter(|segment| segment.valid).zip(behind) {
            if let Some(SegmentEnd::Truncated { bootstrap }) = &mut segment.closed {
                *bootstrap = raw(value);
            }
        }
        Ok(())
    }
}
