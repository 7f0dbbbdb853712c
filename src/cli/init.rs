//! `init`: a scenario to begin with that grows a network on a data set of the user's.

use std::fmt::Write as _;
use std::path::Path;

use super::Outcome;
use super::options::CheckOptions;
use super::output::{show, tell};
use super::rejection::Rejection;
use crate::data::{Survey, Surveyed, survey};
use crate::scenario::{DataSource, TextFile, TokenFiles};

/// Training images up to which a step is one pass over them; of more it is a part.
const PASS_AT_MOST: usize = 3200;
/// Side of image files that are not square.
const IMAGE_SIDE: usize = 32;
/// Samples of a batch, but of a small set.
const BATCH: usize = 64;

/// Prints a scenario for the data set at `options.path`.
///
/// # Errors
/// Those of [`survey`]; arrays whose layout nobody has said, images that are not square.
pub fn init(options: &CheckOptions) -> Result<Outcome, Rejection> {
    let surveyed = survey(&options.path, options.labels.as_deref(), options.known())?;
    if let Surveyed::Images(survey) = &surveyed {
        for note in &survey.notes {
            tell(format_args!("warning: {note}"));
        }
    }
    Ok(show(scenario(&options.path, &task(&surveyed, options)?)))
}

/// What a scenario says to train on such data.
///
/// # Errors
/// Arrays whose layout nobody has said, images that are not square.
pub fn task(surveyed: &Surveyed, options: &CheckOptions) -> Result<Task, Rejection> {
    let path = text_of(&options.path);
    match surveyed {
        Surveyed::Images(survey) => images(survey, options),
        Surveyed::Text(survey) if survey.format == "text" => text(&DataSource::Text(TextFile {
            path,
            ..TextFile::default()
        })),
        Surveyed::Text(_) => text(&DataSource::TokenFiles(TokenFiles {
            train: path,
            vocab: options.vocab.unwrap_or(TokenFiles::default().vocab),
            ..TokenFiles::default()
        })),
    }
}

/// Size of the experiment, and what is trained.
pub struct Task {
    /// `task: ..`, in lines of RON.
    pub ron: String,
    rounds: usize,
    n_envs: usize,
    max_steps: usize,
}

fn images(survey: &Survey, options: &CheckOptions) -> Result<Task, Rejection> {
    let side = side(survey, options)?;
    let held = |part: &str| survey.parts.iter().find(|found| found.part == part);
    let train = held("train").map_or(0, |part| part.images);
    // What `split` takes of the training files, where they bring no part of that name.
    let (val_permille, test_permille) = match (held("validation"), held("test")) {
        (Some(_), _) => (0, 0),
        (None, Some(_)) => (150, 0),
        (None, None) => (200, 100),
    };
    let left = train * (1000 - val_permille - test_permille) / 1000;
    let batch = BATCH.min((left / 8).max(1));
    let batches = if left <= PASS_AT_MOST {
        "full".into()
    } else {
        format!("count({})", PASS_AT_MOST / BATCH)
    };
    let classes = &survey.classes;
    let named = classes.iter().filter_map(|class| class.name.as_deref());
    let names: Vec<String> = named.map(|name| name.escape_debug().to_string()).collect();
    let mut ron = String::new();
    if !names.is_empty() && names.len() <= 20 {
        _ = writeln!(ron, "    // Classes: {}.", names.join(", "));
    }
    let pools = (side as f64).log2().floor().clamp(0.0, 3.0) as usize;
    _ = writeln!(ron, "    // {train} images in the training files.");
    _ = write!(
        ron,
        "    task: preset(\"images\", (
        data: {},
        classes: {},
        // A small host, so that there is something to gain; base_channels makes it wider.
        host: cnn((in_channels: {}, base_channels: 4, pool_layers: {pools}, input_hw: {side})),
        normalise: auto, // measured on the training part
        // Parts that the files do not bring, in thousandths of each class.
        split: (seed: 0, val_permille: {val_permille}, test_permille: {test_permille}),
        batch_size: {batch},
        batches_per_step: {batches}, // full: one pass over the training part
    )),
