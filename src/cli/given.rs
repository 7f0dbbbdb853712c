//! Networks that are given to `grow` and `adapt`, the data that they are to read, and how they read pixels.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::named::{check_apart, check_outside};
use super::options::{ArrayOptions, CheckOptions, NetworkOptions};
use super::rejection::Rejection;
use super::{Context, init};
use crate::data::{TaskData, survey};
use crate::engine::{Prepared, read_scenario};
use crate::export::check_place;
use crate::grow::{Base, Variant};
use crate::growth::Topology;
use crate::health::AtPath;
use crate::host::{Features, reading};
use crate::network::{DataCard, GivenWeights, GrownNetwork, NetworkError};
use crate::record::ScenarioFile;
use crate::run::StopSignal;
use crate::scenario::{DataSource, HostChoice, HostName, Normalise, Override, Stem, ron_text};

/// Values of `--normalise`.
const NORMALISES: &str = "imagenet; 0..1 (pixels over 255, as they are); M,S or M1,M2,M3,S1,S2,S3 (mean and deviation of \
                              each channel, of pixels from 0 to 1); a card.json or a kept network, as it was trained";

/// A network that somebody has trained.
pub struct Given {
    pub path: String,
    /// One of this engine's files, which bring their architecture, and how images were normalised.
    pub kept: Option<GrownNetwork>,
}

impl Given {
    pub fn read(path: &Path) -> Result<Self, Rejection> {
        let place = path.canonicalize();
        let mut place = place.map_err(|error| format!("--weights {}: {error}", path.display()))?;
        if place.is_dir() {
            // That of an export.
            place.push("kept.safetensors");
        }
        Ok(Self {
            kept: GrownNetwork::load_any(&place)?.ok(),
            path: place.display().to_string(),
        })
    }

    /// `has_host`: the host of the weights is set elsewhere.
    pub fn sets(&self, has_host: bool) -> Vec<(&'static str, String)> {
        let path = ron_text(&self.path);
        let mut sets = vec![match &self.kept {
            Some(_) if !has_host => ("task.host", format!("grown({path})")),
            _ => ("task.weights", format!("(path: {path})")),
        }];
        // A given module doesn't say which data it was trained on.
        let trained = self.kept.iter().filter(|network| !network.data.hash.is_empty());
        let normalise = trained.filter_map(|network| constants(&network.data));
        sets.extend(normalise.map(|normalise| ("task.normalise", normalise)));
        sets
    }
}

/// The value of `--normalise`, as a scenario has it.
fn normalise(text: &str) -> Result<String, Rejection> {
    let numbers = text.split(',').map(|number| number.trim().parse());
    let numbers = numbers.collect::<Result<Vec<f64>, _>>();
    let (mean, std) = match (text, numbers) {
        ("0..1", _) => return Ok(ron_text(&Normalise::None)),
        ("imagenet", _) => (vec![0.485, 0.456, 0.406], vec![0.229, 0.224, 0.225]),
        (_, Ok(mut numbers)) if numbers.len().is_multiple_of(2) => {
            let std = numbers.split_off(numbers.len() / 2);
            (numbers, std)
        }
        (_, Err(_)) if Path::new(text).exists() => {
            let known = constants(&card(Path::new(text))?);
            return Ok(known.ok_or_else(|| format!("--normalise {text}: it hasn't learnt from images"))?);
        }
        (_, Err(_)) => return Err(format!("--normalise {text}: there is no such file; valid: {NORMALISES}").into()),
        _ => return Err(format!("--normalise {text}: valid: {NORMALISES}").into()),
    };
    Ok(ron_text(&Normalise::Constants { mean, std }))
}

/// The data card of an export or of a kept network.
fn card(path: &Path) -> Result<DataCard, Rejection> {
    #[derive(Deserialize)]
    struct Card {
        data: DataCard,
    }
    if path.extension().is_some_and(|ending| ending == "json") {
        let file = BufReader::new(crate::files::open(path).at(path)?);
        let card: Card = serde_json::from_reader(file).at(path)?;
        return Ok(card.data);
    }
    Ok(GrownNetwork::load(path)?.data)
}

/// Pixels p are read as p·scale + offset, which is (p/full - mean)/std. `None` of texts.
fn constants(card: &DataCard) -> Option<String> {
    let DataCard {
        scale, offset, full, ..
    } = card;
    let std: Vec<f64> = scale.iter().map(|&scale| 1.0 / (full * f64::from(scale))).collect();
    let pairs = offset.iter().zip(&std);
    let mean = pairs.map(|(&offset, std)| -f64::from(offset) * std).collect();
    (!scale.is_empty()).then(|| ron_text(&Normalise::Constants { mean, std }))
}

