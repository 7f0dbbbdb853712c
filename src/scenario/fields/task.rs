//! The fields of section `task` (spec 02 §1).

use super::*;

pub(super) const TASK: Kind = variants! {
    preset(
        Item { name: "preset", doc: "Name of a task; `simic-engine list tasks` shows all.", kind: Kind::Text(Names::Task), optional: false },
        Item { name: "", doc: "", kind: Kind::Record(TASK_OVERRIDES), optional: true }
    ) => "a known task, single fields changed";
    custom(unnamed(Kind::Record(TASK_SPEC))) => "a task written out in full";
};

const BATCHES: Kind = variants! {
    full => "one pass over the training part";
    count(unnamed(at_least(1))) => "this many batches";
    shard => "one pass shared by all envs";
};

const VAL_BATCHES: Kind = variants! {
    full => "the whole validation part";
    count(unnamed(at_least(1))) => "its first batches, this many";
};

const CLIP: Kind = Kind::Optional(&POSITIVE);

const TASK_OVERRIDES: &[Field] = fields! {
    batch_size: Kind::Optional(&at_least(1)) => "Samples per training batch, at most the training part.";
    batches_per_step: Kind::Optional(&BATCHES) => "Training batches per env and step.";
    val_batch_size: Kind::Optional(&at_least(1)) => "Samples per validation batch. None: the task's.";
    val_batches_per_step: Kind::Optional(&VAL_BATCHES) => "Validation batches per step.";
    max_steps: Kind::Optional(&at_least(1)) => "Steps of an episode, unless run.max_steps says otherwise.";
    host_opt: Kind::Optional(&OPTIMIZER) => "Optimizer of the host.";
    seed_opt: Kind::Optional(&OPTIMIZER) => "Optimizer of each seed.";
    max_grad_norm: CLIP => "L2 norm to which host and each seed are clipped separately. None: the task's.";
    label_smoothing: Kind::Optional(&BELOW_ONE) => "Label smoothing of the training loss.";
    data: Kind::Optional(&DATA_SOURCE) => "Where samples come from.";
    host: Kind::Optional(&Kind::Record(CNN)) => "Shape of the host network.";
};

const TASK_SPEC: &[Field] = required! {
    name: Kind::Text(Names::Run) => "Name of the task in reports.";
    classes: integer(2, 65536) => "Classes; must agree with the data.";
    data: DATA_SOURCE => "Where samples come from.";
    split: Kind::Record(required! {
        seed: SEED => "Seed of the split.";
        val_permille: PERMILLE => "Share of each class for validation, in thousandths.";
        test_permille: PERMILLE => "Share of each class for the final test, in thousandths.";
    }) => "Stratified split into training, validation and test parts; procedural data brings its own.";
    normalise: variants! {
        constants { required! {
            mean: Kind::List(&ANY_NUMBER) => "Mean per channel, of pixels scaled to 0..1.";
            std: Kind::List(&POSITIVE) => "Standard deviation per channel.";
        } } => "given constants";
        auto => "measured on the training part";
        none => "none";
    } => "Normalisation (pixel/scale - mean)/std per channel.";
    augment: Kind::Optional(&Kind::Record(required! {
        pad: integer(0, 64) => "Pixels of padding before the random crop.";
        flip_p: FRACTION => "Probability of a horizontal flip.";
    })) => "Random crop and flip of training samples.";
    host: Kind::Record(CNN) => "Shape of the host network.";
    slots: Kind::List(&SLOT) => "Slots that may grow, unless lifecycle.slots says otherwise.";
    max_seeds: at_least(0) => "Most seeds at a time, unless lifecycle.max_seeds says otherwise; 0: no limit.";
    batch_size: at_least(1) => "Samples per training batch, at most the training part.";
    batches_per_step: BATCHES => "Training batches per env and step.";
    val_batch_size: Kind::Optional(&at_least(1)) => "Samples per validation batch. None: four training batches.";
    val_batches_per_step: VAL_BATCHES => "Validation batches per step.";
    max_steps: at_least(1) => "Steps of an episode, unless run.max_steps says otherwise.";
    host_opt: OPTIMIZER => "Optimizer of the host.";
    seed_opt: OPTIMIZER => "Optimizer of each seed.";
    max_grad_norm: CLIP => "L2 norm to which host and each seed are clipped separately. None: no clipping.";
    label_smoothing: BELOW_ONE => "Label smoothing of the training loss.";
    baseline_loss: POSITIVE => "Loss of guessing; must exceed target_loss.";
    target_loss: NOT_NEGATIVE => "Loss of a solved task.";
    typical_loss_delta_std: POSITIVE => "Typical spread of the loss between steps.";
    success_accuracy: PERCENT => "Accuracy from which an episode counts as a success, percent.";
};

const OPTIMIZER: Kind = variants! {
    sgd { required! {
        lr: POSITIVE => "Learning rate.";
        momentum: BELOW_ONE => "Momentum.";
        weight_decay: NOT_NEGATIVE => "Weight decay.";
    } } => "stochastic gradient descent with momentum";
    adamw { required! {
        lr: POSITIVE => "Learning rate.";
        beta1: BELOW_ONE => "Decay of the first moment.";
        beta2: BELOW_ONE => "Decay of the second moment.";
        eps: POSITIVE => "Added to the denominator.";
        weight_decay: NOT_NEGATIVE => "Decoupled weight decay.";
    } } => "AdamW";
};

const DATA_SOURCE: Kind = variants! {
    digits => "1797 handwritten digits, 8x8, embedded in the program";
    synth_images(unnamed(Kind::Record(SYNTH_IMAGES))) => "procedural gratings among distractors";
    idx { required! {
        images: Kind::Text(Names::Free) => "Path of the IDX image file.";
        labels: Kind::Text(Names::Free) => "Path of the IDX label file.";
        scale: POSITIVE => "Pixel value that means 1.0.";
    } } => "a pair of IDX files";
};

const SYNTH_IMAGES: &[Field] = fields! {
    seed: SEED => "Seed of the generator.";
    classes: integer(2, 64) => "Classes: orientations and frequencies of the grating.";
    channels: integer(1, 4) => "Colour channels.";
    height: integer(8, 1024) => "Height in pixels, a multiple of 8.";
    width: integer(8, 1024) => "Width in pixels, a multiple of 8.";
    noise: integer(0, 255) => "Amplitude of the pixel noise.";
    distractors: integer(0, 8) => "Gratings of other classes in each image.";
    periods: Kind::Pair(&integer(2, 1024)) => "Periods of the two frequencies in pixels.";
    train: at_least(1) => "Training samples.";
    val: at_least(1) => "Validation samples.";
    test: at_least(1) => "Test samples.";
};

const CNN: &[Field] = required! {
    in_channels: integer(1, 1024) => "Channels of the input; must agree with the data.";
    base_channels: integer(1, 4096) => "Channels of the first block; each further block doubles them.";
    n_blocks: integer(2, 12) => "Blocks of convolution, batch norm and ReLU.";
    kernel_size: integer(1, 31) => "Kernel of every convolution; odd.";
    pool_layers: integer(0, 12) => "First blocks that a 2x2 max pool follows; at most n_blocks.";
    input_hw: integer(1, 4096) => "Height and width of the input; must agree with the data.";
};
