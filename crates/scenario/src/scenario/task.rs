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
    /// A known task by name, single fields changed.
    Preset(String, Box<TaskOverrides>),
    /// A task written out in full.
    Custom(Box<TaskSpec>),
}

impl Default for TaskChoice {
    fn default() -> Self {
        Self::Preset("digits_impaired".into(), Box::default())
    }
}

/// By hand, since the name of the task is an item with a path of its own, `task.preset`.
impl Described for TaskChoice {
    const KIND: Kind = Kind::Choice(&[
        Variant {
            name: "preset",
            doc: "a known task, single fields changed",
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
        /// L2 norm to which host and each seed are clipped separately. None: the task's.
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
        /// Classes, or tokens of the vocabulary; must agree with the data.
        classes: i64, integer(2, 65536);
        /// Where samples come from.
        data: DataSource;
        /// Stratified split into training, validation and test parts, of a text its last windows; procedural data brings its own.
        split: SplitSpec;
        /// Normalisation (pixel/scale - mean)/std per channel.
        normalise: Normalise;
        /// Random crop, flip and cutout of training samples.
        augment: Option<AugmentSpec>;
        /// The host network.
        host: HostChoice;
        /// Weights that episodes start from. None: those of the host, which are drawn unless it is grown.
        weights: Option<HostWeights>;
        /// Layers of the host that are not trained, by name: `stage1` stands for all layers whose names begin with `stage1.`,
        /// `all` for every layer. Their running statistics stay as well; `stem.conv` freezes tensors of a layer alone, and
        /// `statistics` the statistics of all. None: all are trained.
        freeze: Option<Vec<String>>;
        /// Slots that may grow, unless lifecycle.slots says otherwise.
        slots: Vec<SlotId>;
        /// Most seeds at a time, unless lifecycle.max_seeds says otherwise; 0: no limit.
        max_seeds: u32;
        /// Samples (images, or texts of one block) per training batch, at most the training part.
        batch_size: usize, at_least(1);
        /// Training batches per env and step.
        batches_per_step: BatchesPerStep;
        /// Samples per validation batch. None: four training batches.
        val_batch_size: Option<usize>, at_least(1);
        /// Validation batches per step.
        val_batches_per_step: ValBatches;
        /// Steps of an episode, unless run.max_steps says otherwise.
        max_steps: u32, at_least(1);
        /// Optimizer of the host.
        host_opt: OptimizerConfig;
        /// Optimizer of each seed.
        seed_opt: OptimizerConfig;
        /// L2 norm to which host and each seed are clipped separately. None: no clipping.
        max_grad_norm: Option<f64>, POSITIVE;
        /// Label smoothing of the training loss.
        label_smoothing: f64, BELOW_ONE;
        /// Accuracy from which an episode counts as a success.
        #[unit = "percent"]
        success_accuracy: f64, PERCENT;
    }
}

record! {
    /// Given weights of a host.
    #[derive(Eq)]
    pub struct HostWeights {
        /// Path of the safetensors file, looked up as data are.
        path: String;
        /// First envs that start from them. None: all.
        envs: Option<usize>, at_least(1);
    }
}

choice! {
    /// Where samples come from.
    pub enum DataSource {
        /// 1797 handwritten digits, 8x8, embedded in the program
        Digits,
        /// procedural gratings among distractors
        SynthImages(SynthImages),
        /// CIFAR-10, binary version: the published archive, packed or not, or its folder
        Cifar10 {
            /// Path of the archive or folder.
            path: String;
        },
        /// CIFAR-100 with its fine labels, binary version: the published archive, packed or not, or its folder
        Cifar100 {
            /// Path of the archive or folder.
            path: String;
        },
        /// a pair of IDX files, packed or not
        Idx {
            /// Path of the IDX image file.
            images: String;
            /// Path of the IDX label file.
            labels: String;
            /// Pixel value that means 1.0.
            scale: f64, POSITIVE;
        },
        /// the four IDX files that MNIST and Fashion-MNIST are published as, packed or not
        IdxFolder {
            /// Path of the folder.
            path: String;
            /// Pixel value that means 1.0.
            scale: f64, POSITIVE;
        },
        /// PNG, JPEG, WebP, BMP and GIF files in a folder a class; train, val and test folders are optional
        ImageFolder {
            /// Path of the folder.
            path: String;
            /// Side to which the central square of an image is scaled. None: their own size, where all have one, else 32.
            #[unit = "pixels"]
            size: Option<usize>, integer(1, 4096);
        },
        /// a pair of NPY arrays, images and labels
        Npy {
            /// Path of the images: bytes or 32-bit floats.
            images: String;
            /// Path of the labels: integers.
            labels: String;
            /// Order of the sizes of the images.
            layout: ArrayLayout;
            /// Value that means 1.0.
            scale: f64, POSITIVE;
        },
        /// arrays in an NPZ archive: x_train, y_train and the like
        Npz {
            /// Path of the archive.
            path: String;
            /// Order of the sizes of the images.
            layout: ArrayLayout;
            /// Value that means 1.0.
            scale: f64, POSITIVE;
        },
        /// a table of images in a Parquet file
        Parquet(ParquetTable),
        /// images of an application's, by the name that they are registered under
        Custom {
            /// Name of the data set; `simic-engine list data` shows all.
            name: String, DATA;
            /// Its settings, as it declares them.
            settings: Settings;
        },
        /// procedural text: hidden topics, sparse bigrams, copied spans
        SynthTokens(SynthTokens),
        /// a text file, one token a byte
        Text(TextFile),
        /// files of tokens that another program has made of texts
        TokenFiles(TokenFiles),
    }
}

choice! {
    /// Order of the sizes of arrays of images.
    #[derive(Copy, Eq)]
    pub enum ArrayLayout {
        /// images, rows, columns, channels
        Nhwc,
        /// images, channels, rows, columns
        Nchw,
    }
}

/// Tokens of a text file: the bytes, and the one that ends the file.
pub const BYTE_VOCABULARY: i64 = 257;
/// Tokens of a procedural text: few enough for a small host to learn what follows each of them.
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
        /// Path of the file; in the folder of the scenario, in the one that SIMIC_ENGINE_DATA names, or in data/.
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
        /// Column of the images: files, as in a folder, or lists of bytes. A column in a group is named with it, as image.bytes.
        image: String = "image".into();
        /// Column of the labels: integers.
        label: String = "label".into();
        /// Sizes of images that are lists of bytes. None: the column holds files.
        shape: Option<ListedShape>;
        /// Path of the test part. None: drawn from the table, as task.split says.
        test_path: Option<String>;
    }
}

