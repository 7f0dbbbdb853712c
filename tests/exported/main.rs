//! Exported networks and the engine's own: the same logits.
//!
//! The folders next to this file are exports of small networks, each with samples and the logits that PyTorch has computed of
//! them from its `network.py`, and one of the policy in `proof/policy`. With `SIMIC_ENGINE_TEST_EXPORT=FOLDER` drawn networks of every family are exported into that
//! folder, for `python/tests/test_export.py`, which loads them in PyTorch.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use simic_engine::internals::actions::Head;
use simic_engine::internals::controller::{SavedFolder, SavedPolicy};
use simic_engine::internals::export::{export_network, export_policy, write};
use simic_engine::internals::growth::Topology;
use simic_engine::internals::host::HostDesign;
use simic_engine::internals::network::fixtures::{drawn, grown, samples};
use simic_engine::internals::network::{GrownNetwork, HostRegistry};
use simic_engine::internals::policy::PolicyInput;
use simic_engine::internals::scenario::{
    CnnSpec, HostChoice, HostName, HostNorm, Positions, ResnetSpec, Shortcut, TransformerSpec, VggSpec,
};
use simic_engine::internals::torch::{PlainTensor, decode_plain, encode_tensors};
use tch::{Kind, Tensor};

/// Networks with drawn seeds of each design.
const DRAWS: u64 = 6;
/// Largest difference of logits, as a share of the largest of them and of each of them.
const TOLERANCE: f64 = 1e-5;

type Designs = Vec<(String, Arc<dyn HostDesign>, i64)>;

fn image_families() -> Designs {
    let mut designs: Designs = Vec::new();
    for norm in [HostNorm::Batch, HostNorm::Group] {
        let norm_name = format!("{norm:?}").to_lowercase();
        for (name, base_channels, n_blocks, pool_layers, input_hw) in [("small", 3, 2, 1, 8), ("wide", 16, 3, 3, 16)] {
            let cnn = CnnSpec {
                in_channels: 1,
                base_channels,
                n_blocks,
                pool_layers,
                input_hw,
                norm,
                ..CnnSpec::default()
            };
            designs.push((format!("cnn-{name}-{norm_name}"), Arc::new(cnn), 10));
        }
        for (shortcut, pre_activation) in [
            (Shortcut::Pad, false),
            (Shortcut::Pad, true),
            (Shortcut::Projection, false),
            (Shortcut::Projection, true),
        ] {
            let resnet = ResnetSpec {
                base_channels: 8,
                blocks: vec![1, 2],
                input_hw: 9,
                shortcut,
                pre_activation,
                norm,
                ..ResnetSpec::default()
            };
            let order = if pre_activation { "pre" } else { "post" };
            let name = format!("resnet-{shortcut:?}-{order}-{norm_name}").to_lowercase();
            designs.push((name, Arc::new(resnet), 7));
        }
        let vgg = VggSpec {
            base_channels: 4,
            blocks: vec![1, 2],
            input_hw: 8,
            norm,
            ..VggSpec::default()
        };
        designs.push((format!("vgg-{norm_name}"), Arc::new(vgg), 5));
    }
    designs
}

fn text_families() -> Designs {
    let positions = [Positions::Learned, Positions::Rotary];
    let design = |positions| -> (String, Arc<dyn HostDesign>, i64) {
        let text = TransformerSpec {
            width: 16,
            layers: 3,
            block: 40,
            positions,
            ..TransformerSpec::default()
        };
        (format!("text-{positions:?}").to_lowercase(), Arc::new(text), 20)
    };
    positions.map(design).into()
}

fn presets() -> Designs {
    let hosts = HostRegistry::default();
    let names = "resnet20 resnet20_projected resnet32 resnet56 resnet18 vgg11 wrn28_1".split(' ');
    let preset = |name: &str| {
        let choice = HostChoice::Named(HostName(name.into()));
        (name.to_owned(), hosts.of(&choice, None).expect("it is known"), 10)
    };
    names.map(preset).collect()
}

/// An export with samples and the engine's logits.
fn put(folder: &Path, network: &GrownNetwork, count: i64) {
    let kept = folder.with_extension("kept");
    network.save(&kept).expect("saved");
    let files = export_network(network, fs::read(&kept).expect("there"), None).expect("exported");
    write(folder, &files).expect("written");
    fs::remove_file(kept).expect("removed");
    let samples = samples(network, count);
    let logits = network.predict(&samples).expect("predicted");
    assert!(bool::try_from(logits.isfinite().all()).unwrap(), "{}", folder.display());
    let samples = ("samples".into(), samples.to_kind(Kind::Int64));
    let engine = encode_tensors(&[samples, ("logits".into(), logits)]).expect("encoded");
    fs::write(folder.join("engine.safetensors"), engine).expect("written");
}

#[test]
fn drawn_networks_are_exported_for_pytorch() {
    let Some(folder) = std::env::var_os("SIMIC_ENGINE_TEST_EXPORT").map(PathBuf::from) else {
        return;
    };
    fs::create_dir_all(&folder).expect("a folder");
    tch::manual_seed(7);
    for (name, design, classes) in image_families().into_iter().chain(text_families()) {
        put(&folder.join(format!("{name}-all")), &grown(&design, classes), 24);
        for draw in 0..DRAWS {
            let network = drawn(&design, classes, draw);
            put(&folder.join(format!("{name}-{draw}")), &network, 24);
        }
    }
    for (name, design, classes) in presets() {
        put(&folder.join(&name), &drawn(&design, classes, 1), 8);
    }
}

