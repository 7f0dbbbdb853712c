//! What holds for every host of the engine, and what is known of those of the literature.

use tch::{Device, Kind, Reduction, Tensor};

use crate::fixtures::largest;
use crate::host::{self, Host, HostDesign};
use crate::network::HostRegistry;
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::scenario::{CnnSpec, HostChoice, HostName, HostNorm, KnownHosts, ResnetSpec, Shortcut, VggSpec};
use crate::torch::{Backend, NoGrad, copy_into, is_channels_last};

fn build(design: &dyn HostDesign) -> Box<dyn Host> {
    host::build(design, 10, &mut RunRng::new(3, Domain::HostInit, &[0]), Backend::CPU).unwrap()
}

fn images(batch: i64, host: &dyn HostDesign) -> Tensor {
    let input = host.plan(10).input();
    let nhwc = Tensor::randn(
        [batch, input.side, input.side, input.channels],
        (Kind::Float, Device::Cpu),
    );
    nhwc.permute([0, 3, 1, 2])
}

fn named(name: &str) -> HostChoice {
    HostChoice::Named(HostName(name.into()))
}

/// Every kind of block, small.
fn small_hosts() -> Vec<(&'static str, Box<dyn HostDesign>)> {
    let resnet = |shortcut, pre_activation, norm| {
        Box::new(ResnetSpec {
            base_channels: 8,
            blocks: vec![1, 2],
            input_hw: 9,
            shortcut,
            pre_activation,
            norm,
            ..ResnetSpec::default()
        })
    };
    let grouped = CnnSpec {
        base_channels: 16,
        input_hw: 8,
        norm: HostNorm::Group,
        ..CnnSpec::default()
    };
    let vgg = VggSpec {
        base_channels: 4,
        blocks: vec![1, 2],
        input_hw: 8,
        ..VggSpec::default()
    };
    vec![
        ("padded", resnet(Shortcut::Pad, false, HostNorm::Batch)),
        ("projected", resnet(Shortcut::Projection, false, HostNorm::Batch)),
        ("padded, pre-activated", resnet(Shortcut::Pad, true, HostNorm::Batch)),
        (
            "projected, pre-activated",
            resnet(Shortcut::Projection, true, HostNorm::Batch),
        ),
        (
            "projected, group norm",
            resnet(Shortcut::Projection, false, HostNorm::Group),
        ),
        ("CNN with group norm", Box::new(grouped)),
        ("VGG", Box::new(vgg)),
    ]
}

/// The counts of the papers' networks with ten classes.
#[test]
fn networks_of_the_literature_have_their_parameters() {
    let table = [
        ("resnet20", 269_722),
        ("resnet20_projected", 272_474),
        ("resnet32", 464_154),
        ("resnet56", 853_018),
        ("resnet18", 11_173_962),
        ("vgg11", 9_231_114),
        ("wrn28_1", 369_498),
    ];
    let hosts = HostRegistry::default();
    let names: Vec<String> = hosts.entries().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), table.len(), "{names:?}");
    for (name, count) in table {
        let choice = named(name);
        let outline = hosts.outline(&choice, 10, None).unwrap();
        assert_eq!(outline.parameters, count, "{name}");
        assert_eq!(outline.problems, [], "{name}");
        let built = build(&*hosts.of(&choice, None).unwrap());
        assert_eq!(built.params().count(), count, "{name}");
    }
}

/// A step on each of two batches, with plain gradient descent.
#[test]
fn networks_of_the_literature_learn_with_all_their_parameters() {
    let hosts = HostRegistry::default();
    for entry in hosts.entries() {
        let choice = named(&entry.name);
        let design = &*hosts.of(&choice, None).unwrap();
        let host = build(design);
        for _ in 0..2 {
            let (x, labels) = (images(4, design), Tensor::from_slice(&[0_i64, 3, 5, 9]));
            let logits = host.run(0..host.num_ops(), &x, Mode::Train).unwrap();
            let loss = logits.cross_entropy_loss::<&Tensor>(&labels, None, Reduction::Mean, -100, 0.0);
            assert!(f64::try_from(&loss).unwrap().is_finite(), "{}", entry.name);
            loss.backward();
            for param in host.params().trainable() {
                let mut grad = param.tensor.grad();
                assert!(grad.defined(), "{} of {}", param.name, entry.name);
                // A bias in front of a norm learns nothing that is not rounding.
                let learns = param.name.ends_with("conv.bias") || largest(&grad) > 0.0;
                assert!(learns, "{} of {}", param.name, entry.name);
                let _no_grad = NoGrad::new();
                let mut value = param.tensor.shallow_clone();
                let _ = value.f_sub_(&(&grad * 0.01)).unwrap();
                let _ = grad.zero_();
            }
        }
    }
}

