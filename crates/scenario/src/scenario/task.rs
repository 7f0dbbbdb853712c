//! Section `task`: what an env trains on.

use serde::{Deserialize, Serialize};

use super::host::HostChoice;
use crate::growth::SlotId;
use crate::scenario::OptimizerConfig;
use crate::schema::{Content, Described, Field, Kind, Settings, Variant, choice, overlay, range, record, section};

/// `preset("digits_impaired", (batch_size: 64))` or `custom((..))`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskChoice {
    /// The name of a known task, and changes to its fields.
    Preset(String, Box<TaskOverrides>),
    /// A task written out in full.
    Custom(Box<TaskSpec>),
}

impl Default for TaskChoice {
    fn default() -> Self {
        Self::Preset("digits_impaired".into(), Box::default())
    }
}

/// Written by hand because the name of the task is an item with its own path, `task.preset`.
impl Described for TaskChoice {
    const KIND: Kind = Kind::Choice(&[
        Variant {
            name: "preset",
            doc: "a known task, with changes to its fields",
            content: Content::Items(&[
                Field {
                    name: "preset",
                    doc: "Name of a task; `simic-engine list tasks` shows all.",
                    has_default: true,
                    ..Field::unnamed(range::TASK)
                },
                Field::unnamed(TaskOverrides::KIND),
            ]),
        },
        Variant {
            name: "custom",
            doc: "a task written out in full",
            content: Content::Items(&[Field::unnamed(TaskSpec::KIND)]),
        },
    ]);
}

overlay! {
    /// The fields of a known task that a scenario may change.
    pub struct TaskOverrides of TaskSpec {
        classes: i64;
        split: SplitSpec;
        normalise: Normalise;
        slots: Vec<SlotId>;
        max_seeds: u32;
        success_accuracy: f64;
        batch_size: usize;
        batches_per_step: BatchesPerStep;
        /// Samples per validation batch. None: the task's.
        val_batch_size: usize;
        val_batches_per_step: ValBatches;
        max_steps: u32;
        host_opt: OptimizerConfig;
        seed_opt: OptimizerConfig;
        /// L2 norm to which the gradients of the host and each seed are clipped, separately. None: the task's.
        max_grad_norm: f64;
        label_smoothing: f64;
        /// Random crop, flip and cutout of training samples. None: the task's.
        augment: AugmentSpec;
        data: DataSource;
        host: HostChoice;
        /// Weights that episodes start from. None: the task's.
        weights: HostWeights;
        freeze: Vec<String>;
    }
}

record! {
    /// A task in full: plain data, no code.
    pub struct TaskSpec {
        /// Name of the task in reports.
        name: String, RUN_NAME;
        /// Number of classes, or of tokens in the vocabulary. It must match the data.
        classes: i64, integer(2, 65536);
        /// Source of the samples.
        data: DataSource;
        /// Stratified split into training, validation and test parts. From a text, the last windows are split off. Procedural
        /// data has its own split.
        split: SplitSpec;
        /// Normalisation of each channel: (pixel/scale - mean)/std.
        normalise: Normalise;
        /// Random crop, flip and cutout of training samples.
        augment: Option<AugmentSpec>;
        /// The host network.
        host: HostChoice;
        /// Weights that episodes start from. None: the host's, which are drawn at random unless it is a grown network.
        weights: Option<HostWeights>;
        /// Names of layers of the host that aren't trained. `stage1` stands for all layers whose names begin with `stage1.`,
        /// `all` for every layer. Their running statistics stay fixed too. `stem.conv` freezes only tensors of a layer,
        /// `statistics` only the statistics of all layers. None: all layers are trained.
        freeze: Option<Vec<String>>;
        /// Slots that may grow, unless lifecycle.slots says otherwise.
        slots: Vec<SlotId>;
        /// Largest number of seeds at a time, unless lifecycle.max_seeds says otherwise; 0: no limit.
        max_seeds: u32;
        /// Samples (images, or texts of one block) per training batch; at most the size of the training part.
        batch_size: usize, at_least(1);
        /// Training batches per env and step.
        batches_per_step: BatchesPerStep;
        /// Samples per validation batch. None: four times batch_size.
        val_batch_size: Option<usize>, at_least(1);
        /// Validation batches per step.
        val_batches_per_step: ValBatches;
        /// Steps of an episode, unless run.max_steps says otherwise.
        max_steps: u32, at_least(1);
        /// Optimizer of the host.
        host_opt: OptimizerConfig;
        /// Optimizer of each seed.
        seed_opt: OptimizerConfig;
        /// L2 norm to which the gradients of the host and each seed are clipped, separately. None: no clipping.
        max_grad_norm: Option<f64>, POSITIVE;
        /// Label smoothing of the training loss.
        label_smoothing: f64, BELOW_ONE;
        /// Smallest final accuracy of a successful episode.
        #[unit = "percent"]
        success_accuracy: f64, PERCENT;
    }
}