fn committed() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exported");
    let entries = fs::read_dir(folder).expect("a folder");
    let folders = entries.map(|entry| entry.expect("an entry").path());
    folders.filter(|path| path.join("kept.safetensors").is_file()).collect()
}

fn tensors(path: &Path) -> BTreeMap<String, Tensor> {
    let read = decode_plain(&fs::read(path).expect("there")).expect("safetensors");
    let tensor = |(name, plain): (String, PlainTensor)| (name, plain.to_tensor().expect("a tensor"));
    read.into_iter().map(tensor).collect()
}

#[test]
fn the_engine_computes_what_pytorch_has_computed() {
    let folders = committed();
    assert!(folders.len() >= 4, "{folders:?}");
    for folder in folders {
        let network = GrownNetwork::load(&folder.join("kept.safetensors")).expect("kept");
        let of_pytorch = tensors(&folder.join("pytorch.safetensors"));
        let samples = match network.graph.topology {
            Topology::Image => of_pytorch["samples"].to_kind(Kind::Uint8),
            Topology::Tokens => of_pytorch["samples"].shallow_clone(),
        };

        let logits = network.predict(&samples).expect("predicted");

        let expected = &of_pytorch["logits"];
        let largest = f64::try_from(expected.abs().max()).expect("a number");
        let is_close = logits.allclose(expected, TOLERANCE, TOLERANCE * largest, false);
        assert!(is_close, "{}", folder.display());
    }
}

/// Checks that PyTorch's results were computed from the sources as they are now. One network's source is there to read, of the
/// others the hash.
fn assert_committed(folder: &Path, name: &str, files: &[(&'static str, Vec<u8>)]) {
    let (_, source) = files.iter().find(|(file, _)| *file == name).expect("there");
    let text = String::from_utf8_lossy(source);
    if let Ok(hash) = fs::read_to_string(folder.join(format!("{name}.blake3"))) {
        let own = blake3::hash(source).to_string();
        assert_eq!(own, hash.trim_end(), "{}: now it is\n{text}", folder.display());
        return;
    }
    let committed = fs::read_to_string(folder.join(name)).expect("there");
    assert_eq!(text, committed, "{}", folder.display());
}

#[test]
fn committed_sources_are_those_that_are_exported() {
    for folder in committed() {
        let network = GrownNetwork::load(&folder.join("kept.safetensors")).expect("kept");
        let files = export_network(&network, Vec::new(), None).expect("exported");
        assert_committed(&folder, "network.py", &files);
    }
    let (policy, folder) = committed_policy();
    assert_committed(&folder, "policy.py", &export_policy(&policy).expect("exported"));
}

fn committed_policy() -> (SavedPolicy, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let saved = SavedFolder::read(&root.join("proof/policy")).expect("a policy");
    let policy = SavedPolicy::read(&saved).expect("the built-in network");
    (policy, root.join("tests/exported/policy"))
}

#[test]
fn a_policy_computes_what_pytorch_has_computed() {
    let (policy, folder) = committed_policy();
    let of_pytorch = tensors(&folder.join("pytorch.safetensors"));
    let (envs, steps) = of_pytorch["value"].size2().expect("[N, T]");
    let mut state = policy.net.zero_state(envs);
    let is_close = |one: &Tensor, other: &Tensor| one.allclose(other, TOLERANCE, TOLERANCE, false);
    for step in 0..steps {
        let at = |name: &str| of_pytorch[name].select(1, step);
        let input = PolicyInput {
            observations: at("normalised"),
            blueprints: at("blueprints"),
        };

        let output = policy.net.step(&input, &state).expect("a step");

        let layout = policy.net.spec().layout();
        for head in Head::ALL {
            let columns = layout.head(head);
            let logits = output.logits.narrow(1, columns.first as i64, columns.width() as i64);
            assert!(is_close(&logits, &at(head.name())), "{head} in step {step}");
        }
        assert!(is_close(&output.value, &at("value")), "the value in step {step}");
        state = output.state;
    }
}

/// With the raw values that it is shown, each element of a slot next to a slot that is empty and one that is not.
#[test]
fn the_scales_of_a_policy_are_those_that_pytorch_has_applied() {
    let (policy, folder) = committed_policy();
    let of_pytorch = tensors(&folder.join("pytorch.safetensors"));
    let rows = |name: &str| -> Vec<f64> { of_pytorch[name].flatten(0, 1).select(0, 0).try_into().expect("a row") };
    let (raw, normalised) = (rows("observations"), rows("normalised"));
    for (element, scale) in policy.scales.iter().enumerate() {
        let is_empty = scale.occupied_by.is_some_and(|flag| raw[flag] == 0.0);
        let (mean, deviation) = if is_empty {
            (0.0, 1.0)
        } else {
            (scale.mean, scale.deviation)
        };
        let scaled = ((raw[element] - mean) / deviation).clamp(-10.0, 10.0);
        assert!((scaled - normalised[element]).abs() < 1e-4, "element {element}");
    }
}
