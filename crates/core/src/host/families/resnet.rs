//! Residual hosts: a stem, stages of residual blocks, a linear head.
//!
//! Three stages of n post-activation blocks from 16 channels, padded, are the networks for CIFAR of He et al. 2016
//! (arXiv:1512.03385, section 4.2), of depth 6n + 2. Pre-activated and projected they are the wide residual networks of
//! Zagoruyko & Komodakis 2016 (arXiv:1605.07146), of depth 6n + 4.

use super::{MOST_BLOCKS, MOST_STAGES, begin, doubled, stage_problems};
use crate::host::{Conv, HostDesign, HostPlan, MaxPool, NormRelu, ResidualBlock};
use crate::scenario::{HostChoice, HostProblem, ResnetSpec, Stem};

impl HostDesign for ResnetSpec {
    /// `stem, (stem_pool,) stage0.block0, …, head`; with pre-activation a norm and ReLU before the head. A slot `r{stage}c{block}`
    /// is after every block.
    fn plan(&self, classes: i64) -> HostPlan {
        let (kernel, stride) = match self.stem {
            Stem::Small => (3, 1),
            Stem::Large => (7, 2),
        };
        let stem = Conv::new(doubled(self.base_channels, 0), kernel)
            .stride(stride)
            .norm(self.norm);
        let stem = if self.pre_activation { stem.bare() } else { stem };
        let mut plan = begin(self.in_channels, self.input_hw).layer("stem", stem);
        if self.stem == Stem::Large {
            let pool = MaxPool {
                kernel: 3,
                stride: 2,
                padding: 1,
            };
            plan = plan.layer("stem_pool", pool);
        }
        for (stage, (row, &blocks)) in (0_u16..).zip(&self.blocks).enumerate().take(MOST_STAGES) {
            for (block, column) in (0..blocks.min(MOST_BLOCKS)).zip(0_u16..) {
                let residual = ResidualBlock {
                    outputs: doubled(self.base_channels, stage),
                    stride: if stage > 0 && block == 0 { 2 } else { 1 },
                    shortcut: self.shortcut,
                    pre_activation: self.pre_activation,
                    norm: self.norm,
                };
                plan = plan
                    .layer(format!("stage{stage}.block{block}"), residual)
                    .slot(row, column);
            }
        }
        if self.pre_activation {
            plan = plan.layer("exit", NormRelu(self.norm));
        }
        plan.head(classes)
    }

    fn problems(&self) -> Vec<HostProblem> {
        stage_problems(&self.blocks)
    }

    fn family(&self) -> Option<HostChoice> {
        Some(HostChoice::Resnet(self.clone()))
    }
}