record! {
    /// Given weights of a host.
    #[derive(Eq)]
    pub struct HostWeights {
        /// Path of the safetensors file, looked up like data.
        path: String;
        /// Number of envs, from the first on, that start from these weights. None: all.
        envs: Option<usize>, at_least(1);
    }
}

choice! {
    /// Source of the samples.
    pub enum DataSource {
        /// 1797 handwritten digits, 8x8, embedded in the program
        Digits,
        /// procedural gratings among distractors
        SynthImages(SynthImages),
        /// CIFAR-10 in its binary version: the published archive, compressed or not, or its folder
        Cifar10 {
            /// Path of the archive or folder.
            path: String;
        },
        /// CIFAR-100 with its fine labels, in its binary version: the published archive, compressed or not, or its folder
        Cifar100 {
            /// Path of the archive or folder.
            path: String;
        },
        /// a pair of IDX files, compressed or not
        Idx {
            /// Path of the IDX image file.
            images: String;
            /// Path of the IDX label file.
            labels: String;
            /// Pixel value that stands for 1.0.
            scale: f64, POSITIVE;
        },
        /// the four published IDX files of MNIST or Fashion-MNIST, compressed or not
        IdxFolder {
            /// Path of the folder.
            path: String;
            /// Pixel value that stands for 1.0.
            scale: f64, POSITIVE;
        },
        /// PNG, JPEG, WebP, BMP and GIF files, one folder per class; train, val and test folders are optional
        ImageFolder {
            /// Path of the folder.
            path: String;
            /// Side to which the central square of each image is scaled. None: the images keep their size if all have the same,
            /// else 32.
            #[unit = "pixels"]
            size: Option<usize>, integer(1, 4096);
        },
        /// a pair of NPY arrays, images and labels
        Npy {
            /// Path of the images, an array of bytes or 32-bit floats.
            images: String;
            /// Path of the labels, an array of integers.
            labels: String;
            /// Order of the dimensions of the images.
            layout: ArrayLayout;
            /// Value that stands for 1.0.
            scale: f64, POSITIVE;
        },
        /// arrays in an NPZ archive: x_train, y_train and the like
        Npz {
            /// Path of the archive.
            path: String;
            /// Order of the dimensions of the images.
            layout: ArrayLayout;
            /// Value that stands for 1.0.
            scale: f64, POSITIVE;
        },
        /// a table of images in a Parquet file
        Parquet(ParquetTable),
        /// images that an application has registered under a name
        Custom {
            /// Name of the data set; `simic-engine list data` shows all.
            name: String, DATA;
            /// Settings that the data set declares.
            settings: Settings;
        },
        /// procedural text: hidden topics, sparse bigrams, copied spans
        SynthTokens(SynthTokens),
        /// a text file, one token per byte
        Text(TextFile),
        /// files of tokens that another program has made from texts
        TokenFiles(TokenFiles),
    }
}

choice! {
    /// Order of the dimensions of arrays of images.
    #[derive(Copy, Eq)]
    pub enum ArrayLayout {
        /// images, rows, columns, channels
        Nhwc,
        /// images, channels, rows, columns
        Nchw,
    }
}

/// Number of tokens of a text file: the bytes, and the one that ends the file.
pub const BYTE_VOCABULARY: i64 = 257;
/// Number of tokens of a procedural text: few enough for a small host to learn the successors of each of them.
pub const SYNTH_VOCABULARY: i64 = 64;

section! {
    /// Parameters of the procedural image generator.
    #[derive(Eq)]
    pub struct SynthImages {
        /// Seed of the generator.
        seed: u64;
        /// Classes: orientations and frequencies of the grating.
        classes: u64 = 10, integer(2, 64);
        /// Colour channels.
        channels: usize = 3, integer(1, 4);
        /// Height in pixels, a multiple of 8.
        height: usize = 32, integer(8, 1024);
        /// Width in pixels, a multiple of 8.
        width: usize = 32, integer(8, 1024);
        /// Training samples.
        train: usize = 8000, at_least(1);
        /// Validation samples.
        val: usize = 1000, at_least(1);
        /// Test samples.
        test: usize = 1000, at_least(1);
    }
}

