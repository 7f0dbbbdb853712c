//! Hosts of the literature by their names.

use std::sync::Arc;

use crate::host::HostDesign;
use crate::scenario::{ResnetSpec, Shortcut, VggSpec};

/// A name, its line in lists, and the host.
type Preset = (&'static str, &'static str, Arc<dyn HostDesign>);

/// All of them, for images of 32x32 pixels in three colours.
pub fn presets() -> [Preset; 7] {
    let padded = |blocks: usize| -> Arc<dyn HostDesign> {
        Arc::new(ResnetSpec {
            blocks: vec![blocks; 3],
            ..ResnetSpec::default()
        })
    };
    let projected = ResnetSpec {
        shortcut: Shortcut::Projection,
        ..ResnetSpec::default()
    };
    let resnet18 = ResnetSpec {
        base_channels: 64,
        blocks: vec![2; 4],
        ..projected.clone()
    };
    let wide = ResnetSpec {
        blocks: vec![4; 3],
        pre_activation: true,
        ..projected.clone()
    };
    [
        (
            "resnet20",
            "residual network of 20 layers for CIFAR, padded shortcuts",
            padded(3),
        ),
        (
            "resnet20_projected",
            "the same with projections for shortcuts",
            Arc::new(projected),
        ),
        (
            "resnet32",
            "residual network of 32 layers for CIFAR, padded shortcuts",
            padded(5),
        ),
        (
            "resnet56",
            "residual network of 56 layers for CIFAR, padded shortcuts",
            padded(9),
        ),
        (
            "resnet18",
            "residual network of 18 layers with a 3x3 stem, projections",
            Arc::new(resnet18),
        ),
        (
            "vgg11",
            "VGG of 11 layers with batch norm and one linear layer",
            Arc::new(VggSpec::default()),
        ),
        (
            "wrn28_1",
            "pre-activated residual network of 28 layers, width 1",
            Arc::new(wide),
        ),
    ]
}
