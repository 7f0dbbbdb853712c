//! Named tasks and presets of other settings.

use serde::Serialize;

use super::host::{CnnSpec, HostChoice, HostName, HostNorm, TransformerSpec};
use super::task::{
    AugmentSpec, BYTE_VOCABULARY, BatchesPerStep, DataSource, Normalise, SplitSpec, SynthImages, SynthTokens, TaskSpec,
    TextFile, TokenFiles, ValBatches,
};
use crate::growth::SlotId;
use crate::scenario::OptimizerConfig;
use crate::schema::{Kind, Names};

/// A task and the question that it asks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskPreset {
    #[serde(flatten)]
    /// The task.
    pub spec: TaskSpec,
    /// What it asks of growth, in one line.
    pub question: String,
}

/// Run-level values between the defaults and a scenario's own, as RON.
pub struct TrainingPreset {
    /// As a scenario writes it.
    pub name: &'static str,
    /// A scenario that sets nothing but the preset's values.
    pub ron: &'static str,
}

/// The task for images of the user's own.
pub(super) const OWN_IMAGES: &str = "images";

/// Long runs with the choices from before the proof: one seed at a time, gates that ask for ten steps and healthy gradients, every
/// operation and amplitude, a wide network that begins without preferences and reads each rollout four times.
macro_rules! historical {
    ($learner:literal) => {
        concat!(
            "(
                run: (rounds: 200, max_steps: 150),
                training: (amp: auto),
                lifecycle: (
                    gates: (min_training_epochs: 10, min_gradient_health: 0.7), exploding_factor: 10.0, max_holding_epochs: None,
                ),
                policy: (
                    net_cfg: (
                        feature_dim: 512, hidden_dim: 512, head_conditioning: per_op, op_bias: (prune: 0.0, fossilize: 0.0),
                    ),
                    floor: (op: 0.05),
                    masks: (sequential_germination: true, action_space: (allowed_ops: None, alpha_target: None)),
                ),
                learner: (episode_end: truncated, epochs: 4, target_kl: 0.02, value_norm: (momentum: 0.95), ",
            $learner,
            "),
            )"
        )
    };
}

/// Choices of the field `preset`.
pub static TRAINING_PRESETS: [TrainingPreset; 4] = [
    TrainingPreset {
        name: "digits",
        ron: "(run: (rounds: 40, n_envs: 8, max_steps: 60), policy: (preset: \"lstm_small\"))",
    },
    TrainingPreset {
        name: "manual",
        ron: "(
            lifecycle: (
                auto_forward: (g1: false, g2: false, g3: false),
                gates: (min_training_epochs: 10, min_gradient_health: 0.7), exploding_factor: 10.0, max_holding_epochs: None,
            ),
            policy: (masks: (sequential_germination: true, action_space: (allowed_ops: None, alpha_target: None))),
        )",
    },
    TrainingPreset {
        name: "cifar_annealed",
        ron: historical!(
            "lr: 3e-4, gae_lambda: 0.95, value_coef: 0.25, entropy_coef: 0.15, entropy_coef_end: 0.08,
             entropy_anneal_episodes: 3000,
             entropy_head_mult: (op: 3.0, slot: 1.5, blueprint: 2.5, style: 1.5, tempo: 2.5, alpha_target: 1.5,
                                 alpha_speed: 1.2, alpha_curve: 1.2),"
        ),
    },
    TrainingPreset {
        name: "cifar_steady",
        ron: historical!(
            "lr: 1e-3, value_coef: 0.5, entropy_coef: 0.05, entropy_coef_end: 0.03, entropy_anneal_episodes: 1000,"
        ),
    },
];

/// Settings of the learned controller.
pub static POLICY_PRESETS: [TrainingPreset; 1] = [TrainingPreset {
    name: "lstm_small",
    ron: "(policy: (net: \"lstm\", net_cfg: (feature_dim: 128, hidden_dim: 128)))",
}];

