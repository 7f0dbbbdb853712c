//! The columns of a network's logit vector that belong to each head and op.

use std::ops::Range;

use crate::actions::{HEADS, Head, relevant};
use crate::growth::LifecycleOp;
use crate::scenario::HeadConditioning;

/// A head's part of the logit vector: rows outer, members inner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadColumns {
    pub first: usize,
    /// One row per op that the head matters to, in op order; one for all with shared conditioning. One per slot for the
    /// blueprints of [`HeadConditioning::PerSlot`].
    pub rows: usize,
    /// Members of the head.
    pub size: usize,
}

impl HeadColumns {
    pub const fn width(&self) -> usize {
        self.rows * self.size
    }
}

/// The layout of the logit vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogitLayout {
    /// The columns by head, in storage order.
    heads: [HeadColumns; HEADS],
    width: usize,
}

impl LogitLayout {
    /// The layout for a host with `slots` slots and a registry of `blueprints` blueprints.
    pub fn new(conditioning: HeadConditioning, slots: usize, blueprints: usize) -> Self {
        let mut heads = [HeadColumns::default(); HEADS];
        let mut width = 0;
        // The op's columns come first, then those of the other heads in storage order.
        let mut order = Head::ALL;
        order.rotate_right(1);
        for head in order {
            let columns = HeadColumns {
                first: width,
                rows: match (conditioning, head) {
                    (_, Head::Op) | (HeadConditioning::Shared, _) => 1,
                    (HeadConditioning::PerSlot, Head::Blueprint) => slots,
                    (HeadConditioning::PerOp | HeadConditioning::PerSlot, _) => ops_of(head).count(),
                },
                size: head.size(slots, blueprints),
            };
            width += columns.width();
            heads[head as usize] = columns;
        }
        Self { heads, width }
    }

    /// Number of logits, A.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The columns of a head, under all ops.
    pub fn head(&self, head: Head) -> HeadColumns {
        self.heads[head as usize]
    }

    /// The row of a head that an op on `slot` uses; 0 where the head does not matter.
    fn row(&self, head: Head, op: LifecycleOp, slot: usize) -> usize {
        match head {
            _ if self.head(head).rows == 1 || !relevant(op, head) => 0,
            Head::Blueprint => slot,
            _ => ops_of(head).take_while(|&earlier| earlier != op).count(),
        }
    }

    /// The logits of a head under an op on `slot`.
    pub fn columns(&self, head: Head, op: LifecycleOp, slot: usize) -> Range<usize> {
        let HeadColumns { first, size, .. } = self.head(head);
        let start = first + self.row(head, op, slot) * size;
        start..start + size
    }
}

/// The ops that a head matters to, in op order.
pub fn ops_of(head: Head) -> impl Iterator<Item = LifecycleOp> {
    LifecycleOp::ALL.iter().copied().filter(move |&op| relevant(op, head))
}

#[cfg(test)]
mod tests;
