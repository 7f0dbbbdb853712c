use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::{KEY, read_tensors, some_of};
use crate::graph::{Graph, ModuleGraph, SeedGraph};
use crate::growth::{AlphaAlgorithm, SlotId};
use crate::host::HostDesign;
use crate::network::fixtures::{grown, samples};
use crate::network::{GivenWeights, GrownNetwork, HostRegistry, NetworkError};
use crate::scenario::{CnnSpec, HostChoice, HostNorm, HostWeights, TaskSpec, TransformerSpec, task_presets};
use crate::torch::{Backend, PlainTensor, decode_described};

fn tiny() -> CnnSpec {
    CnnSpec {
        in_channels: 1,
        base_channels: 4,
        n_blocks: 2,
        pool_layers: 2,
        input_hw: 8,
        ..CnnSpec::default()
    }
}

fn tiny_network() -> GrownNetwork {
    grown(&(Arc::new(tiny()) as Arc<dyn HostDesign>), 3)
}

#[test]
fn a_network_with_every_kind_of_seed_comes_back_from_its_file_with_the_same_logits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.safetensors");
    let network = tiny_network();
    assert_eq!(network.graph.seeds().count(), 8);
    network.save(&path).unwrap();

    let read = GrownNetwork::load(&path).unwrap();

    assert_eq!(read, network);
    let samples = samples(&network, 5);
    assert_eq!(read.predict(&samples).unwrap(), network.predict(&samples).unwrap());
    let written = fs::read(&path).unwrap();
    network.save(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), written);
}

#[test]
fn a_domain_comes_back_from_its_file_in_which_what_it_shares_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.safetensors");
    let mut network = tiny_network();
    let mut domain = network.clone();
    let bias = domain.parameters.get_mut("head.bias").unwrap();
    *bias = PlainTensor::of(&(bias.to_tensor().unwrap() + 1.0)).unwrap();

    network.domains.insert("night".into(), domain);
    network.save(&path).unwrap();

    assert_eq!(GrownNetwork::load(&path).unwrap(), network);
    let (mut tensors, _) = decode_described(&fs::read(&path).unwrap(), KEY).unwrap();
    assert!(tensors.remove("night::head.bias").is_some());
    assert_eq!(tensors, network.parameters);
    for (name, is_free) in [("night", false), ("Day", false), ("day_2", true)] {
        let checked = GrownNetwork::check_domain(Some(&network), name);
        assert_eq!(checked.is_ok(), is_free, "{name}");
    }
}

#[test]
fn classes_of_a_kept_network_are_known_whether_it_is_the_host_or_its_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.safetensors").display().to_string();
    let mut network = tiny_network();
    network.data.classes = ["ant", "bee", "cat"].map(String::from).into();
    network.save(Path::new(&path)).unwrap();
    let mut task = task_presets().swap_remove(0).spec;
    let classes = |task: &TaskSpec| HostRegistry::default().classes(task, None);

    assert!(classes(&task).is_empty());
    task.weights = Some(HostWeights {
        path: path.clone(),
        envs: None,
    });
    assert_eq!(classes(&task), network.data.classes);
    (task.host, task.weights) = (HostChoice::Grown(path), None);
    assert_eq!(classes(&task), network.data.classes);
}

#[test]
fn a_kept_network_is_a_host_for_other_classes_with_a_head_that_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.safetensors");
    let network = tiny_network();
    network.save(&path).unwrap();
    // Named like an export's folder.
    let name = folder.path().display().to_string();

    let host = HostRegistry::default()
        .of(&HostChoice::Grown(name.clone()), None)
        .unwrap();
    assert_eq!(host.plan(3).features().channels, 3);
    let plan = host.plan(5);
    let given = GivenWeights::read(&name, None, &plan).unwrap();

    assert_eq!(plan.features().channels, 5);
    assert_eq!(given.other_classes, Some(3));
    assert_eq!(given.absent, ["head.bias", "head.weight"]);
    assert_eq!(given.tensors.len(), network.parameters.len() - 2);
    assert!(given.has_body(&plan));
}

#[test]
fn networks_of_all_hosts_are_built_from_their_descriptions() {
    let hosts = HostRegistry::default();
    let named = ["resnet20", "resnet20_projected", "wrn28_1", "vgg11"];
    let named = named.map(|name| HostChoice::Named(crate::scenario::HostName(name.into())));
    let norm = HostNorm::Group;
    let group = HostChoice::Cnn(CnnSpec { norm, ..tiny() });
    for choice in named.into_iter().chain([group]) {
        let design = hosts.of(&choice, None).unwrap();
        let plan = design.plan(10);
        let again = plan.graph().plan().unwrap();
        assert_eq!(again.outline(), plan.outline(), "{}", choice.label());
    }
    let text: Arc<dyn HostDesign> = Arc::new(TransformerSpec {
        width: 16,
        layers: 3,
        block: 12,
        ..TransformerSpec::default()
    });
    let network = grown(&text, 20);
    assert!(network.graph.seeds().count() >= 7);
    let texts = samples(&network, 2).narrow(1, 0, 9).contiguous();
    assert_eq!(network.predict(&texts).unwrap().size(), [2, 9, 20]);
}

