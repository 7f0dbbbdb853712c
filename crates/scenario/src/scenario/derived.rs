//! Values that follow from a task: sizes of its parts, batches per step. Pure arithmetic.

use serde::Serialize;

use super::catalog::{Catalog, Entry};
use super::reward::RewardConfig;
use super::task::{
    BYTE_VOCABULARY, BatchesPerStep, DataSource, SYNTH_VOCABULARY, SplitSpec, SynthImages, SynthTokens, TaskSpec,
};
use crate::growth::{SlotId, Topology};
use crate::schema::{Content, Described, Kind};

/// Images of each class in the embedded digits.
const DIGITS_PER_CLASS: [u64; 10] = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180];

/// Samples in each part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSizes {
    /// Training samples.
    pub train: usize,
    /// Validation samples.
    pub val: usize,
    /// Test samples.
    pub test: usize,
}

/// Shape of a sample, and the number of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageShape {
    /// Number of labels.
    pub classes: i64,
    /// Colour channels.
    pub channels: i64,
    /// Height in pixels.
    pub height: i64,
    /// Width in pixels.
    pub width: i64,
}

/// A source of data as `task.data` takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DataForm {
    /// As a scenario writes it, with the names of its fields.
    pub form: String,
    /// One line.
    pub summary: String,
    /// Task presets that use it.
    pub tasks: Vec<String>,
}

/// All members of [`DataSource`], from their declarations, then the data sets of applications.
pub fn data_forms(catalog: &Catalog) -> Vec<DataForm> {
    let Kind::Choice(variants) = DataSource::KIND else {
        return Vec::new();
    };
    let form = |name: &str, content: Content| match content {
        Content::Nothing => name.into(),
        Content::Items(_) => format!("{name}((..))"),
        Content::Fields(fields) => {
            let names: Vec<String> = fields
                .iter()
                .map(|field| format!("{}{}", field.name, if field.must_be_written() { "" } else { "?" }))
                .collect();
            format!("{name}({})", names.join(", "))
        }
    };
    let users = |name: &str| {
        let tasks = catalog.tasks.iter().map(|task| &task.spec);
        tasks
            .filter(move |task| task.data.name() == name)
            .map(|task| task.name.clone())
            .collect()
    };
    let declared = variants.iter().map(|variant| DataForm {
        form: form(variant.name, variant.content),
        summary: variant.doc.into(),
        tasks: users(variant.name),
    });
    let registered = catalog.data.iter().map(|entry| DataForm {
        form: format!("custom(name: \"{}\", settings?)", entry.name),
        summary: entry.summary.clone(),
        tasks: Vec::new(),
    });
    declared.chain(registered).collect()
}

/// Every family and mode of rewards, as a scenario writes it; those of plugins last.
pub fn reward_forms(catalog: &Catalog) -> Vec<Entry> {
    let registered = catalog.rewards.iter();
    let registered = registered.map(|mode| Entry::new(format!("contribution({}())", mode.name), mode.summary.clone()));
    forms_of(&RewardConfig::KIND).into_iter().chain(registered).collect()
}

fn forms_of(kind: &Kind) -> Vec<Entry> {
    let Kind::Choice(variants) = kind else {
        return Vec::new();
    };
    variants
        .iter()
        .flat_map(|variant| {
            let inner = match &variant.content {
                Content::Items([item]) => forms_of(&item.kind),
                _ => Vec::new(),
            };
            let own = inner
                .is_empty()
                .then(|| Entry::new(format!("{}()", variant.name), variant.doc));
            let wrap = |entry: Entry| Entry::new(format!("{}({})", variant.name, entry.name), entry.summary);
            own.into_iter().chain(inner.into_iter().map(wrap)).collect::<Vec<_>>()
        })
        .collect()
}

/// Sizes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextShape {
    /// Number of different tokens.
    pub vocab: i64,
    /// Tokens that a host reads at a time.
    pub block: usize,
}

impl DataSource {
    /// The input that a host has to read.
    pub fn topology(&self) -> Topology {
        match self.text() {
            Some(_) => Topology::Tokens,
            None => Topology::Image,
        }
    }

    /// Returns whether its files, unless they are compressed, have records of one size, which can be read when they are
    /// needed.
    pub fn has_records(&self) -> bool {
        matches!(
            self,
            Self::Cifar10 { .. }
                | Self::Cifar100 { .. }
                | Self::Idx { .. }
                | Self::IdxFolder { .. }
                | Self::Npy { .. }
                | Self::Text(_)
                | Self::TokenFiles(_)
        )
    }

    /// `None` for images.
    pub fn text(&self) -> Option<TextShape> {
        let (vocab, block) = match self {
            Self::SynthTokens(synth) => (SYNTH_VOCABULARY, synth.block),
            Self::Text(file) => (BYTE_VOCABULARY, file.block),
            Self::TokenFiles(files) => (files.vocab, files.block),
            _ => return None,
        };
        Some(TextShape { vocab, block })
    }

    /// The shape of images; `None` for texts, and if only the files can tell.
    pub fn shape(&self) -> Option<ImageShape> {
        let signed = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        let (classes, [channels, height, width]) = match self {
            Self::Digits => (10, [1, 8, 8]),
            Self::SynthImages(synth) => (
                i64::try_from(synth.classes).unwrap_or(i64::MAX),
                [synth.channels, synth.height, synth.width].map(signed),
            ),
            Self::Cifar10 { .. } => (10, [3, 32, 32]),
            Self::Cifar100 { .. } => (100, [3, 32, 32]),
            _ => return None,
        };
        Some(ImageShape {
            classes,
            channels,
            height,
            width,
        })
    }

    /// Part sizes under `split`; `None` if only the files can tell.
    pub fn part_sizes(&self, split: &SplitSpec) -> Option<PartSizes> {
        match self {
            Self::Digits => {
                let total: u64 = DIGITS_PER_CLASS.iter().sum();
                let share = |permille: u64| -> u64 { DIGITS_PER_CLASS.iter().map(|n| n * permille / 1000).sum() };
                let (val, test) = (share(split.val_permille), share(split.test_permille));
                Some(PartSizes {
                    train: total.saturating_sub(val + test) as usize,
                    val: val as usize,
                    test: test as usize,
                })
            }
            &(Self::SynthImages(SynthImages { train, val, test, .. })
            | Self::SynthTokens(SynthTokens { train, val, test, .. })) => Some(PartSizes { train, val, test }),
            _ => None,
        }
    }
}

impl TaskSpec {
    /// Enabled slots in the policy's order.
    pub fn ordered_slots(&self) -> Vec<SlotId> {
        let mut slots = self.slots.clone();
        slots.sort_unstable();
        slots
    }

    /// Rows of a validation batch.
    pub fn val_rows(&self) -> usize {
        self.val_batch_size.unwrap_or_else(|| self.batch_size.saturating_mul(4))
    }

    /// Training batches per env and step; 0 if the training part is too small.
    pub fn train_batches(&self, train_samples: usize, n_envs: usize) -> usize {
        let rows = self.batch_size.max(1);
        match self.batches_per_step {
            BatchesPerStep::Full => train_samples / rows,
            BatchesPerStep::Count(_) if rows > train_samples => 0,
            BatchesPerStep::Count(count) => count,
            BatchesPerStep::Shard => train_samples / rows.saturating_mul(n_envs.max(1)),
        }
    }
}

#[cfg(test)]
mod tests;
