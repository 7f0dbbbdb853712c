//! Charging a rollback at the moment it happens, so that the state after it is never credited to actions before it
//! (spec 04 §4).

use super::buffer::{RolloutBuffer, Row};
use super::error::BufferError;
use super::segments::{Attribution, SegmentEnd};
use crate::scenario::RollbackCredit;

impl RolloutBuffer {
    /// Charges a rollback of `env` to what it did since its segment began, and closes the segment (spec 04 §4). A
    /// pending step is discarded: its action never ran. Other envs are not touched. The caller zeroes the env's live
    /// recurrent state.
    ///
    /// `penalty` is raw reward, clamped already, and is never scaled.
    ///
    /// # Errors
    /// An unknown env or a penalty that is not finite.
    pub fn rollback(&mut self, env: usize, penalty: f32, credit: RollbackCredit) -> Result<Attribution, BufferError> {
        let row = self.row_mut(env)?;
        if !penalty.is_finite() {
            let step = row.steps.len();
            let field = "penalty";
            return Err(BufferError::NonFinite { env, step, field });
        }
        row.discard_pending();
        row.continues = false;
        let steps = row.open_segment().map(|segment| segment.steps()).unwrap_or_default();
        if steps.is_empty() {
            self.counters.attempts += 1;
            self.counters.unattributed += 1;
            return Ok(Attribution::Unattributed);
        }
        let last = steps.end - 1;
        let mut steps_forfeited = 0;
        match credit {
            RollbackCredit::PenalizeForfeit => {
                for record in &mut row.steps[steps.start..last] {
                    record.reward_raw = 0.0;
                    record.fixed_reward = true;
                }
                steps_forfeited = last - steps.start;
                row.steps[last].reward_raw = penalty;
                row.steps[last].fixed_reward = true;
            }
            RollbackCredit::PenalizeKeep => {
                row.steps[last].reward_raw = penalty;
                row.steps[last].fixed_reward = true;
            }
            RollbackCredit::Invalidate => {}
        }
        let invalidates = credit == RollbackCredit::Invalidate;
        if let Some(segment) = row.open_segment() {
            segment.closed = Some(SegmentEnd::Terminal);
            segment.valid = !invalidates;
        }
        let action_id = row.steps[last].action_id;
        self.counters.attempts += 1;
        self.counters.attributed += 1;
        self.counters.steps_forfeited += steps_forfeited as u64;
        self.counters.steps_invalidated += if invalidates { steps.len() as u64 } else { 0 };
        Ok(Attribution::Attributed {
            steps_forfeited,
            action_id,
        })
    }
}

impl Row {
    /// Takes back a step whose action never ran; the segment it opened goes with it.
    fn discard_pending(&mut self) {
        if !std::mem::take(&mut self.is_pending) {
            return;
        }
        self.steps.pop();
        let len = self.steps.len();
        if let Some(open) = self.open_segment() {
            open.end = len;
            if open.is_empty() {
                self.segments.pop();
            }
        }
    }
}
