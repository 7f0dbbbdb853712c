//! `init`: a scenario to begin with that grows a network on a data set of the user's; `data check`: what lies on disk, before a run
//! relies on it.

use std::fmt::Write as _;
use std::path::Path;

use super::options::{CheckOptions, DataCommand};
use super::output::Printer;
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::data::{Survey, Surveyed, check_own_images, own_images, survey};
use crate::report::survey_text;
use crate::scenario::{
    ArrayLayout, BYTE_VOCABULARY, DataSource, HostChoice, OwnImages, TextFile, TokenFiles, ron_text,
};

/// Prints a scenario for the data set at `options.path`.
///
/// # Errors
/// Those of [`survey`] and [`task`].
pub fn init(options: &CheckOptions, context: &Context) -> Result<Outcome, Rejection> {
    let surveyed = survey(&options.path, options.labels.as_deref(), options.known())?;
    warn(&surveyed, context.printer);
    Ok(context.printer.show(scenario(&task(&surveyed, options)?)))
}

/// Reports oddities of the data.
pub fn warn(surveyed: &Surveyed, printer: &Printer) {
    if let Surveyed::Images(survey) = surveyed {
        for note in &survey.notes {
            printer.note(format_args!("warning: {note}"));
        }
    }
}

/// The task section that a scenario needs for such data.
///
/// # Errors
/// Data that a run of it would refuse: arrays of images that are not square, a class without images for validation, a text that is
/// too short.
pub fn task(surveyed: &Surveyed, options: &CheckOptions) -> Result<Task, Rejection> {
    let survey = match surveyed {
        Surveyed::Images(survey) => return images(survey, options),
        Surveyed::Text(survey) => survey,
    };
    let path = text_of(&options.path);
    let (bytes, files) = (TextFile::default(), TokenFiles::default());
    let (preset, block, data) = if survey.format == "text" {
        let data = DataSource::Text(TextFile { path, ..bytes });
        (("bytes_lm", BYTE_VOCABULARY, 100), bytes.block, data)
    } else {
        let (block, vocab) = (files.block, options.vocab.unwrap_or(files.vocab));
        let data = DataSource::TokenFiles(TokenFiles {
            train: path,
            vocab,
            ..files
        });
        (("tinystories", vocab, 5), block, data)
    };
    let windows = survey.tokens / block;
    if windows * preset.2 < 1000 {
        let (file, tokens) = (options.path.display(), survey.tokens);
        let few = format!("data file {file}: {tokens} tokens are too few windows of {block} to validate on; give more");
        return Err(few.into());
    }
    Ok(text(preset, &data, windows))
}

/// A task, and how long it is trained.
pub struct Task {
    /// `task: ..`, in lines of RON.
    pub ron: String,
    /// Rounds, envs and steps.
    size: [usize; 3],
}

fn images(survey: &Survey, options: &CheckOptions) -> Result<Task, Rejection> {
    let own = own_images(survey, images_source(survey, options), "cnn")?;
    check_own_images(survey)?;
    let named = survey.classes.iter().filter_map(|class| class.name.as_deref());
    let names: Vec<String> = named.map(|name| name.escape_debug().to_string()).collect();
    let mut ron = String::new();
    if !names.is_empty() && names.len() <= 20 {
        _ = writeln!(ron, "    // Classes: {}.", names.join(", "));
    }
    let train = survey.parts.first().map_or(0, |train| train.images);
    _ = write!(
        ron,
        "    // {train} images in the training files.\n    task: preset(\"images\", (\n{}    )),\n",
        lines(&own)
    );
    let size = [8, 8, 60];
    Ok(Task { ron, size })
}

