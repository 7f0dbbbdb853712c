//! `grow`: a network on a user's data within a budget, beside what else the compute could have been spent on.

use std::path::Path;

use indicatif::ProgressBar;

use super::options::{CheckOptions, GrowOptions};
use super::progress::Progress;
use super::rejection::Rejection;
use super::{Context, Outcome, init};
use crate::controller::SavedFolder;
use crate::data::{TaskData, survey};
use crate::engine::{Prepared, SetupError, read_text};
use crate::export::{self, GROWTH_FILE, REPORT_FILE, SCENARIO_FILE, check_place, export_network};
use crate::grow::{Base, GrowError, GrowEvent, Growth, Order, Variant, grow};
use crate::host::{Features, reading};
use crate::network::{GivenWeights, GrownNetwork, NetworkError};
use crate::record::{ScenarioFile, scenario_folder};
use crate::report::{growth_page, growth_text};
use crate::run::StopSignal;
use crate::scenario::{HostChoice, HostName, Normalise, Override, Stem, resolved_ron, ron_text};

/// Grows, compares, chooses, writes.
pub fn run(options: &GrowOptions, context: &Context) -> Result<Outcome, Rejection> {
    let stop = context.heeded_stop()?;
    check_place(&options.output, options.force)?;
    let order = order(options, context, &stop)?;
    let mut attempts = Attempts::new(context);
    let grown = grow(&order, &mut |event| attempts.show(event));
    attempts.bar.finish_and_clear();
    let growth = match grown {
        Ok(growth) => growth,
        Err(GrowError::Stopped) => {
            context.printer.note(GrowError::Stopped);
            return Ok(stop.requested().map_or(Outcome::Failed, Outcome::Stopped));
        }
        Err(error) => return Err(error.into()),
    };
    for note in &growth.notes {
        context.printer.note(format_args!("note: {note}"));
    }
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
            let text = text_of_data(data, options.labels.as_deref())?;
            ("grow".into(), ScenarioFile::of_text(&text))
        }
        (None, Some(path)) => {
            let file = ScenarioFile {
                text: read_text(path)?,
                folder: scenario_folder(path).map_err(SetupError::from)?,
                path: Some(path.clone()),
            };
            (path.display().to_string(), file)
        }
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
    let mut base = Base {
        label,
        file,
        sets,
        overrides: overrides.collect::<Result<_, _>>()?,
        catalog: &context.catalog,
        extension: context.extension,
        threads: context.threads(),
        stop,
    };
    if let Some(host) = &options.host {
        let value = host_value(host, &base, context)?;
        base.sets.push(("task.host", value));
    } else if let Some(Given { path, kept: None }) = &given {
        let value = host_of_weights(path, &base, context)?;
        base.sets.push(("task.host", value));
    }
    let policy = options.policy.as_deref().map(SavedFolder::read).transpose();
    let old = options.old.as_deref().map(|path| old_data(path, context)).transpose()?;
    Ok(Order {
        base,
        names: context.names,
        budget: options.budget,
        is_given: given.is_some(),
        is_frozen: options.freeze,
        rates: options.rates.clone(),
        policy: policy.map_err(|error| Rejection::Usage(format!("--policy: {error}")))?,
        old,
    })
}

/// A network that somebody has trained.
struct Given {
    path: String,
    /// One of this engine's files, which bring their architecture, and how images were normalised.
    kept: Option<GrownNetwork>,
}

impl Given {
    fn read(path: &Path) -> Result<Self, String> {
        let place = path.canonicalize();
        let place = place.map_err(|error| format!("--weights {}: {error}", path.display()))?;
        Ok(Self {
            // What is wrong with other files is said where they are read.
            kept: GrownNetwork::load(&place).ok(),
            path: place.display().to_string(),
        })
    }

    /// `has_host`: it is said of which host they are.
    fn sets(&self, has_host: bool) -> Vec<(&'static str, String)> {
        let path = ron_text(&self.path);
        let weights = ("task.weights", format!("(path: {path})"));
        let Some(network) = &self.kept else {
            return vec![weights];
        };
        let mut sets = vec![if has_host {
            weights
        } else {
            ("task.host", format!("grown({path})"))
        }];
        let (scale, offset) = (&network.data.scale, &network.data.offset);
        if !scale.is_empty() {
            // Pixels p are read as p·scale + offset, which is (p/255 - mean)/std.
            let std: Vec<f64> = scale.iter().map(|&scale| 1.0 / (255.0 * f64::from(scale))).collect();
            let mean = offset
                .iter()
                .zip(&std)
                .map(|(&offset, std)| -f64::from(offset) * std)
                .collect();
            sets.push(("task.normalise", ron_text(&Normalise::Constants { mean, std })));
        }
        sets
    }
}

/// A scenario for the data, as `init` writes it.
fn text_of_data(path: &Path, labels: Option<&Path>) -> Result<String, Rejection> {
    let absolute = |path: &Path| {
        let place = path.canonicalize();
        place.map_err(|error| Rejection::Usage(format!("cannot read the data {}: {error}", path.display())))
    };
    let check = CheckOptions {
        path: absolute(path)?,
        labels: labels.map(absolute).transpose()?,
        ..CheckOptions::default()
    };
    let surveyed = survey(&check.path, check.labels.as_deref(), check.known())?;
    Ok(format!("(\n{})\n", init::task(&surveyed, &check)?.ron))
}

/// Other data, at their path.
fn old_data(path: &Path, context: &Context) -> Result<TaskData, Rejection> {
    let text = text_of_data(path, None)?;
    let prepared = Prepared::from_ron("--old", &text, &[], &context.catalog)?;
    Ok(TaskData::load(&prepared.loaded.task, None, &context.names.data)?)
}

/// What a host reads, and its classes: those of the data.
fn read_by_host(base: &Base, context: &Context) -> Result<(Features, i64), Rejection> {
    let task = base.prepare(&Variant::default())?.loaded.task;
    let host = context.names.hosts.of(&task.host, base.file.folder.as_deref())?;
    Ok((host.plan(task.classes).input(), task.classes))
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
        if fitting > most {
            let large = ["", " with a large stem"][usize::from(stem == Stem::Large)];
            (nearest, most) = (format!("; nearest is {name}{large}: {why}"), fitting);
        }
    }
    let names = names.join(", ");
    Err(Rejection::Usage(format!(
        "--weights {path}: they are of none of {names} with {classes} classes{nearest}; say of which host they are by --host"
    )))
}

/// What is being tried.
struct Attempts {
    progress: Progress,
    bar: ProgressBar,
    name: String,
}

impl Attempts {
    fn new(context: &Context) -> Self {
        let progress = Progress::new(context);
        Self {
            bar: progress.bar(1, "{bar:24} {percent:>3} %  {msg}"),
            progress,
            name: String::new(),
        }
    }

    fn show(&mut self, event: GrowEvent) {
        match event {
            GrowEvent::Begins { name, steps } => {
                name.clone_into(&mut self.name);
                self.bar.set_length(steps);
                self.bar.set_position(0);
                self.bar.set_message(self.name.clone());
            }
            GrowEvent::Step => self.bar.inc(1),
            GrowEvent::Ends { validation } => {
                let accuracy = validation.map_or("nothing was measured".into(), |accuracy| {
                    format!("{accuracy:.2} % of the validation part")
                });
                self.progress.say(&format!("{}: {accuracy}", self.name));
            }
        }
    }
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
