//! Properties of every host of the engine, and known facts of those of the literature.

use tch::{Kind, Reduction, Tensor};

use crate::fixtures::largest;
use crate::host::{self, Host, HostDesign};
use crate::network::HostRegistry;
use crate::nn::Mode;
use crate::random::{Domain, RunRng};
use crate::scenario::{CnnSpec, HostChoice, HostName, HostNorm, KnownHosts, ResnetSpec, Shortcut, VggSpec};
use crate::torch::fixtures::{on_device, test_backend};
use crate::torch::{NoGrad, copy_into, is_channels_last};

pub(super) fn build(design: &dyn HostDesign) -> Box<dyn Host> {
    let mut rng = RunRng::new(3, Domain::HostInit, &[0]);
    host::build(design, 10, &mut rng, test_backend()).unwrap()
}

pub(super) fn images(batch: i64, host: &dyn HostDesign) -> Tensor {
    let input = host.plan(10).input();
    crate::fixtures::images(batch, input.channels, input.side)
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
    let cnn = |base_channels, kernel_size, pool_layers, norm| {
        Box::new(CnnSpec {
            base_channels,
            kernel_size,
            pool_layers,
            input_hw: 8,
            norm,
            ..CnnSpec::default()
        })
    };
    let vgg = VggSpec {
        base_channels: 4,
        blocks: vec![1, 2],
        input_hw: 8,
        ..VggSpec::default()
    };
    use HostNorm::{Batch, Group};
    use Shortcut::{Pad, Projection};
    vec![
        ("padded", resnet(Pad, false, Batch)),
        ("projected", resnet(Projection, false, Batch)),
        ("padded, pre-activated", resnet(Pad, true, Batch)),
        ("projected, pre-activated", resnet(Projection, true, Batch)),
        ("projected, group norm", resnet(Projection, false, Group)),
        ("CNN", cnn(8, 3, 3, Batch)),
        ("CNN of 1x1 kernels without pools", cnn(2, 1, 0, Batch)),
        ("CNN with group norm", cnn(16, 3, 3, Group)),
        ("VGG", Box::new(vgg)),
    ]
}

/// The counts of the papers' networks with ten classes. A step on each of two batches, with plain gradient descent.
#[test]
#[ignore = "long tier"]
fn networks_of_the_literature_have_their_parameters_and_learn_with_all_of_them() {
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
        let choice = HostChoice::Named(HostName(name.into()));
        let outline = hosts.outline(&choice, 10, None).unwrap();
        assert_eq!((outline.parameters, outline.problems), (count, vec![]), "{name}");
        let design = &*hosts.of(&choice, None).unwrap();
        let host = build(design);
        assert_eq!(host.params().count(), count, "{name}");
        // Deeper and wider ones are made of the same blocks.
        let batches = if matches!(name, "resnet32" | "resnet56" | "resnet18") {
            0
        } else {
            2
        };
        for _ in 0..batches {
            let (x, labels) = (images(4, design), on_device(Tensor::from_slice(&[0_i64, 3, 5, 9])));
            let logits = host.run(0..host.num_ops(), &x, Mode::Train).unwrap();
            let loss = logits.cross_entropy_loss::<&Tensor>(&labels, None, Reduction::Mean, -100, 0.0);
            assert!(f64::try_from(&loss).unwrap().is_finite(), "{name}");
            loss.backward();
            for param in host.params().trainable() {
                let mut grad = param.tensor.grad();
                assert!(grad.defined(), "{} of {name}", param.name);
                // A bias in front of a norm learns nothing that is not rounding.
                let learns = param.name.ends_with("conv.bias") || largest(&grad) > 0.0;
                assert!(learns, "{} of {name}", param.name);
                let _no_grad = NoGrad::new();
                let mut value = param.tensor.shallow_clone();
                let _ = value.f_sub_(&(&grad * 0.01)).unwrap();
                let _ = grad.zero_();
            }
        }
    }
}