record! {
    /// Sizes of images in lists: rows of pixels, the channels of a pixel side by side.
    #[derive(Copy, Eq)]
    pub struct ListedShape {
        /// Pixels.
        height: usize, integer(1, 65536);
        /// Pixels.
        width: usize, integer(1, 65536);
        /// Values of a pixel.
        channels: usize, integer(1, 1024);
    }
}

section! {
    /// Files of tokens, paths as in [`TextFile`]. Parts that no file brings are taken from the end of the training file.
    #[derive(Eq)]
    pub struct TokenFiles {
        /// Path of the training part.
        train: String;
        /// Path of the validation part. None: drawn from the training file, as task.split says.
        val: Option<String>;
        /// Path of the test part. None: drawn from the training file, as task.split says.
        test: Option<String>;
        /// How the files are written.
        format: TokenFormat = TokenFormat::Auto;
        /// Different tokens; each is below it.
        vocab: i64 = 50257, integer(2, 65536);
        /// Tokens that the host reads at a time; files are cut into windows of this length.
        block: usize = 256, integer(1, 65536);
    }
}

choice! {
    /// How tokens are written, little-endian.
    #[derive(Copy, Eq)]
    pub enum TokenFormat {
        /// as llm.c's header says, and without one 16 bits each
        Auto,
        /// 16 bits each, from the first byte on
        U16,
        /// 32 bits each, from the first byte on
        U32,
        /// 16 or 32 bits each, behind the header of llm.c
        LlmC,
    }
}

record! {
    /// Stratified split into training, validation and test parts; procedural data brings its own.
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
    /// Normalisation (pixel/scale - mean)/std per channel.
    pub enum Normalise {
        /// given constants
        Constants {
            /// Mean per channel, of pixels scaled to 0..1.
            mean: Vec<f64>, MEAN;
            /// Standard deviation per channel.
            std: Vec<f64>, POSITIVE;
        },
        /// measured on the training part
        Auto,
        /// none
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
        /// Side of a square, centred at random, that is blanked to the mean: zeros after normalisation. None: no square.
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
        /// its first batches, this many
        Count(usize, at_least(1)),
    }
}
