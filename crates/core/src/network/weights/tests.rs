use std::fs;

use super::*;
use crate::host::HostDesign;
use crate::scenario::{CnnSpec, ResnetSpec, Shortcut, Stem, VggSpec};
use crate::torch::encode_plain;

mod torchvision;

/// A tensor of values that a variance may have too.
fn tensor(shape: &[i64], kind: Kind) -> PlainTensor {
    let values = tch::Tensor::randn(shape, (Kind::Float, tch::Device::Cpu)).abs();
    PlainTensor::of(&values.to_kind(kind)).unwrap()
}

/// Two blocks, of 4 and 8 channels.
fn small() -> HostPlan {
    small_for(10)
}

fn small_for(classes: i64) -> HostPlan {
    let spec = CnnSpec {
        n_blocks: 2,
        base_channels: 4,
        ..CnnSpec::default()
    };
    spec.plan(classes)
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

    // The number in torchvision's documentation.
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

    let GivenWeights { tensors, notes, .. } = read(&given, &spec.plan(10)).unwrap();

    let last = &given["features.8.running_var"];
    assert_eq!(&tensors["stage1.conv1.norm.running_var"], last);
    assert_eq!(tensors.len(), given.len() - 1);
    assert!(notes[0].contains("nothing for head.bias, head.weight"), "{notes:?}");
    assert!(notes[1].starts_with("classifier.0.weight of "), "{notes:?}");
    let plain = BTreeMap::from([("features.3.weight", tensor(&[4, 2, 3, 3], Kind::Float))]);
    let refused = said(read(&plain, &spec.plan(10)));
    assert!(refused.contains("no norms after its convolutions"), "{refused}");
}

#[test]
fn halves_become_floats_and_everything_that_does_not_fit_is_said_at_once() {
    let plan = small();
    let half = tensor(&[10, 8], Kind::Half);
    let weights = read(&BTreeMap::from([("head.weight", half.clone())]), &plan).unwrap();
    let values = weights.tensors["head.weight"].to_tensor().unwrap();
    assert_eq!(values, half.to_tensor().unwrap().to_kind(Kind::Float));
    for kind in [Kind::BFloat16, Kind::Double] {
        let other = BTreeMap::from([("head.bias", tensor(&[10], kind))]);
        let note = &read(&other, &plan).unwrap().notes[0];
        assert!(note.contains("and 3 more: these start with random weights"), "{note}");
    }

    let wrong = [
        ("head.weight", tensor(&[12, 8], Kind::Float)),
        ("head.bias", tensor(&[10], Kind::Int64)),
        ("tail.bias", tensor(&[10], Kind::Float)),
        ("block0.norm.num_batches_tracked", tensor(&[], Kind::Int64)),
    ];
    let said = said(read(&BTreeMap::from(wrong), &plan));
    let shapes = "`head.weight` is F32 [12, 8], expected F32 [10, 8]; `tail.bias` doesn't belong to any layer";
    assert!(said.contains(shapes), "{said}");
    assert!(said.contains("`head.bias` is I64 [10], expected F32 [10]"), "{said}");
    assert!(said.contains("missing: block0.conv.weight, "), "{said}");
}

#[test]
fn files_of_other_kinds_are_refused_with_what_to_do() {
    let plan = CnnSpec::default().plan(10);
    let said_of = |bytes: &[u8]| said(read_bytes(bytes, &plan));
    for pickle in [&b"PK\x03\x04\x14\0\x08\x08\x08\0"[..], b"\x80\x02}q\0(X\x01\0\0"] {
        assert!(said_of(pickle).contains("safetensors.torch.save_file(model.state_dict()"));
    }
    assert!(said_of(b"").contains("isn't a network"));
    let sound = encode_plain([("head.bias", &tensor(&[10], Kind::Float))]).unwrap();
    let mut forged = sound.clone();
    let at = sound.windows(4).position(|part| part == b"[10]").unwrap();
    forged[at + 1] = b'9';
    assert!(said_of(&forged).contains("isn't a network"));
    assert!(said_of(&sound[..sound.len() - 4]).contains("isn't a network"));
    let missing = said(GivenWeights::read("other.safetensors", None, &plan));
    let looked = "no file or folder other.safetensors; looked at ";
    assert!(missing.starts_with(looked), "{missing}");
}

#[test]
fn what_wraps_a_network_puts_before_every_name_is_passed_over() {
    let (weight, bias) = (tensor(&[10, 8], Kind::Float), tensor(&[10], Kind::Float));
    for prefix in ["module.", "_orig_mod.", "model.", "net.module."] {
        let given = [("head.weight", &weight), ("head.bias", &bias)];
        let given = given.map(|(name, tensor)| (format!("{prefix}{name}"), tensor.clone()));

        let weights = read(&BTreeMap::from(given), &small()).unwrap();

        let said = format!("the prefix `{prefix}` of the names in ");
        assert!(weights.notes[0].starts_with(&said), "{:?}", weights.notes);
        let own: Vec<&String> = weights.tensors.keys().collect();
        assert_eq!(own, ["head.bias", "head.weight"]);
    }
    // A prefix before only some of them isn't one.
    let mixed = [("head.bias", bias), ("model.head.weight", weight)];
    let refused = said(read(&BTreeMap::from(mixed), &small()));
    assert!(
        refused.contains("`model.head.weight` doesn't belong to any layer"),
        "{refused}"
    );
}

