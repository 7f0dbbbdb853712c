//! `grow`: a network on a user's data within a budget, beside other uses of the same compute.

mod given;

use std::path::Path;

use super::console::Progress;
use super::named::{check_apart, check_outside};
use super::options::{ArrayOptions, CheckOptions, GrowOptions};
use super::rejection::Rejection;
use super::{Context, Outcome, init};
use crate::controller::{SavedFolder, SavedPolicy};
use crate::data::{TaskData, survey};
use crate::engine::{Prepared, read_scenario};
use crate::export::{self, GROWTH_FILE, REPORT_FILE, SCENARIO_FILE, check_place, export_network};
use crate::grow::{Base, GrowError, Growth, Order, Variant, grow};
use crate::growth::Topology;
use crate::host::{Features, reading};
use crate::network::{GivenWeights, NetworkError};
use crate::record::ScenarioFile;
use crate::report::{growth_page, growth_text};
use crate::run::StopSignal;
use crate::scenario::{DataSource, HostChoice, HostName, Override, Stem, resolved_ron, ron_text};
use given::{Given, NORMALISES, normalise};

/// Grows, compares, chooses, writes.
pub fn run(options: &GrowOptions, context: &Context) -> Result<Outcome, Rejection> {
    let stop = context.heeded_stop()?;
    check_place(&options.output, true)?;
    let inputs = [
        &options.data,
        &options.labels,
        &options.scenario,
        &options.weights,
        &options.policy,
        &options.old,
    ];
    check_apart(&options.output, inputs.into_iter().flatten())?;
    check_outside(&options.output, [&options.data, &options.old].into_iter().flatten())?;
    let order = order(options, context, &stop)?;
    context.terminal.say_once();
    let mut progress = Progress::new(&context.terminal);
    let grown = grow(&order, &mut |event| progress.show(event));
    progress.clear();
    let growth = match grown {
        Ok(growth) => growth,
        Err(stopped @ GrowError::Stopped(_)) => {
            context.printer.note(stopped);
            return Ok(stop.requested().map_or(Outcome::Failed, Outcome::Stopped));
        }
        Err(error) => return Err(error.into()),
    };
    write(&growth, options)?;
    Ok(context.printer.show_either(&growth, || {
        growth_text(&growth, &options.output, context.printer.width())
    }))
}

fn order<'a>(options: &GrowOptions, context: &'a Context, stop: &'a StopSignal) -> Result<Order<'a>, Rejection> {
    let given = options.weights.as_deref().map(Given::read).transpose()?;
    let has_host = options.host.is_some();
    let (label, file) = match (&options.data, &options.scenario) {
        (Some(data), _) => {
            let text = text_of_data(data, options.labels.as_deref(), options.arrays)?;
            ("grow".into(), ScenarioFile::of_text(&text))
        }
        (None, Some(path)) => (path.display().to_string(), read_scenario(path)?),
        (None, None) => return Err(Rejection::Usage("grow needs --data PATH or --scenario FILE".into())),
    };
    let mut sets = vec![
        ("name", "\"grow\"".into()),
        ("run.rounds", "1".into()),
        ("run.n_envs", options.tries.to_string()),
        ("run.keep", "best".into()),
        // Nothing learns to decide here, and nothing is paid.
        ("policy.controller", "\"wait\"".into()),
    ];
    sets.extend(options.steps.map(|steps| ("run.max_steps", steps.to_string())));
    sets.extend(options.seed.map(|seed| ("run.seed", seed.to_string())));
    sets.extend(given.iter().flat_map(|given| given.sets(has_host)));
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
    let host = |base: &Base| match (&options.host, &given) {
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
    let policy = options.policy.as_deref().map(SavedFolder::read).transpose();
    let policy = policy.map_err(|error| Rejection::Usage(format!("--policy: {error}")))?;
    policy.as_ref().map(SavedPolicy::read).transpose()?;
    let old = options.old.as_deref().map(|path| old_data(path, context)).transpose()?;
    Ok(Order {
        base,
        names: context.names,
        budget: options.budget,
        is_given: given.is_some(),
        is_frozen: options.freeze,
        rates: options.rates.clone(),
        policy,
        old,
        keep: options.keep,
        place: options.output.clone(),
        is_forced: options.force,
    })
}

/// Whether it is said how images are normalised; of texts there is nothing to say.
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
fn old_data(path: &Path, context: &Context) -> Result<TaskData, Rejection> {
    let text = text_of_data(path, None, ArrayOptions::default())?;
    let prepared = Prepared::from_ron("--old", &text, &[], &context.names.catalog)?;
    Ok(TaskData::load(&prepared.loaded.task, None, &context.names.data)?)
}

/// Whether it says what a host reads, or which classes it tells apart.
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

/// `--host` as a scenario writes it: a family, a known network for the data's channels and side, or what is RON already.
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
            (nearest, most) = (format!("; nearest is {name}{large}: {why}"), fitting);
        }
    }
    let names = names.join(", ");
    Err(Rejection::Usage(format!(
        "--weights {path}: they are of none of {names} with {classes} classes{nearest}; leave what does not fit out of the file, or say of which \
         host they are by --host"
    )))
}

/// Puts the network that was chosen, the table and the scenario into the folder.
fn write(growth: &Growth, options: &GrowOptions) -> Result<(), Rejection> {
    let network = &growth.network;
    let failed = |error: &dyn std::fmt::Display| Rejection::Usage(format!("the result is not written: {error}"));
    let kept = network.to_bytes().map_err(|error| failed(&error))?;
    let mut files = export_network(network, kept, Some(&growth.choice.why))?;
    let table = serde_json::to_vec_pretty(growth).map_err(|error| failed(&error))?;
    let scenario = resolved_ron(&growth.scenario).map_err(|error| failed(&error))?;
    files.extend([
        (GROWTH_FILE, table),
        (SCENARIO_FILE, scenario.into_bytes()),
        (REPORT_FILE, growth_page(growth).into_bytes()),
    ]);
    Ok(export::write(&options.output, &files)?)
}