/// The fields of a task on images, a line each.
fn lines(own: &OwnImages) -> String {
    let host = match &own.host {
        Some(HostChoice::Cnn(host)) => format!(
            "in_channels: {}, base_channels: {}, pool_layers: {}, input_hw: {}",
            host.in_channels, host.base_channels, host.pool_layers, host.input_hw
        ),
        _ => String::new(),
    };
    format!(
        "        data: {},
        classes: {},
        // A small host leaves something to gain; base_channels makes it wider.
        host: cnn(({host})),
        normalise: auto, // measured on the training part
        // Parts that the files don't have, in thousandths of each class.
        split: (seed: {}, val_permille: {}, test_permille: {}),
        batch_size: {},
        batches_per_step: {}, // full: one pass over the training part
",
        ron_text(&own.data),
        own.classes,
        own.split.seed,
        own.split.val_permille,
        own.split.test_permille,
        own.batch_size,
        ron_text(&own.batches_per_step),
    )
}

/// The files in the form of a scenario.
fn images_source(survey: &Survey, options: &CheckOptions) -> DataSource {
    let path = text_of(&options.path);
    let labels = options.labels.as_deref().map(text_of).unwrap_or_default();
    let layout = survey.stated.layout.unwrap_or(ArrayLayout::Nhwc);
    let scale = survey.stated.scale.unwrap_or(survey.scale);
    match survey.format.as_str() {
        "cifar10" => DataSource::Cifar10 { path },
        "cifar100" => DataSource::Cifar100 { path },
        "image_folder" => DataSource::ImageFolder { path, size: None },
        "idx_folder" => DataSource::IdxFolder { path, scale },
        "idx" => DataSource::Idx {
            images: path,
            labels,
            scale,
        },
        "npz" => DataSource::Npz { path, layout, scale },
        _ => DataSource::Npy {
            images: path,
            labels,
            layout,
            scale,
        },
    }
}

/// A language model of a text of `windows` windows; the preset validates on a share of them. A step is a part of a long text.
fn text((preset, vocab, val_permille): (&str, i64, usize), data: &DataSource, windows: usize) -> Task {
    let at_most = |count: usize, rows: usize, permille: usize| match windows * permille / 1000 >= count * rows {
        true => format!("count({count})"),
        false => "full".into(),
    };
    let (batches, val_batches) = (at_most(8, 32, 800), at_most(4, 128, val_permille));
    let ron = format!(
        "    // A language model; `simic-engine list tasks` says how large it is.
    task: preset(\"{preset}\", (
        data: {},
        classes: {vocab},
        batches_per_step: {batches},
        val_batches_per_step: {val_batches},
    )),
",
        ron_text(data)
    );
    let size = [4, 2, 40];
    Task { ron, size }
}

/// Without a name: that of the file will do.
fn scenario(Task { ron, size }: &Task) -> String {
    let [rounds, n_envs, max_steps] = size;
    format!(
        "// Grows a network on your own data. `simic-engine explain PATH` explains a field. Relative paths start at the folder of
// this file.
(
{ron}    run: (
        rounds: {rounds},     // the policy learns after each
        n_envs: {n_envs},     // networks that train in parallel
        max_steps: {max_steps}, // validations and decisions in each
        seed: 1,
    ),
)
"
    )
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}

pub fn data(command: &DataCommand, context: &Context) -> Result<Outcome, Rejection> {
    match command {
        DataCommand::Check(options) => check(options, context),
    }
}

fn check(options: &CheckOptions, context: &Context) -> Result<Outcome, Rejection> {
    let surveyed = survey(&options.path, options.labels.as_deref(), options.known())?;
    let printer = context.printer;
    // What `init` refuses is shown all the same, with the reason and without a task.
    let task = task(&surveyed, options).map(|task| task.ron);
    if let Err(why) = &task {
        printer.note(format_args!("warning: {why}"));
    }
    if context.global.json {
        return Ok(printer.show_json(&surveyed));
    }
    warn(&surveyed, printer);
    let described = survey_text(&surveyed, printer.width());
    let pasted = task.map(|ron| format!("\nfor a scenario (`simic-engine init` prints a whole one):\n\n{ron}"));
    let pasted = pasted.unwrap_or_default();
    Ok(printer.show(format_args!("{}: {described}{pasted}", options.path.display())))
}