#[test]
fn values_that_no_network_can_start_from_are_refused_by_file_and_tensor() {
    let filled = |shape: &[i64], value: f64| {
        let values = tch::Tensor::full(shape, value, (Kind::Float, tch::Device::Cpu));
        PlainTensor::of(&values).unwrap()
    };
    for (name, shape, value, expected) in [
        ("module.head.bias", vec![10_i64], f64::NAN, "`module.head.bias` has NaN"),
        ("head.weight", vec![10, 8], f64::INFINITY, "`head.weight` has inf"),
        (
            "block0.norm.running_var",
            vec![4],
            -0.5,
            "`block0.norm.running_var` has -0.5",
        ),
    ] {
        let given = BTreeMap::from([(name, filled(&shape, value))]);
        let refused = said(read(&given, &small()));
        for part in ["w.safetensors", expected, "valid: finite numbers"] {
            assert!(refused.contains(part), "{refused}");
        }
    }
    let mean = BTreeMap::from([("block0.norm.running_mean", filled(&[4], -0.5))]);
    assert!(read(&mean, &small()).is_ok());
}

#[test]
fn a_refusal_names_the_kind_of_network_that_weights_are_of_where_it_is_known() {
    let padded = ResnetSpec::default().plan(10);
    for (plan, name, shape, expected) in [
        (
            &small(),
            "block0.conv.weight",
            vec![4_i64, 1, 3, 3],
            "it reads 1 channel, the host reads 3",
        ),
        (
            &padded,
            "layer1.7.conv1.weight",
            vec![16, 16, 3, 3],
            "it has another depth",
        ),
    ] {
        // Adds a head, so that all names have no part in common.
        let head = if name.starts_with("layer") {
            "fc.bias"
        } else {
            "head.bias"
        };
        let file = [(name, tensor(&shape, Kind::Float)), (head, tensor(&[10], Kind::Float))];
        let refused = said(read(&BTreeMap::from(file), plan));
        assert!(refused.contains(expected), "{refused}");
    }
    // Neither a third convolution of a block nor another shortcut, nor a part of the head, makes a network deeper.
    for name in ["layer1.0.conv3.weight", "layer2.0.downsample.0.weight", "fc.1.weight"] {
        let refused = said(read(&BTreeMap::from([(name, tensor(&[4], Kind::Float))]), &padded));
        assert!(!refused.contains("another depth"), "{refused}");
        let is_third = refused.contains("three convolutions, the host's have two");
        assert_eq!(is_third, name.contains("conv3"), "{refused}");
    }
    let many = (0..500).map(|index| (format!("other{index}.weight"), tensor(&[1], Kind::Float)));
    let refused = said(read(&many.collect(), &small()));
    assert!(
        refused.contains("it has nothing for this host; `other0.weight`"),
        "{refused}"
    );
    assert!(refused.contains(" and 493 more") && refused.len() < 1000, "{refused}");
}

#[test]
fn weights_without_a_head_or_with_one_for_other_classes_are_all_of_the_body() {
    let all = |plan: &HostPlan| -> BTreeMap<String, PlainTensor> {
        let host = plan
            .build(&mut RunRng::new(1, Domain::HostInit, &[]), Backend::CPU)
            .unwrap();
        let params = host.params().all();
        params
            .map(|param| (param.name.clone(), PlainTensor::of(&param.tensor).unwrap()))
            .collect()
    };
    let mut given = all(&small());
    assert!(read(&given, &small()).unwrap().absent.is_empty());
    given.remove("head.weight");
    let weights = read(&given, &small()).unwrap();
    assert_eq!(weights.absent, ["head.weight"]);
    assert!(weights.has_body(&small()));
    given.remove("block1.conv.weight");
    assert!(!read(&given, &small()).unwrap().has_body(&small()));

    let mut given = all(&small_for(12));
    let weights = read(&given, &small()).unwrap();
    assert_eq!(weights.other_classes, Some(12));
    assert_eq!(weights.absent, ["head.bias", "head.weight"]);
    assert!(weights.has_body(&small()));
    let [note] = &weights.notes[..] else {
        panic!("{:?}", weights.notes);
    };
    let expected = "is for 12 classes, but the data have 10: episodes start with a new head";
    assert!(note.ends_with(expected), "{note}");
    // A head of another width is refused.
    given.insert("head.weight".into(), tensor(&[12, 9], Kind::Float));
    let refused = said(read(&given, &small()));
    assert!(
        refused.contains("`head.weight` is F32 [12, 9], expected F32 [10, 8]"),
        "{refused}"
    );
}