/// The preset of that name, in either case.
pub fn preset_named(presets: &'static [TrainingPreset], name: &str) -> Option<&'static TrainingPreset> {
    presets.iter().find(|preset| preset.name.eq_ignore_ascii_case(name))
}

/// Names of [`TRAINING_PRESETS`].
pub(super) const TRAINING_PRESET: Kind = Kind::Text(Names::Members {
    noun: "training preset",
    list: || names(&TRAINING_PRESETS),
});

/// Names of [`POLICY_PRESETS`].
pub(super) const POLICY_PRESET: Kind = Kind::Text(Names::Members {
    noun: "policy preset",
    list: || names(&POLICY_PRESETS),
});

fn names(presets: &[TrainingPreset]) -> Vec<String> {
    presets.iter().map(|preset| preset.name.into()).collect()
}

/// All built-in tasks, in the order in which they are listed.
pub fn task_presets() -> Vec<TaskPreset> {
    let made = [
        (
            "augment a capable host: little headroom",
            TaskSpec {
                augment: Some(crops(1, 0.0)),
                success_accuracy: 96.0,
                ..digits("digits_baseline", cnn(1, 4, 3, 3, 3, 8))
            },
        ),
        (
            "rescue a host with 1x1 kernels and a one-channel bottleneck",
            digits("digits_impaired", cnn(1, 1, 3, 1, 3, 8)),
        ),
        (
            "seeds carry everything: 1x1 kernels, no pooling",
            digits("digits_minimal", cnn(1, 2, 3, 1, 0, 8)),
        ),
        (
            "augment a capable host, any amount of data",
            synth_images("synth_baseline", cnn(3, 8, 3, 3, 3, 32)),
        ),
        (
            "rescue a host that is provably at chance",
            TaskSpec {
                success_accuracy: 45.0,
                ..synth_images("synth_impaired", cnn(3, 2, 3, 1, 3, 32))
            },
        ),
        (
            "scaling and benchmarks: five blocks, five slots",
            synth_images("synth_scale", cnn(3, 8, 5, 3, 5, 32)),
        ),
        (
            "a residual network: is there a use for seeds between its stages?",
            synth_images_named("synth_resnet20", "resnet20", &[(0, 2), (1, 2), (2, 2)]),
        ),
        (
            "a deeper residual network",
            synth_images_named("synth_resnet56", "resnet56", &[(0, 8), (1, 8), (2, 8)]),
        ),
        (
            "a wide residual network of eleven million parameters",
            synth_images_named("synth_resnet18", "resnet18", &[(0, 1), (1, 1), (2, 1), (3, 1)]),
        ),
        (
            "a pre-activated residual network",
            synth_images_named("synth_wrn28_1", "wrn28_1", &[(0, 3), (1, 3), (2, 3)]),
        ),
        (
            "a network without shortcuts, seeds before its pools",
            synth_images_named("synth_vgg11", "vgg11", &[(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)]),
        ),
        (
            "a small language model: topics, successors and copies to be found",
            synth_tokens(),
        ),
        (
            "images of your own: set data: image_folder(path: \"..\"), or begin with `simic-engine init`",
            own_images(),
        ),
        (
            "a language model of the bytes of a text file: set data: text((path: \"..\"))",
            bytes_lm(),
        ),
        (
            "a language model of thirty million parameters on children's stories, as tokens of GPT-2",
            tinystories(),
        ),
    ];
    let made = made.map(|(question, spec)| TaskPreset {
        spec,
        question: question.into(),
    });
    made.into_iter().chain(ON_DISK.iter().map(on_disk)).collect()
}

/// A task on data that the user brings: what tells it from the others of its set.
struct OnDisk {
    name: &'static str,
    question: &'static str,
    set: PublishedSet,
    host: OnDiskHost,
    max_seeds: u32,
}

enum OnDiskHost {
    /// With slots in these rows, one for each block: 0 before the pools, 1 behind them.
    Cnn(CnnSpec, &'static [u16]),
    /// With slots by row and column.
    Named(&'static str, &'static [(u16, u16)]),
}

/// Sets that are published as files, with the usual settings of each.
#[derive(Clone, Copy, PartialEq)]
enum PublishedSet {
    Cifar10,
    Cifar100,
    Mnist,
    FashionMnist,
}

#[rustfmt::skip]
const ON_DISK: [OnDisk; 15] = {
    use OnDiskHost::{Cnn, Named};
    use PublishedSet::{Cifar10, Cifar100, FashionMnist, Mnist};
    const fn task(
        name: &'static str, set: PublishedSet, host: OnDiskHost, max_seeds: u32,
        question: &'static str,
    ) -> OnDisk {
        OnDisk { name, question, set, host, max_seeds }
    }
    [
        task("cifar_baseline", Cifar10, Cnn(cnn(3, 8, 3, 3, 3, 32), &[0]), 3, "augment a capable host on photographs"),
        task("cifar_scale", Cifar10, Cnn(cnn(3, 8, 5, 3, 5, 32), &[0]), 3, "depth: five blocks, five slots"),
        task("cifar_impaired", Cifar10, Cnn(cnn(3, 1, 3, 1, 3, 32), &[0]), 3, "rescue a host with 1x1 kernels and a one-channel bottleneck"),
        task("cifar_minimal", Cifar10, Cnn(cnn(3, 2, 3, 1, 0, 32), &[0]), 3, "seeds carry everything: 1x1 kernels, no pooling"),
        task("cifar_multichannel", Cifar10, Cnn(cnn(3, 8, 3, 3, 3, 32), &[0, 1]), 3, "slots before and behind every pool"),
        task("cifar_postpool", Cifar10, Cnn(cnn(3, 16, 3, 3, 3, 32), &[1]), 2, "slots behind the pools alone"),
        task("cifar_highres", Cifar10, Cnn(cnn(3, 16, 3, 3, 3, 32), &[0]), 2, "slots before the pools alone"),
        task("cifar_deep_multichannel", Cifar10, Cnn(cnn(3, 8, 5, 3, 5, 32), &[0, 1]), 6, "coordination over ten slots"),
        task("cifar_deep_impaired", Cifar10, Cnn(cnn(3, 2, 5, 1, 5, 32), &[0, 1]), 6, "rescue a deep host over ten slots"),
        task("cifar_resnet20", Cifar10, Named("resnet20", &[(0, 2), (1, 2), (2, 2)]), 3, "is there a use for seeds between the stages of a residual network?"),
        task("cifar_resnet56", Cifar10, Named("resnet56", &[(0, 8), (1, 8), (2, 8)]), 3, "the same of a deep one"),
        task("cifar_resnet18", Cifar10, Named("resnet18", &[(0, 1), (1, 1), (2, 1), (3, 1)]), 3, "the same of one of eleven million parameters"),
        task("cifar100_baseline", Cifar100, Cnn(cnn(3, 16, 3, 3, 3, 32), &[0]), 3, "augment a capable host on photographs of 100 classes"),
        task("mnist_baseline", Mnist, Cnn(cnn(1, 8, 3, 3, 3, 28), &[0]), 3, "augment a capable host on large handwritten digits"),
        task("fashion_baseline", FashionMnist, Cnn(cnn(1, 8, 3, 3, 3, 28), &[0]), 3, "augment a capable host on pictures of clothes"),
    ]
};

/// A twentieth of the training files is for validation, the test files stay for the test, and pixels are normalised by what
/// the training part measures. Paths are those of the published archive, or of a folder for the published files.
fn on_disk(preset: &OnDisk) -> TaskPreset {
    let set = preset.set;
    let folder = |path: &str| DataSource::IdxFolder {
        path: path.into(),
        scale: 255.0,
    };
    let data = match set {
        PublishedSet::Cifar10 => DataSource::Cifar10 {
            path: "cifar-10-binary.tar.gz".into(),
        },
        PublishedSet::Cifar100 => DataSource::Cifar100 {
            path: "cifar-100-binary.tar.gz".into(),
        },
        PublishedSet::Mnist => folder("mnist"),
        PublishedSet::FashionMnist => folder("fashion-mnist"),
    };
    let (host, slots): (_, Vec<SlotId>) = match &preset.host {
        OnDiskHost::Cnn(spec, rows) => {
            let in_row = |&row: &u16| (0..spec.n_blocks).map(move |block| SlotId::new(row, block as u16));
            (HostChoice::Cnn(spec.clone()), rows.iter().flat_map(in_row).collect())
        }
        OnDiskHost::Named(name, slots) => (
            HostChoice::Named(HostName((*name).into())),
            slots.iter().map(|&(row, col)| SlotId::new(row, col)).collect(),
        ),
    };
    let are_photographs = matches!(set, PublishedSet::Cifar10 | PublishedSet::Cifar100);
    TaskPreset {
        spec: TaskSpec {
            classes: if set == PublishedSet::Cifar100 { 100 } else { 10 },
            split: SplitSpec {
                seed: 0,
                val_permille: 50,
                test_permille: 0,
            },
            normalise: Normalise::Auto,
            // A mirrored digit is another one, and shoes point to one side.
            augment: Some(if are_photographs { crops(4, 0.5) } else { crops(2, 0.0) }),
            max_seeds: preset.max_seeds,
            batch_size: if are_photographs { 512 } else { 256 },
            batches_per_step: BatchesPerStep::Full,
            max_steps: if are_photographs { 150 } else { 100 },
            success_accuracy: match set {
                PublishedSet::Cifar10 => 80.0,
                PublishedSet::Cifar100 => 50.0,
                PublishedSet::Mnist => 99.0,
                PublishedSet::FashionMnist => 90.0,
            },
            ..image_task(preset.name, data, 1, host, slots)
        },
        question: preset.question.into(),
    }
}

const fn cnn(
    in_channels: i64,
    base_channels: i64,
    n_blocks: usize,
    kernel_size: i64,
    pool_layers: usize,
    input_hw: i64,
) -> CnnSpec {
    CnnSpec {
        in_channels,
        base_channels,
        n_blocks,
        kernel_size,
        pool_layers,
        input_hw,
        norm: HostNorm::Batch,
    }
}

const fn crops(pad: u32, flip_p: f64) -> AugmentSpec {
    AugmentSpec {
        pad,
        flip_p,
        cutout: None,
    }
}

const fn sgd(weight_decay: f64) -> OptimizerConfig {
    OptimizerConfig::Sgd {
        lr: 0.01,
        momentum: 0.9,
        weight_decay,
    }
}

/// What all image tasks share, for images of so many channels.
fn image_task(name: &str, data: DataSource, channels: usize, host: HostChoice, slots: Vec<SlotId>) -> TaskSpec {
    TaskSpec {
        name: name.into(),
        classes: 10,
        data,
        split: SplitSpec {
            seed: 0,
            val_permille: 200,
            test_permille: 100,
        },
        normalise: Normalise::Constants {
            mean: vec![0.5; channels],
            std: vec![0.25; channels],
        },
        augment: None,
        slots,
        host,
        max_seeds: 3,
        batch_size: 128,
        batches_per_step: BatchesPerStep::Count(24),
        val_batch_size: None,
        val_batches_per_step: ValBatches::Full,
        max_steps: 60,
        host_opt: sgd(5e-4),
        seed_opt: sgd(0.0),
        max_grad_norm: Some(1.0),
        label_smoothing: 0.0,
        success_accuracy: 85.0,
    }
}

fn own_images() -> TaskSpec {
    let data = DataSource::ImageFolder {
        path: String::new(),
        size: None,
    };
    TaskSpec {
        normalise: Normalise::Auto,
        batch_size: 64,
        batches_per_step: BatchesPerStep::Full,
        ..cnn_task(OWN_IMAGES, data, cnn(3, 8, 3, 3, 3, 32))
    }
}

const fn adamw(lr: f64, weight_decay: f64) -> OptimizerConfig {
    OptimizerConfig::Adamw {
        lr,
        beta1: 0.9,
        beta2: 0.95,
        eps: 1e-8,
        weight_decay,
    }
}

/// What all language tasks share. Slots are those behind the host's segments.
fn language_task(name: &str, classes: i64, data: DataSource, host: TransformerSpec) -> TaskSpec {
    let slots = (0..host.segments).map(|segment| SlotId::new(0, segment as u16));
    TaskSpec {
        classes,
        split: SplitSpec {
            seed: 0,
            val_permille: 100,
            test_permille: 50,
        },
        normalise: Normalise::None,
        batches_per_step: BatchesPerStep::Count(64),
        host_opt: adamw(1e-3, 0.1),
        seed_opt: adamw(1e-3, 0.0),
        ..image_task(name, data, 0, HostChoice::Transformer(host.clone()), slots.collect())
    }
}

fn synth_tokens() -> TaskSpec {
    let data = DataSource::SynthTokens(SynthTokens::default());
    TaskSpec {
        batch_size: 64,
        success_accuracy: 45.0,
        ..language_task("synth_tokens", 64, data, TransformerSpec::default())
    }
}

fn bytes_lm() -> TaskSpec {
    let data = DataSource::Text(TextFile::default());
    let host = TransformerSpec {
        width: 128,
        block: 128,
        ..TransformerSpec::default()
    };
    TaskSpec {
        batch_size: 32,
        val_batches_per_step: ValBatches::Count(16),
        success_accuracy: 60.0,
        ..language_task("bytes_lm", BYTE_VOCABULARY, data, host)
    }
}

/// Files by the names that llm.c gives them. Validation is a file of its own; without it half a percent of the training file.
fn tinystories() -> TaskSpec {
    let data = TokenFiles {
        train: "tinystories/TinyStories_train.bin".into(),
        val: Some("tinystories/TinyStories_val.bin".into()),
        ..TokenFiles::default()
    };
    let host = TransformerSpec {
        width: 384,
        heads: 6,
        layers: 6,
        block: 256,
        ..TransformerSpec::default()
    };
    TaskSpec {
        split: SplitSpec {
            seed: 0,
            val_permille: 5,
            test_permille: 0,
        },
        batch_size: 32,
        val_batches_per_step: ValBatches::Count(8),
        max_steps: 150,
        host_opt: adamw(3e-4, 0.1),
        seed_opt: adamw(3e-4, 0.0),
        success_accuracy: 50.0,
        ..language_task("tinystories", data.vocab, DataSource::TokenFiles(data), host)
    }
}

/// Slots are those before the pools, one per block.
fn cnn_task(name: &str, data: DataSource, host: CnnSpec) -> TaskSpec {
    let channels = usize::try_from(host.in_channels).unwrap_or_default();
    let slots = (0..host.n_blocks).map(|block| SlotId::new(0, block as u16)).collect();
    image_task(name, data, channels, HostChoice::Cnn(host), slots)
}

fn synth_images(name: &str, host: CnnSpec) -> TaskSpec {
    cnn_task(name, DataSource::SynthImages(SynthImages::default()), host)
}

/// With slots by row and column.
fn synth_images_named(name: &str, host: &str, slots: &[(u16, u16)]) -> TaskSpec {
    let data = SynthImages::default();
    let slots = slots.iter().map(|&(row, col)| SlotId::new(row, col)).collect();
    let host = HostChoice::Named(HostName(host.into()));
    image_task(name, DataSource::SynthImages(data.clone()), data.channels, host, slots)
}

fn digits(name: &str, host: CnnSpec) -> TaskSpec {
    TaskSpec {
        normalise: Normalise::Constants {
            mean: vec![0.305],
            std: vec![0.376],
        },
        batch_size: 64,
        batches_per_step: BatchesPerStep::Full,
        max_steps: 100,
        success_accuracy: 80.0,
        ..cnn_task(name, DataSource::Digits, host)
    }
}

#[cfg(test)]
mod tests;