#[test]
fn a_changed_byte_of_tensors_or_description_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.safetensors");
    tiny_network().save(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    let described = whole.windows(9).position(|part| part == b"amplitude").unwrap();
    for place in [whole.len() - 3, described] {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        fs::write(&path, changed).unwrap();
        let error = GrownNetwork::load(&path).unwrap_err();
        assert!(matches!(error, NetworkError::Damaged(_)), "{error}");
    }
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(GrownNetwork::load(&path), Err(NetworkError::NotOne { .. })));
}

#[test]
fn tensors_that_do_not_fit_are_all_named() {
    let mut network = tiny_network();
    let bias = network.parameters.remove("head.bias").unwrap();
    network.parameters.insert("head.weight".into(), bias.clone());
    network.parameters.insert("tail.bias".into(), bias);
    let Err(NetworkError::Tensors(wrong)) = network.build(Backend::CPU) else {
        panic!("it was built");
    };
    assert_eq!(wrong.len(), 3, "{wrong:?}");
}

#[test]
fn sizes_that_cannot_be_are_refused_before_anything_is_allocated() {
    let graph = tiny_network().graph;
    let with = |change: fn(&mut Graph)| {
        let mut graph = graph.clone();
        change(&mut graph);
        graph.plan().map(drop).unwrap_err().to_string()
    };
    insta::assert_snapshot!([
        with(|graph| graph.side = 0),
        with(|graph| graph.channels = 3),
        with(|graph| graph.slots[0].1 = 0),
        with(|graph| {
            let seed = SeedGraph {
                slot: SlotId::new(0, 0),
                blueprint: "x".into(),
                channels: 4,
                module: ModuleGraph::Attention { heads: 3, window: None },
                operator: AlphaAlgorithm::Add,
                amplitude: 1.0,
            };
            *graph = graph.clone().with_seed(seed).0;
        }),
    ].join("\n"), @r"
    layer `input` of the network cannot be built: 0 isn't a size; valid: 1 to 1048576
    layer `block0` of the network cannot be built: it reads 1 channel, but the layers before it make 3
    the host cannot be built: slot r0c0 of the host is before its first op or after its head; valid: between two ops
    layer `r0c0_3` of the network cannot be built: 4 channels do not divide into 3 heads
    ");
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.safetensors");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("there is mkfifo").success());
    for path in [pipe.as_path(), Path::new("/dev/zero")] {
        let refused = GrownNetwork::load(path).unwrap_err().to_string();
        assert!(refused.ends_with(": it isn't a regular file"), "{refused}");
    }
}

/// Message about a file with this header and nothing after it.
fn said_of(header: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    let length = (header.len() as u64).to_le_bytes();
    fs::write(&path, [&length[..], header.as_bytes()].concat()).unwrap();
    GrownNetwork::load(&path).unwrap_err().to_string()
}

#[test]
fn headers_are_bounded_and_what_is_said_of_them_is_short() {
    let tensor = |name: &str| format!(r#""{name}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#);
    let many: Vec<String> = (0..65_537).map(|index| tensor(&index.to_string())).collect();
    let many = said_of(&format!("{{{}}}", many.join(",")));
    assert!(
        many.contains("65537 tensors; valid: up to 64 MiB and 65536 tensors"),
        "{many}"
    );
    let long = "n".repeat(100_000);
    let said = said_of(&format!(
        r#"{{"a":{{"dtype":"{long}","shape":[0],"data_offsets":[0,0]}}}}"#
    ));
    assert!(said.contains("w.safetensors") && said.len() < 500, "{}", said.len());
    // Weights alone aren't a network.
    let alone = said_of(&format!("{{{}}}", tensor("a")));
    assert!(alone.contains("name it in task.weights"), "{alone}");
    assert!(matches!(read_tensors(Path::new("none")), Err(NetworkError::File(_))));
}

#[test]
fn lists_end_after_eight_each_a_line() {
    let names: Vec<String> = (0..20).map(|index| format!("n{index}")).collect();
    assert_eq!(some_of(&names[..2], ", "), "n0, n1");
    assert_eq!(some_of(&names, "; "), "n0; n1; n2; n3; n4; n5; n6; n7 and 12 more");
    assert_eq!(some_of::<String>(&[], ", "), "none");
    assert_eq!(some_of(&["n".repeat(1000)], ", ").len(), 200);
}