#[test]
fn every_op_keeps_channels_last_and_a_line_can_be_split_anywhere() {
    for (name, design) in small_hosts() {
        let host = build(&*design);
        let x = images(4, &*design);
        for mode in [Mode::Train, Mode::Eval] {
            let mut features = x.shallow_clone();
            for op in 0..host.num_ops() - 1 {
                features = host.run(op..op + 1, &features, mode).unwrap();
                assert!(is_channels_last(&features), "op {op} of {name} in {mode:?}");
            }
        }
        let whole = host.run(0..host.num_ops(), &x, Mode::Eval).unwrap();
        for split in 0..=host.num_ops() {
            let front = host.run(0..split, &x, Mode::Eval).unwrap();
            let logits = host.run(split..host.num_ops(), &front, Mode::Eval).unwrap();
            assert!(logits.equal(&whole), "{name} split at {split}");
        }
    }
}

#[test]
fn slots_tell_the_channels_and_the_size_of_the_features_there() {
    for (name, design) in small_hosts() {
        let host = build(&*design);
        let x = images(2, &*design);
        for place in host.injection_specs() {
            let features = host.run(0..place.boundary, &x, Mode::Eval).unwrap();
            let (_, channels, height, width) = features.size4().unwrap();
            assert_eq!(channels, place.channels, "{} of {name}", place.slot);
            let positions = host.op_costs()[place.boundary - 1].positions;
            assert_eq!(positions, (height * width) as u64, "{} of {name}", place.slot);
        }
    }
}

#[test]
fn folding_changes_no_more_than_rounding_and_follows_training() {
    for (name, design) in small_hosts() {
        let mut host = build(&*design);
        let x = images(8, &*design);
        for _ in 0..5 {
            let _ = host.run(0..host.num_ops(), &(&x * 3.0), Mode::Train).unwrap();
        }
        host.refill().unwrap();

        let _no_grad = NoGrad::new();
        let (mut plain, mut quick) = (x.shallow_clone(), x.shallow_clone());
        for op in 0..host.num_ops() {
            plain = host.run(op..op + 1, &plain, Mode::Eval).unwrap();
            quick = host.evaluate(op..op + 1, &quick).unwrap();
            assert!(largest(&(&plain - &quick)) < 1e-4, "op {op} of {name}");
        }
        let logits = host.evaluate(0..host.num_ops(), &x).unwrap();
        assert!(largest(&(logits - plain)) < 1e-4, "{name}");
    }
}

/// Weights of the parts of a block, from the host's own parameters.
struct Parts<'a>(&'a dyn Host);

impl Parts<'_> {
    fn tensor(&self, name: &str) -> Tensor {
        let found = self.0.params().all().find(|param| param.name == name);
        found.unwrap_or_else(|| panic!("no {name}")).tensor.contiguous()
    }

    fn conv(&self, x: &Tensor, name: &str, stride: i64) -> Tensor {
        let weight = self.tensor(name);
        let padding = weight.size()[2] / 2;
        x.contiguous().conv2d(&weight, None::<&Tensor>, stride, padding, 1, 1)
    }

    /// Batch norm of `x` by its own statistics.
    fn norm(&self, x: &Tensor, name: &str) -> Tensor {
        let over = [0_i64, 2, 3];
        let mean = x.mean_dim(over.as_slice(), true, Kind::Float);
        let variance = (x - &mean).square().mean_dim(over.as_slice(), true, Kind::Float);
        let per_channel = |part: &str| self.tensor(&format!("{name}.{part}")).view([1, -1, 1, 1]);
        (x - &mean) / (variance + 1e-5).sqrt() * per_channel("weight") + per_channel("bias")
    }
}

/// Scales and shifts of norms away from 1 and 0, where they hide mistakes.
fn perturb_norms(host: &dyn Host) {
    let _no_grad = NoGrad::new();
    for param in host.params().trainable().iter().filter(|param| param.tensor.dim() == 1) {
        let value = &param.tensor + Tensor::randn_like(&param.tensor) * 0.3;
        copy_into(&param.tensor, &value, false).unwrap();
    }
}