/// Checks that the result can be put into its place without replacing an input.
///
/// # Errors
/// A folder with something else; one of the inputs.
pub fn check_output<const N: usize>(options: &NetworkOptions, others: [&Option<PathBuf>; N]) -> Result<(), Rejection> {
    check_place(&options.output, true)?;
    let inputs = [&options.data, &options.labels, &options.scenario, &options.old];
    check_apart(&options.output, inputs.into_iter().chain(others).flatten())?;
    check_outside(&options.output, [&options.data, &options.old].into_iter().flatten())
}

/// The scenario of all trainings. `sets` are the command's own fields, after its name.
///
/// # Errors
/// Data, a host or weights that cannot be read, or that do not fit each other.
pub fn base<'a>(
    (command, mut sets): (&str, Vec<(&'static str, String)>),
    options: &NetworkOptions,
    given: Option<&Given>,
    context: &'a Context,
    stop: &'a StopSignal,
) -> Result<Base<'a>, Rejection> {
    let (label, file) = match (&options.data, &options.scenario) {
        (Some(data), _) => {
            let text = text_of_data(data, options.labels.as_deref(), options.arrays)?;
            (command.to_owned(), ScenarioFile::of_text(&text))
        }
        (None, Some(path)) => (path.display().to_string(), read_scenario(path)?),
        (None, None) => {
            return Err(Rejection::Usage(format!(
                "{command} needs --data PATH or --scenario FILE"
            )));
        }
    };
    sets.push(("run.keep", "best".into()));
    // Nothing learns to decide here, and nothing is paid.
    sets.push(("policy.controller", "\"wait\"".into()));
    sets.extend(options.seed.map(|seed| ("run.seed", seed.to_string())));
    sets.extend(given.iter().flat_map(|given| given.sets(options.host.is_some())));
    let overrides = options.sets.iter().map(|set| Override::parse(set));
    let mut overrides = overrides.collect::<Result<Vec<_>, _>>()?;
    if let Some(text) = &options.normalise {
        let shown = format!("--normalise {text}");
        overrides.push(Override::argument(shown, "task.normalise", normalise(text)?));
    }
    let mut base = Base {
        label,
        file,
        sets,
        overrides,
        catalog: &context.names.catalog,
        extension: context.extension,
        threads: context.threads(),
        stop,
    };
    // What else is set may be of the host: its slots, say.
    let of_data = Base {
        overrides: base.overrides.iter().filter(|set| is_of_data(set)).cloned().collect(),
        ..base.clone()
    };
    let host = |base: &Base| match (&options.host, given) {
        (Some(host), _) => host_value(host, base, context).map(Some),
        (None, Some(Given { path, kept: None })) => host_of_weights(path, base, context).map(Some),
        _ => Ok(None),
    };
    let value = match host(&base) {
        Err(_) if of_data.overrides.len() < base.overrides.len() => host(&of_data)?,
        found => found?,
    };
    base.sets.extend(value.map(|value| ("task.host", value)));
    if given.is_some() && !says_normalisation(&base, options.scenario.is_some())? {
        return Err(Rejection::Usage(format!(
            "--weights needs --normalise: pixels have to be read as they were when the weights were trained; valid: {NORMALISES}"
        )));
    }
    Ok(base)
}

/// Returns whether the user says how images are normalised; `true` for texts, which aren't.
fn says_normalisation(base: &Base, has_scenario: bool) -> Result<bool, Rejection> {
    let loaded = base.prepare(&Variant::default())?.loaded;
    let is_of_it = |path: &str| path.starts_with("task.normalise");
    let is_set =
        base.overrides.iter().any(|set| is_of_it(&set.path)) || base.sets.iter().any(|(path, _)| is_of_it(path));
    let is_written = has_scenario && loaded.origins.keys().any(|path| is_of_it(path));
    Ok(is_set || is_written || loaded.task.data.topology() == Topology::Tokens)
}

