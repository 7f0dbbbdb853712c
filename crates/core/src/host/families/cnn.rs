//! The convolutional host: blocks of convolution, norm and ReLU, max pools between them, a linear head.

use super::{MOST_BLOCKS, begin, doubled, pool_problem};
use crate::host::{Conv, HostDesign, HostPlan};
use crate::scenario::{CnnSpec, HostChoice, HostProblem};

impl HostDesign for CnnSpec {
    /// `block0, pool, block1, pool, …, head`. Slots of row 0 are after the blocks, those of row 1 after the pools.
    fn plan(&self, classes: i64) -> HostPlan {
        /// Widest kernel.
        const WIDEST_KERNEL: i64 = 31;
        let mut plan = begin(self.in_channels, self.input_hw);
        let kernel = self.kernel_size.clamp(1, WIDEST_KERNEL);
        for (block, column) in (0..self.n_blocks.min(MOST_BLOCKS)).zip(0_u16..) {
            let conv = Conv::new(doubled(self.base_channels, block), kernel).norm(self.norm);
            plan = plan.layer(format!("block{block}"), conv).slot(0, column);
            if block < self.pool_layers {
                plan = plan.pool().slot(1, column);
            }
        }
        plan.head(classes)
    }

    fn problems(&self) -> Vec<HostProblem> {
        let mut problems = Vec::new();
        let mut add = |field: &'static str, message: String| {
            problems.push(HostProblem {
                fields: vec![field],
                message,
            });
        };
        if self.kernel_size % 2 == 0 {
            add(
                "kernel_size",
                format!("{} is even; valid: odd kernels", self.kernel_size),
            );
        }
        if self.pool_layers > self.n_blocks {
            let message = format!("{} pools for {} blocks", self.pool_layers, self.n_blocks);
            add("pool_layers", message);
        }
        problems.extend(pool_problem(self.input_hw, self.pool_layers, "pool_layers"));
        problems
    }

    fn family(&self) -> Option<HostChoice> {
        Some(HostChoice::Cnn(self.clone()))
    }
}

#[cfg(test)]
mod tests;
