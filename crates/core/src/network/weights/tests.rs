use std::fs;

use torchvision::RESNET18;

use super::*;
use crate::host::HostDesign;
use crate::scenario::{CnnSpec, ResnetSpec, Shortcut, Stem, VggSpec};
use crate::torch::encode_plain;

mod torchvision;

/// The network that torchvision calls `resnet18`, for as many classes.
fn resnet18(classes: i64) -> HostPlan {
    let spec = ResnetSpec {
        base_channels: 64,
        blocks: vec![2; 4],
        shortcut: Shortcut::Projection,
        stem: Stem::Large,
        input_hw: 224,
        ..ResnetSpec::default()
    };
    spec.plan(classes)
}

fn tensor(shape: &[i64], kind: Kind) -> PlainTensor {
    PlainTensor::of(&tch::Tensor::randn(shape, (Kind::Float, tch::Device::Cpu)).to_kind(kind)).unwrap()
}

fn written(path: &Path, tensors: &[(&str, PlainTensor)]) {
    let bytes = encode_plain(tensors.iter().map(|(name, tensor)| (*name, tensor))).unwrap();
    fs::write(path, bytes).unwrap();
}

/// The weights in a file of these tensors, and that it is read.
fn read(tensors: &[(&str, PlainTensor)], plan: &HostPlan) -> Result<GivenWeights, NetworkError> {
    let folder = tempfile::tempdir().unwrap();
    written(&folder.path().join("w.safetensors"), tensors);
    GivenWeights::read("w.safetensors", Some(folder.path()), plan)
}

fn said(refused: Result<GivenWeights, NetworkError>) -> String {
    refused.expect_err("it does not fit").to_string()
}

#[test]
fn every_tensor_of_the_resnet18_of_torchvision_has_its_place() {
    let plan = resnet18(1000);
    let given: Vec<_> = RESNET18
        .iter()
        .map(|(name, shape)| (*name, tensor(shape, Kind::Float)))
        .collect();
    let weights = read(&given, &plan).unwrap();

    // As torchvision's documentation says.
    assert_eq!(plan.outline().parameters, 11_689_512);
    assert_eq!(plan.op_costs().iter().map(|cost| cost.macs).sum::<u64>(), 1_814_073_344);
    assert!(weights.notes.is_empty(), "{:?}", weights.notes);
    let theirs = |name: &str| &given.iter().find(|(known, _)| *known == name).unwrap().1;
    for (own, name) in [
        ("stem.conv.weight", "conv1.weight"),
        ("stem.norm.running_var", "bn1.running_var"),
        ("stage1.block0.shortcut.conv.weight", "layer2.0.downsample.0.weight"),
        ("stage1.block0.shortcut.norm.bias", "layer2.0.downsample.1.bias"),
        ("stage3.block1.second.norm.running_mean", "layer4.1.bn2.running_mean"),
        ("head.bias", "fc.bias"),
    ] {
        assert_eq!(&weights.tensors[own], theirs(name), "{own}");
    }
}

#[test]
fn the_convolutions_of_a_vgg_are_taken_and_its_classifier_is_not() {
    let spec = VggSpec {
        base_channels: 2,
        blocks: vec![1, 2],
        ..VggSpec::default()
    };
    let norm = |place: usize, channels: i64| {
        ["weight", "bias", "running_mean", "running_var"]
            .map(|part| (format!("features.{place}.{part}"), tensor(&[channels], Kind::Float)))
    };
    let mut given: Vec<(String, PlainTensor)> = Vec::new();
    // Convolution, norm, ReLU, pool; twice convolution, norm, ReLU; pool.
    for (place, inputs, outputs) in [(0, 3, 2), (4, 2, 4), (7, 4, 4)] {
        given.push((
            format!("features.{place}.weight"),
            tensor(&[outputs, inputs, 3, 3], Kind::Float),
        ));
        given.push((format!("features.{place}.bias"), tensor(&[outputs], Kind::Float)));
        given.extend(norm(place + 1, outputs));
    }
    given.push(("classifier.0.weight".into(), tensor(&[4096, 25088], Kind::Float)));
    let given: Vec<_> = given
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor.clone()))
        .collect();

    let weights = read(&given, &spec.plan(10)).unwrap();

    let last = given
        .iter()
        .find(|(name, _)| *name == "features.8.running_var")
        .unwrap();
    assert_eq!(weights.tensors["stage1.conv1.norm.running_var"], last.1);
    assert_eq!(weights.tensors.len(), given.len() - 1);
    assert!(
        weights.notes[0].contains("nothing for head.bias, head.weight"),
        "{:?}",
        weights.notes
    );
    assert!(
        weights.notes[1].starts_with("classifier.0.weight of "),
        "{:?}",
        weights.notes
    );
}

#[test]
fn halves_become_floats_and_everything_that_does_not_fit_is_said_at_once() {
    let plan = CnnSpec {
        n_blocks: 2,
        base_channels: 4,
        ..CnnSpec::default()
    }
    .plan(10);
    let half = tensor(&[10, 8], Kind::Half);
    let weights = read(&[("head.weight", half.clone())], &plan).unwrap();
    let values = weights.tensors["head.weight"].to_tensor().unwrap();
    assert_eq!(values, half.to_tensor().unwrap().to_kind(Kind::Float));
    let brain = read(&[("head.bias", tensor(&[10], Kind::BFloat16))], &plan).unwrap();
    assert!(
        brain.notes[0].contains("and 3 more: episodes start as without it there"),
        "{:?}",
        brain.notes
    );

    let wrong = [
        ("head.weight", tensor(&[12, 8], Kind::Float)),
        ("head.bias", tensor(&[10], Kind::Int64)),
        ("tail.bias", tensor(&[10], Kind::Float)),
        ("block0.norm.num_batches_tracked", tensor(&[], Kind::Int64)),
    ];
    let said = said(read(&wrong, &plan));
    assert!(
        said.contains("`head.weight` is F32 [12, 8], expected F32 [10, 8]; `tail.bias` belongs to no layer"),
        "{said}"
    );
    assert!(said.contains("`head.bias` is I64 [10], expected F32 [10]"), "{said}");
    assert!(said.contains("not given: block0.conv.weight, "), "{said}");
}

#[test]
fn files_of_other_kinds_are_refused_with_what_to_do() {
    let plan = CnnSpec::default().plan(10);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    let said_of = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        said(GivenWeights::read("w.safetensors", Some(folder.path()), &plan))
    };
    for pickle in [&b"PK\x03\x04\x14\0\x08\x08\x08\0"[..], b"\x80\x02}q\0(X\x01\0\0"] {
        assert!(said_of(pickle).contains("safetensors.torch.save_file(model.state_dict()"));
    }
    assert!(said_of(b"").contains("is no network"));
    let sound = encode_plain([("head.bias", &tensor(&[10], Kind::Float))]).unwrap();
    let mut forged = sound.clone();
    let at = sound.windows(4).position(|part| part == b"[10]").unwrap();
    forged[at + 1] = b'9';
    assert!(said_of(&forged).contains("is no network"));
    assert!(said_of(&sound[..sound.len() - 4]).contains("is no network"));
    let missing = said(GivenWeights::read("other.safetensors", Some(folder.path()), &plan));
    assert!(
        missing.starts_with("no file or folder other.safetensors; looked at "),
        "{missing}"
    );
}
