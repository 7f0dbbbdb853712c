//! Names and shapes of torchvision's `resnet18().state_dict()`, as version 0.26 has them.

/// A convolution, the norm after it and the shape of its weight.
type Layer = (&'static str, &'static str, [i64; 4]);

const LAYERS: [Layer; 20] = [
    ("conv1", "bn1", [64, 3, 7, 7]),
    ("layer1.0.conv1", "layer1.0.bn1", [64, 64, 3, 3]),
    ("layer1.0.conv2", "layer1.0.bn2", [64, 64, 3, 3]),
    ("layer1.1.conv1", "layer1.1.bn1", [64, 64, 3, 3]),
    ("layer1.1.conv2", "layer1.1.bn2", [64, 64, 3, 3]),
    ("layer2.0.conv1", "layer2.0.bn1", [128, 64, 3, 3]),
    ("layer2.0.conv2", "layer2.0.bn2", [128, 128, 3, 3]),
    ("layer2.0.downsample.0", "layer2.0.downsample.1", [128, 64, 1, 1]),
    ("layer2.1.conv1", "layer2.1.bn1", [128, 128, 3, 3]),
    ("layer2.1.conv2", "layer2.1.bn2", [128, 128, 3, 3]),
    ("layer3.0.conv1", "layer3.0.bn1", [256, 128, 3, 3]),
    ("layer3.0.conv2", "layer3.0.bn2", [256, 256, 3, 3]),
    ("layer3.0.downsample.0", "layer3.0.downsample.1", [256, 128, 1, 1]),
    ("layer3.1.conv1", "layer3.1.bn1", [256, 256, 3, 3]),
    ("layer3.1.conv2", "layer3.1.bn2", [256, 256, 3, 3]),
    ("layer4.0.conv1", "layer4.0.bn1", [512, 256, 3, 3]),
    ("layer4.0.conv2", "layer4.0.bn2", [512, 512, 3, 3]),
    ("layer4.0.downsample.0", "layer4.0.downsample.1", [512, 256, 1, 1]),
    ("layer4.1.conv1", "layer4.1.bn1", [512, 512, 3, 3]),
    ("layer4.1.conv2", "layer4.1.bn2", [512, 512, 3, 3]),
];

pub fn resnet18() -> Vec<(String, Vec<i64>)> {
    let mut tensors = Vec::new();
    for (convolution, norm, shape) in LAYERS {
        tensors.push((format!("{convolution}.weight"), shape.to_vec()));
        for part in ["weight", "bias", "running_mean", "running_var"] {
            tensors.push((format!("{norm}.{part}"), vec![shape[0]]));
        }
        tensors.push((format!("{norm}.num_batches_tracked"), Vec::new()));
    }
    tensors.push(("fc.weight".into(), vec![1000, 512]));
    tensors.push(("fc.bias".into(), vec![1000]));
    tensors
}
