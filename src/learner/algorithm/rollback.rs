//! Charging a rollback at the moment it happens, so that the state after it is never credited to actions before it; and
//! giving up what an env did that has failed.

use super::buffer::{RolloutBuffer, Row};
use super::error::{BufferError, require_finite};
use super::segments::SegmentEnd;

impl RolloutBuffer {
    /// Charges a rollback of `env` to what it did since its segment began, and closes the segment. A pending step is
    /// discarded: its action never ran. Other envs are not touched. The caller zeroes the env's live recurrent state.
    ///
    /// `penalty` is raw reward, clamped already, and is never scaled. `restored` is the step of the episode whose state
    /// stands again: what was done up to it keeps its reward.
    ///
    /// Returns how many steps before the charged one lost their own rewards; `None` if there is nothing to charge, since
    /// the env had no finished step since its segment began.
    ///
    /// # Errors
    /// An unknown env or a penalty that is not finite.
    pub fn rollback(&mut self, env: usize, penalty: f32, restored: u32) -> Result<Option<usize>, BufferError> {
        let row = self.row_mut(env)?;
        require_finite(penalty.is_finite(), env, row.steps.len(), "penalty")?;
        row.discard_pending();
        let steps = row.open_segment().map(|segment| segment.steps()).unwrap_or_default();
        let mut forfeited = 0;
        if let Some(segment) = row.open_segment() {
            segment.closed = Some(SegmentEnd::Terminal);
        }
        if let Some((last, earlier)) = row.steps[steps.clone()].split_last_mut() {
            last.fix_reward(penalty);
            let kept = earlier.partition_point(|record| record.step <= restored);
            forfeited = earlier.len() - kept;
            earlier[kept..].iter_mut().for_each(|record| record.fix_reward(0.0));
        }
        let charges = &mut self.charges;
        charges.rollback_attempts += 1;
        if steps.is_empty() {
            return Ok(None);
        }
        charges.rollback_attributed += 1;
        charges.rollback_steps_forfeited += forfeited as u64;
        Ok(Some(forfeited))
    }

    /// Leaves the open segment of an env that has failed out of learning, and closes it.
    ///
    /// # Errors
    /// An unknown env.
    pub fn abandon_segment(&mut self, env: usize) -> Result<(), BufferError> {
        let row = self.row_mut(env)?;
        row.discard_pending();
        if let Some(segment) = row.open_segment() {
            segment.closed = Some(SegmentEnd::Terminal);
            segment.valid = false;
        }
        Ok(())
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
