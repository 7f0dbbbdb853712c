//! Where a host can grow: injection points and the policy's slot order (spec 01 §1.1, §2.2).

use serde::Serialize;

use crate::seed::SlotId;

/// Where on a block a slot sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Surface {
    PrePool = 1,
    PostPool = 2,
}

/// One place where a host can grow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InjectionSpec {
    pub slot: SlotId,
    pub channels: i64,
    /// Number of host ops already executed when the slot is applied: execution order.
    pub boundary: usize,
    pub surface: Surface,
    /// Row-major index: the policy's action order.
    pub order: u32,
    /// Relative depth in [0, 1], for display only.
    pub position: f32,
}
