use std::fs;

use super::*;
use crate::host::HostDesign;
use crate::scenario::{CnnSpec, ResnetSpec, Shortcut, Stem, VggSpec};
use crate::torch::encode_plain;

mod torchvision;

fn tensor(shape: &[i64], kind: Kind) -> PlainTensor {
    PlainTensor::of(&tch::Tensor::randn(shape, (Kind::Float, tch::Device::Cpu)).to_kind(kind)).unwrap()
}

/// The weights in a file of these bytes.
fn read_bytes(bytes: &[u8], plan: &HostPlan) -> Result<GivenWeights, NetworkError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("w.safetensors"), bytes).unwrap();
    GivenWeights::read("w.safetensors", Some(folder.path()), plan)
}

/// The weights in a file of these tensors.
fn read<Name: AsRef<str>>(
    tensors: &BTreeMap<Name, PlainTensor>,
    plan: &HostPlan,
) -> Result<GivenWeights, NetworkError> {
    let tensors = tensors.iter().map(|(name, tensor)| (name.as_ref(), tensor));
    read_bytes(&encode_plain(tensors).unwrap(), plan)
}

fn said(refused: Result<GivenWeights, NetworkError>) -> String {
    refused.expect_err("it does not fit").to_string()
}

#[test]
#[ignore = "long tier"]
fn every_tensor_of_the_resnet18_of_torchvision_has_its_place() {
    let spec = ResnetSpec {
        base_channels: 64,
        blocks: vec![2; 4],
        shortcut: Shortcut::Projection,
        stem: Stem::Large,
        input_hw: 224,
        ..ResnetSpec::default()
    };
    let plan = spec.plan(1000);
    let float = |(name, shape): (String, Vec<i64>)| (name, tensor(&shape, Kind::Float));
    let given: BTreeMap<_, _> = torchvision::resnet18().into_iter().map(float).collect();

    let weights = read(&given, &plan).unwrap();

    // As torchvision's documentation says.
    assert_eq!(plan.outline().parameters, 11_689_512);
    assert_eq!(plan.op_costs().iter().map(|cost| cost.macs).sum::<u64>(), 1_814_073_344);
    assert!(weights.notes.is_empty(), "{:?}", weights.notes);
    for (own, name) in [
        ("stem.conv.weight", "conv1.weight"),
        ("stem.norm.running_var", "bn1.running_var"),
        ("stage1.block0.shortcut.conv.weight", "layer2.0.downsample.0.weight"),
        ("stage1.block0.shortcut.norm.bias", "layer2.0.downsample.1.bias"),
        ("stage3.block1.second.norm.running_mean", "layer4.1.bn2.running_mean"),
        ("head.bias", "fc.bias"),
    ] {
        assert_eq!(weights.tensors[own], given[name], "{own}");
    }
}

#[test]
#[ignore = "long tier"]
fn the_convolutions_of_a_vgg_are_taken_and_its_classifier_is_not() {
    let spec = VggSpec {
        base_channels: 2,
        blocks: vec![1, 2],
        ..VggSpec::default()
    };
    let mut given = BTreeMap::new();
    let mut give = |name: String, shape: &[i64]| given.insert(name, tensor(shape, Kind::Float));
    // Convolution, norm, ReLU, pool; twice convolution, norm, ReLU; pool.
    for (place, inputs, outputs) in [(0, 3, 2), (4, 2, 4), (7, 4, 4)] {
        give(format!("features.{place}.weight"), &[outputs, inputs, 3, 3]);
        give(format!("features.{place}.bias"), &[outputs]);
        for part in ["weight", "bias", "running_mean", "running_var"] {
            give(format!("features.{}.{part}", place + 1), &[outputs]);
        }
    }
    give("classifier.0.weight".into(), &[4096, 25088]);

    let GivenWeights { tensors, notes } = read(&given, &spec.plan(10)).unwrap();

    let last = &given["features.8.running_var"];
    assert_eq!(&tensors["stage1.conv1.norm.running_var"], last);
    assert_eq!(tensors.len(), given.len() - 1);
    assert!(notes[0].contains("nothing for head.bias, head.weight"), "{notes:?}");
    assert!(notes[1].starts_with("classifier.0.weight of "), "{notes:?}");
}

#[test]
fn halves_become_floats_and_everything_that_does_not_fit_is_said_at_once() {
    let spec = CnnSpec {
        n_blocks: 2,
        base_channels: 4,
        ..CnnSpec::default()
    };
    let plan = spec.plan(10);
    let half = tensor(&[10, 8], Kind::Half);
    let weights = read(&BTreeMap::from([("head.weight", half.clone())]), &plan).unwrap();
    let values = weights.tensors["head.weight"].to_tensor().unwrap();
    assert_eq!(values, half.to_tensor().unwrap().to_kind(Kind::Float));
    let brain = BTreeMap::from([("head.bias", tensor(&[10], Kind::BFloat16))]);
    let note = &read(&brain, &plan).unwrap().notes[0];
    assert!(note.contains("and 3 more: episodes start as without it"), "{note}");

    let wrong = [
        ("head.weight", tensor(&[12, 8], Kind::Float)),
        ("head.bias", tensor(&[10], Kind::Int64)),
        ("tail.bias", tensor(&[10], Kind::Float)),
        ("block0.norm.num_batches_tracked", tensor(&[], Kind::Int64)),
    ];
    let said = said(read(&BTreeMap::from(wrong), &plan));
    let shapes = "`head.weight` is F32 [12, 8], expected F32 [10, 8]; `tail.bias` belongs to no layer";
    assert!(said.contains(shapes), "{said}");
    assert!(said.contains("`head.bias` is I64 [10], expected F32 [10]"), "{said}");
    assert!(said.contains("not given: block0.conv.weight, "), "{said}");
}

#[test]
fn files_of_other_kinds_are_refused_with_what_to_do() {
    let plan = CnnSpec::default().plan(10);
    let said_of = |bytes: &[u8]| said(read_bytes(bytes, &plan));
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
    let missing = said(GivenWeights::read("other.safetensors", None, &plan));
    let looked = "no file or folder other.safetensors; looked at ";
    assert!(missing.starts_with(looked), "{missing}");
}