",
        source(&images_source(survey, side, options)?)?,
        classes.len(),
        survey.channels,
    );
    Ok(Task {
        ron,
        rounds: 8,
        n_envs: 8,
        max_steps: 60,
    })
}

/// Rows and columns of what the host reads; image files are cropped to it.
fn side(survey: &Survey, options: &CheckOptions) -> Result<usize, Rejection> {
    let (height, width) = (survey.height, survey.width);
    if height == width {
        Ok(height)
    } else if survey.format == "image_folder" {
        Ok(IMAGE_SIDE)
    } else {
        Err(Rejection::Usage(format!(
            "{}: images are {height}x{width} pixels, and hosts read squares; cut or pad them, or bring a folder of image files, \
             which are cropped when they are read",
            options.path.display()
        )))
    }
}

/// As a scenario names the files.
fn images_source(survey: &Survey, side: usize, options: &CheckOptions) -> Result<DataSource, Rejection> {
    let path = text_of(&options.path);
    let labels = options.labels.as_deref().map(text_of).unwrap_or_default();
    let layout = || {
        options.layout.map(Into::into).ok_or_else(|| {
            Rejection::Usage("arrays: say with --layout nhwc or --layout nchw in which order their sizes are".into())
        })
    };
    let scale = survey.scale;
    Ok(match survey.format.as_str() {
        "cifar10" => DataSource::Cifar10 { path },
        "cifar100" => DataSource::Cifar100 { path },
        "image_folder" => DataSource::ImageFolder { path, size: Some(side) },
        "idx_folder" => DataSource::IdxFolder { path, scale },
        "idx" => DataSource::Idx {
            images: path,
            labels,
            scale,
            test_images: None,
            test_labels: None,
        },
        "npz" => DataSource::Npz {
            path,
            layout: layout()?,
            scale,
        },
        _ => DataSource::Npy {
            images: path,
            labels,
            layout: layout()?,
            scale,
            test_images: None,
            test_labels: None,
        },
    })
}

fn text(data: &DataSource) -> Result<Task, Rejection> {
    let (preset, vocab) = match data {
        DataSource::TokenFiles(files) => ("tinystories", files.vocab),
        _ => ("bytes_lm", crate::scenario::BYTE_VOCABULARY),
    };
    let ron = format!(
        "    // A language model; `simic-engine list tasks` says how large it is.
    task: preset(\"{preset}\", (
        data: {},
        classes: {vocab},
        batches_per_step: count(8),
        val_batches_per_step: count(4),
    )),
",
        source(data)?
    );
    Ok(Task {
        ron,
        rounds: 4,
        n_envs: 2,
        max_steps: 40,
    })
}

fn scenario(data: &Path, task: &Task) -> String {
    let Task {
        ron,
        rounds,
        n_envs,
        max_steps,
    } = task;
    let name = data.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let name: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .take(40)
        .collect();
    let name = name.trim_matches('-');
    let name = if name.is_empty() { "my-data" } else { name };
    format!(
        "// Grows a network on data of your own. `simic-engine explain PATH` says what a field means; relative paths begin at the
// folder of this file.
(
    name: \"{name}\",
{ron}    run: (
        rounds: {rounds},     // after each the policy learns
        n_envs: {n_envs},     // networks that train side by side
        max_steps: {max_steps}, // validations, and decisions, of each
        seed: 1,
    ),
)
"
    )
}

fn source(data: &DataSource) -> Result<String, Rejection> {
    let style = ron::ser::PrettyConfig::new().compact_structs(true);
    let written = ron::ser::to_string_pretty(data, style);
    written.map_err(|error| Rejection::Usage(format!("the path cannot be written to a scenario: {error}")))
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}