/// And slots tell the channels and the size of the features there.
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
                let (_, channels, height, width) = features.size4().unwrap();
                let positions = host.op_costs()[op].positions;
                assert_eq!(positions, (height * width) as u64, "op {op} of {name}");
                for place in host.injection_specs().iter().filter(|place| place.boundary == op + 1) {
                    assert_eq!(place.channels, channels, "{} of {name}", place.slot);
                }
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
pub(super) struct Parts<'a>(pub &'a dyn Host);

impl Parts<'_> {
    pub fn tensor(&self, name: &str) -> Tensor {
        let found = self.0.params().all().find(|param| param.name == name);
        found.unwrap_or_else(|| panic!("no {name}")).tensor.contiguous()
    }

    pub fn conv(&self, x: &Tensor, name: &str, stride: i64) -> Tensor {
        let weight = self.tensor(name);
        let padding = weight.size()[2] / 2;
        x.contiguous().conv2d(&weight, None::<&Tensor>, stride, padding, 1, 1)
    }

    /// Batch norm of `x` by its own statistics.
    pub fn norm(&self, x: &Tensor, name: &str) -> Tensor {
        let mean_of = |of: &Tensor| of.mean_dim([0_i64, 2, 3].as_slice(), true, Kind::Float);
        let mean = mean_of(x);
        let variance = mean_of(&(x - &mean).square());
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

        let entry = match pre_activated {
            true => parts.norm(&x.contiguous(), &of("entry")).relu(),
            false => x.contiguous(),
        };
        let first = parts.conv(&entry, &of("first.conv.weight"), 2);
        let inner = parts.norm(&first, &of("first.norm")).relu();
        let outer = parts.conv(&inner, &of("second.conv.weight"), 1);
        let around = if name.starts_with("padded") {
            let kept = x.slice(2, None, None, 2).slice(3, None, None, 2).contiguous();
            Tensor::cat(&[&kept, &kept.zeros_like()], 1)
        } else {
            parts.conv(&entry, &of("shortcut.conv.weight"), 2)
        };
        let normed = || parts.norm(&outer, &of("second.norm"));
        let expected = match (pre_activated, name.starts_with("padded")) {
            (true, _) => &outer + around,
            (false, true) => (normed() + around).relu(),
            (false, false) => (normed() + parts.norm(&around, &of("shortcut.norm"))).relu(),
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
    let (all, trainable) = (host.params().all().count(), host.params().trainable().len());
    assert_eq!(all, trainable, "no buffers");
    let norm = HostNorm::Batch;
    let batch = build(&CnnSpec { norm, ..spec });
    assert_eq!(host.params().count(), batch.params().count());
}

#[test]
fn stages_and_pools_that_cannot_be_are_named() {
    let hosts = HostRegistry::default();
    let stages = |count| ResnetSpec {
        blocks: vec![1; count],
        ..ResnetSpec::default()
    };
    let vgg = VggSpec {
        input_hw: 16,
        ..VggSpec::default()
    };

    for (choice, problem) in [
        (HostChoice::Resnet(stages(0)), "0 stages; valid: 1 to 8"),
        (HostChoice::Resnet(stages(9)), "9 stages; valid: 1 to 8"),
        (
            HostChoice::Vgg(vgg),
            "5 pools shrink 16x16 pixels to nothing; at most 4 fit",
        ),
    ] {
        let problems = hosts.outline(&choice, 10, None).unwrap().problems;
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, [format!("blocks: {problem}")]);
    }
}

/// A scenario's single values are checked elsewhere. Here any must work.
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
    let deep = HostChoice::Resnet(ResnetSpec {
        base_channels: i64::MAX,
        blocks: vec![usize::MAX; 20],
        ..ResnetSpec::default()
    });
    for choice in [absurd, deep] {
        assert!(!hosts.outline(&choice, 10, None).unwrap().problems.is_empty());
    }
}