section! {
    /// Parameters of the procedural text generator. A text is `block` + 1 of 64 tokens; the last token of the vocabulary marks a
    /// copied span.
    #[derive(Eq)]
    pub struct SynthTokens {
        /// Seed of the generator.
        seed: u64;
        /// Tokens that the host reads at a time.
        block: usize = 64, integer(8, 65536);
        /// Training texts.
        train: usize = 8192, at_least(1);
        /// Validation texts.
        val: usize = 512, at_least(1);
        /// Test texts.
        test: usize = 512, at_least(1);
    }
}

section! {
    /// A text file. Its vocabulary has 257 tokens: the bytes, and 256, which ends the file.
    #[derive(Eq)]
    pub struct TextFile {
        /// Path of the file, relative to the scenario's folder, the folder in SIMIC_ENGINE_DATA, or data/.
        path: String;
        /// Tokens that the host reads at a time; the file is cut into windows of this length.
        block: usize = 128, integer(1, 65536);
    }
}

section! {
    /// A table of images in a Parquet file, and one for the test part.
    #[derive(Eq)]
    pub struct ParquetTable {
        /// Path of the file.
        path: String;
        /// Column of the images: files, as in a folder, or lists of bytes. The name of a column in a group begins with the
        /// group's, e.g. image.bytes.
        image: String = "image".into();
        /// Column of the labels, integers.
        label: String = "label".into();
        /// Dimensions of images that are lists of bytes. None: the column holds files.
        shape: Option<ListedShape>;
        /// Path of the test part. None: drawn from the table, as task.split says.
        test_path: Option<String>;
    }
}

record! {
    /// Dimensions of images in lists: rows of pixels, with the channels of a pixel next to each other.
    #[derive(Copy, Eq)]
    pub struct ListedShape {
        /// Height in pixels.
        height: usize, integer(1, 65536);
        /// Width in pixels.
        width: usize, integer(1, 65536);
        /// Values per pixel.
        channels: usize, integer(1, 1024);
    }
}

section! {
    /// Files of tokens, with paths as in [`TextFile`]. Parts without a file are taken from the end of the training file.
    #[derive(Eq)]
    pub struct TokenFiles {
        /// Path of the training part.
        train: String;
        /// Path of the validation part. None: split off the training file, as task.split says.
        val: Option<String>;
        /// Path of the test part. None: split off the training file, as task.split says.
        test: Option<String>;
        /// Format of the files.
        format: TokenFormat = TokenFormat::Auto;
        /// Number of different tokens; each token is less than this.
        vocab: i64 = 50257, integer(2, 65536);
        /// Tokens that the host reads at a time; files are cut into windows of this length.
        block: usize = 256, integer(1, 65536);
    }
}

choice! {
    /// Format of tokens, little-endian.
    #[derive(Copy, Eq)]
    pub enum TokenFormat {
        /// as the header of llm.c says, or 16 bits per token if there isn't one
        Auto,
        /// 16 bits per token, from the first byte on
        U16,
        /// 32 bits per token, from the first byte on
        U32,
        /// 16 or 32 bits per token, after the header of llm.c
        LlmC,
    }
}

record! {
    /// Stratified split into training, validation and test parts. Procedural data has its own split.
    #[derive(Copy, Eq)]
    pub struct SplitSpec {
        /// Seed of the split.
        seed: u64;
        /// Share of each class for validation, in thousandths.
        val_permille: u64, PERMILLE;
        /// Share of each class for the final test, in thousandths.
        test_permille: u64, PERMILLE;
    }
}

choice! {
    /// Normalisation of each channel: (pixel/scale - mean)/std.
    pub enum Normalise {
        /// given constants
        Constants {
            /// Mean per channel of pixels scaled to 0..1.
            mean: Vec<f64>, MEAN;
            /// Standard deviation per channel.
            std: Vec<f64>, POSITIVE;
        },
        /// measured on the training part
        Auto,
        /// no normalisation
        None,
    }
}

record! {
    /// Random crop, flip and cutout of training samples.
    #[derive(Copy)]
    pub struct AugmentSpec {
        /// Pixels of padding before the random crop.
        pad: u32, integer(0, 64);
        /// Probability of a horizontal flip.
        flip_p: f64, FRACTION;
        /// Side of a square, centred at random, that is set to the mean (zero after normalisation). None: no square.
        #[unit = "pixels"]
        cutout: Option<u32>, integer(1, 1024);
    }
}

choice! {
    /// Training batches per env and step.
    #[derive(Copy, Eq)]
    pub enum BatchesPerStep {
        /// one pass over the training part
        Full,
        /// this many batches
        Count(usize, at_least(1)),
        /// one pass shared by all envs
        Shard,
    }
}

choice! {
    /// Validation batches per step.
    #[derive(Copy, Eq)]
    pub enum ValBatches {
        /// the whole validation part
        Full,
        /// this many batches, from its beginning
        Count(usize, at_least(1)),
    }
}
