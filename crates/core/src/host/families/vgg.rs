//! VGG hosts for small images: stages of 3×3 convolutions with a max pool after each, and a linear head in place of the
//! three layers for large images (Simonyan & Zisserman 2015, arXiv:1409.1556; norms as Ioffe & Szegedy 2015,
//! arXiv:1502.03167).

use super::{MOST_BLOCKS, MOST_STAGES, begin, doubled, pool_problem, stage_problems};
use crate::host::{Conv, HostDesign, HostPlan};
use crate::scenario::{HostChoice, HostProblem, VggSpec};

/// Channels double with each stage until they are 2^3 times the first stage's.
const DOUBLINGS: usize = 3;

impl HostDesign for VggSpec {
    /// `stage0.conv0, …, pool, stage1.conv0, …, pool, …, head`. A slot `r{stage}c{n}` is after the n-th convolution of
    /// a stage, and one more after its pool.
    fn plan(&self, classes: i64) -> HostPlan {
        let mut plan = begin(self.in_channels, self.input_hw);
        for (stage, (row, &convolutions)) in (0_u16..).zip(&self.blocks).enumerate().take(MOST_STAGES) {
            let outputs = doubled(self.base_channels, stage.min(DOUBLINGS));
            let mut columns = 0_u16..;
            for (index, column) in (0..convolutions.min(MOST_BLOCKS)).zip(&mut columns) {
                let conv = Conv::new(outputs, 3).biased().norm(self.norm);
                plan = plan.layer(format!("stage{stage}.conv{index}"), conv).slot(row, column);
            }
            plan = plan.pool();
            if let Some(column) = columns.next() {
                plan = plan.slot(row, column);
            }
        }
        plan.head(classes)
    }

    fn problems(&self) -> Vec<HostProblem> {
        let mut problems = stage_problems(&self.blocks);
        problems.extend(pool_problem(self.input_hw, self.blocks.len(), "blocks"));
        problems
    }

    fn family(&self) -> Option<HostChoice> {
        Some(HostChoice::Vgg(self.clone()))
    }
}