#[test]
fn residual_blocks_compute_the_papers_formulas() {
    for (name, design) in small_hosts().into_iter().take(4) {
        let host = build(&*design);
        perturb_norms(&*host);
        let parts = Parts(&*host);
        let block = "stage1.block0";
        let of = |part: &str| format!("{block}.{part}");
        let x = host.run(0..2, &images(6, &*design), Mode::Eval).unwrap();
        let pre_activated = name.contains("pre-activated");

        let entry = if pre_activated {
            parts.norm(&x.contiguous(), &of("entry")).relu()
        } else {
            x.contiguous()
        };
        let inner = parts
            .norm(&parts.conv(&entry, &of("first.conv.weight"), 2), &of("first.norm"))
            .relu();
        let outer = parts.conv(&inner, &of("second.conv.weight"), 1);
        let around = if name.starts_with("padded") {
            let kept = x.slice(2, None, None, 2).slice(3, None, None, 2).contiguous();
            Tensor::cat(&[&kept, &kept.zeros_like()], 1)
        } else {
            parts.conv(&entry, &of("shortcut.conv.weight"), 2)
        };
        let expected = match (pre_activated, name.starts_with("padded")) {
            (true, _) => outer + around,
            (false, true) => (parts.norm(&outer, &of("second.norm")) + around).relu(),
            (false, false) => {
                (parts.norm(&outer, &of("second.norm")) + parts.norm(&around, &of("shortcut.norm"))).relu()
            }
        };

        let features = host.run(2..3, &x, Mode::Train).unwrap();
        assert_eq!(features.size(), [6, 16, 5, 5], "{name}");
        assert!(largest(&(features - expected)) < 1e-4, "{name}");
    }
}

/// Running statistics are what makes a contribution depend on how a network was trained; group norm has none.
#[test]
fn group_norm_computes_the_same_in_training_and_evaluation() {
    let spec = CnnSpec {
        base_channels: 16,
        norm: HostNorm::Group,
        ..CnnSpec::default()
    };
    let host = build(&spec);
    let x = images(4, &spec);

    let trained = host.run(0..host.num_ops(), &x, Mode::Train).unwrap();
    let evaluated = host.run(0..host.num_ops(), &x, Mode::Eval).unwrap();

    assert!(largest(&(trained - evaluated)) < 1e-5);
    assert_eq!(
        host.params().all().count(),
        host.params().trainable().len(),
        "no buffers"
    );
    let batch = CnnSpec {
        norm: HostNorm::Batch,
        ..spec.clone()
    };
    assert_eq!(host.params().count(), build(&batch).params().count());
}

#[test]
fn stages_and_pools_that_cannot_be_are_named() {
    let hosts = HostRegistry::default();
    let problems = |choice: HostChoice| {
        let outline = hosts.outline(&choice, 10, None).unwrap();
        outline.problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let stages = |blocks| {
        HostChoice::Resnet(ResnetSpec {
            blocks,
            ..ResnetSpec::default()
        })
    };
    let vgg = VggSpec {
        input_hw: 16,
        ..VggSpec::default()
    };

    assert_eq!(problems(stages(vec![])), ["blocks: 0 stages; valid: 1 to 8"]);
    assert_eq!(problems(stages(vec![1; 9])), ["blocks: 9 stages; valid: 1 to 8"]);
    assert_eq!(
        problems(HostChoice::Vgg(vgg)),
        ["blocks: 5 pools shrink 16x16 pixels to nothing; at most 4 fit"]
    );
}

/// A scenario's single values are checked elsewhere; here any must do.
#[test]
fn absurd_values_still_have_an_outline() {
    let hosts = HostRegistry::default();
    let absurd = HostChoice::Cnn(CnnSpec {
        in_channels: i64::MAX,
        base_channels: i64::MAX,
        n_blocks: usize::MAX,
        kernel_size: i64::MIN,
        pool_layers: usize::MAX,
        input_hw: -1,
        norm: HostNorm::Batch,
    });
    assert!(!hosts.outline(&absurd, 10, None).unwrap().problems.is_empty());
    let deep = HostChoice::Resnet(ResnetSpec {
        base_channels: i64::MAX,
        blocks: vec![usize::MAX; 20],
        ..ResnetSpec::default()
    });
    assert!(!hosts.outline(&deep, 10, None).unwrap().problems.is_empty());
}