/// A scenario for the data, as `init` writes it.
fn text_of_data(path: &Path, labels: Option<&Path>, arrays: ArrayOptions) -> Result<String, Rejection> {
    let absolute = |path: &Path| {
        let place = path.canonicalize();
        place.map_err(|error| Rejection::Usage(format!("cannot read the data {}: {error}", path.display())))
    };
    let check = CheckOptions {
        path: absolute(path)?,
        labels: labels.map(absolute).transpose()?,
        arrays,
        ..CheckOptions::default()
    };
    let surveyed = survey(&check.path, check.labels.as_deref(), check.known())?;
    Ok(format!("(\n{})\n", init::task(&surveyed, &check)?.ron))
}

/// Other data, at their path.
pub fn old_data(path: &Path, context: &Context) -> Result<TaskData, Rejection> {
    let text = text_of_data(path, None, ArrayOptions::default())?;
    let prepared = Prepared::from_ron("--old", &text, &[], &context.names.catalog)?;
    Ok(TaskData::load(&prepared.loaded.task, None, &context.names.data)?)
}

/// Returns whether it sets the inputs of a host, or the classes that it distinguishes.
fn is_of_data(set: &Override) -> bool {
    let fields = ["task.data", "task.classes"].map(|path| Override::argument(String::new(), path, String::new()));
    fields.iter().any(|field| field.overlaps(set))
}

/// The features that a host reads, and its classes: those of the data.
fn read_by_host(base: &Base, context: &Context) -> Result<(Features, i64), Rejection> {
    let task = base.prepare(&Variant::default())?.loaded.task;
    let host = context.names.hosts.of(&task.host, base.file.folder.as_deref())?;
    let mut input = host.plan(task.classes).input();
    if let DataSource::ImageFolder { size: Some(size), .. } = task.data {
        // By --set, which the host of a scenario for the data does not know.
        input.side = size as i64;
    }
    Ok((input, task.classes))
}

/// `--host` in the form of a scenario: a family, a known network for the data's channels and side, or unchanged RON.
fn host_value(host: &str, base: &Base, context: &Context) -> Result<String, Rejection> {
    if host.contains('(') {
        return Ok(host.into());
    }
    let (input, _) = read_by_host(base, context)?;
    let choice = match host {
        "cnn" => HostChoice::Cnn(Default::default()),
        "resnet" => HostChoice::Resnet(Default::default()),
        "vgg" => HostChoice::Vgg(Default::default()),
        name => HostChoice::Named(HostName(name.into())),
    };
    let design = context.names.hosts.of(&choice, None);
    let design = design.map_err(|error| Rejection::Usage(format!("--host: {error}; or a family: cnn, resnet, vgg")))?;
    let family = design.family().unwrap_or(choice);
    Ok(ron_text(&reading(family, input.channels, input.side)))
}

/// The known host, for the data's channels and side, that weights without a name are of: all of it, but a head perhaps.
fn host_of_weights(path: &str, base: &Base, context: &Context) -> Result<String, Rejection> {
    let hosts = &context.names.hosts;
    let (input, classes) = read_by_host(base, context)?;
    let names: Vec<String> = hosts.iter().map(|(name, _)| name.to_owned()).collect();
    let (mut nearest, mut most) = (String::new(), 0);
    for (name, stem) in names.iter().flat_map(|name| [(name, Stem::Small), (name, Stem::Large)]) {
        let known = HostChoice::Named(HostName(name.clone()));
        let Ok(design) = hosts.of(&known, None) else { continue };
        let mut choice = reading(design.family().unwrap_or(known), input.channels, input.side);
        match &mut choice {
            HostChoice::Resnet(resnet) => resnet.stem = stem,
            _ if stem == Stem::Large => continue,
            _ => {}
        }
        let Ok(design) = hosts.of(&choice, None) else { continue };
        let plan = design.plan(classes);
        let (fitting, why) = match GivenWeights::read(path, None, &plan) {
            Ok(given) if given.has_body(&plan) => return Ok(ron_text(&choice)),
            Ok(given) => (given.tensors.len(), given.notes.join("; ")),
            Err(NetworkError::Weights { fitting, wrong, .. }) => (fitting, wrong[..wrong.len().min(2)].join("; ")),
            Err(NetworkError::Host(_) | NetworkError::Torch(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        if fitting > most || nearest.is_empty() {
            let large = ["", " with a large stem"][usize::from(stem == Stem::Large)];
            (nearest, most) = (format!("; the nearest is {name}{large}: {why}"), fitting);
        }
    }
    let names = names.join(", ");
    Err(Rejection::Usage(format!(
        "--weights {path}: they fit none of {names} with {classes} classes{nearest}; name their host by --host, or convert a \
         PyTorch module by to_host, as docs/guide/src/bring_a_network.md shows"
    )))
}
