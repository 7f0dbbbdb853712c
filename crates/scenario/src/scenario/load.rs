//! From text to a scenario that can run, or to the list of everything that is wrong with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

use super::catalog::Catalog;
use super::check::{Checked, DEFAULTS, check};
use super::layers::{self, Override, settled};
use super::paths;
use super::presets::{OWN_IMAGES, preset_named};
use super::problem::{Cursor, Problem, Report, Source, SourceKind};
use super::reader::{self, Document};
use super::tree::{Node, Span, Value};
use super::validate::{Finding, validate};
use super::{HostOutline, RewardProfile, SCENARIO, Scenario, TaskChoice, TaskSpec};
use crate::files::{resolved_ron, ron_text};
use crate::growth::SlotId;

/// Sources of a scenario.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// File name as the user gave it.
    pub label: &'a str,
    /// The scenario as RON.
    pub text: &'a str,
    /// Overrides on the command line.
    pub overrides: &'a [Override],
}

/// A scenario without errors.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// As written, defaults filled in; the task in full.
    pub scenario: Scenario,
    /// All overrides applied: see [`Scenario::task_spec`].
    pub task: TaskSpec,
    /// The outline of the task's host.
    pub host: HostOutline,
    /// Profile of the reward.
    pub reward: RewardProfile,
    /// Enabled slots in the policy's order.
    pub slots: Vec<SlotId>,
    /// The source of each value other than a default, by path.
    pub origins: BTreeMap<String, String>,
    /// Advice that does not stop the run.
    pub warnings: Report,
}

/// The source after the defaults; overrides and presets follow.
const FILE: usize = 1;

/// The layer below all others and its text, which no scenario changes: a sweep loads thousands of them.
static LOWEST: LazyLock<(String, Option<Node>)> = LazyLock::new(|| {
    let text = resolved_ron(&Scenario::default()).unwrap_or_default();
    let root = reader::read(&text, DEFAULTS).ok().map(|document| document.root);
    (text, root)
});

/// Reads, layers and checks a scenario.
///
/// # Errors
/// Every problem found, with its position.
pub fn load(input: &Input<'_>, catalog: &Catalog) -> Result<Loaded, Report> {
    load_in(input, None, catalog)
}

/// As [`load`], for a file in `folder`, where relative paths begin: what a task of own images leaves to its data is found there.
///
/// # Errors
/// Every problem found, with its position.
pub fn load_in(input: &Input<'_>, folder: Option<&Path>, catalog: &Catalog) -> Result<Loaded, Report> {
    let mut layering = Layering::new(input);
    let Some(layers) = layering.read_layers(input, folder) else {
        return Err(Report::new(layering.sources, layering.problems));
    };
    let whole = layering.resolve(&layers, input.label, catalog);
    let report = Report::new(layering.sources, layering.problems);
    match whole {
        Some(mut loaded) if !report.has_errors() => {
            loaded.warnings = report;
            Ok(loaded)
        }
        _ => Err(report),
    }
}

/// The sources of a scenario as they were read, defaults and presets aside.
struct Layers<'a> {
    file: Node,
    overrides: Vec<(&'a Override, Option<Node>)>,
    folder: Option<&'a Path>,
}

struct Layering {
    sources: Vec<Source>,
    problems: Vec<Problem>,
}

impl Layering {
    fn new(input: &Input<'_>) -> Self {
        let mut layering = Self {
            sources: Vec::new(),
            problems: Vec::new(),
        };
        layering.add_source("defaults", &LOWEST.0, SourceKind::Defaults);
        layering.add_source(input.label, input.text, SourceKind::File);
        layering
    }

    fn add_source(&mut self, label: &str, text: &str, kind: SourceKind) -> usize {
        self.sources.push(Source::new(label, text, kind));
        self.sources.len() - 1
    }

    /// Reads one source; its syntax error or its repeated keys become problems.
    fn read(&mut self, source: usize) -> Option<Node> {
        match reader::read(&self.sources[source].text, source) {
            Ok(Document { root, noted }) => {
                self.problems.extend(noted);
                Some(root)
            }
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    /// `None` where the file cannot be read at all.
    fn read_layers<'a>(&mut self, input: &Input<'a>, folder: Option<&'a Path>) -> Option<Layers<'a>> {
        let file = self.read(FILE);
        let overrides: Vec<_> = input
            .overrides
            .iter()
            .map(|over| (over, self.override_node(over)))
            .collect();
        self.report_conflicts(input.overrides, &overrides);
        Some(Layers {
            file: file?,
            overrides,
            folder,
        })
    }

    /// Lays everything over each other and checks the result.
    fn resolve(&mut self, layers: &Layers, label: &str, catalog: &Catalog) -> Option<Loaded> {
        let root = self.merge(layers, catalog)?;
        let checked = check(&SCENARIO, root, catalog, &self.sources);
        self.problems.extend(checked.problems.iter().cloned());
        let mut loaded = None;
        match checked.clean.as_ref().map(Scenario::deserialize) {
            Some(Ok(mut scenario)) => {
                if scenario.name.is_empty() {
                    scenario.name = run_name(label);
                }
                if let Some(task) = scenario.written_task(catalog) {
                    // A recorded task must not change with a later version's presets.
                    scenario.task = TaskChoice::Custom(Box::new(task));
                }
                if let Some(task) = scenario.task_spec(catalog) {
                    match catalog.hosts.outline(&task.host, task.classes, layers.folder) {
                        Err(why) => self.add_findings(vec![Finding::of_host(why)], &checked),
                        Ok(host) => {
                            let findings = validate(&scenario, &task, &host, catalog);
                            self.add_findings(findings, &checked);
                            loaded = Some(Loaded {
                                slots: task.ordered_slots(),
                                reward: catalog.profiles.profile(&scenario.reward),
                                scenario,
                                task,
                                host,
                                origins: self.origins(&checked.places),
                                warnings: Report::default(),
                            });
                        }
                    }
                }
            }
            Some(Err(error)) if self.problems.is_empty() => {
                let message = format!("this cannot be read as a scenario: {error}");
                self.problems.push(Problem::error(Span::start_of(FILE), "", message));
            }
            _ => {}
        }
        loaded
    }

    /// All layers in one tree; `None` where one cannot be read at all.
    fn merge(&mut self, layers: &Layers, catalog: &Catalog) -> Option<Node> {
        let mut lower = LOWEST.1.clone()?;
        self.add_preset(layers, &mut lower)?;
        let known = self.problems.len();
        let root = self.lay_over(lower.clone(), layers, catalog);
        match settled(&root, catalog, layers.folder) {
            None => return Some(root),
            Some(Err(problem)) => {
                self.problems.push(problem);
                return Some(root);
            }
            Some(Ok(task)) => {
                let task = TaskChoice::Preset(OWN_IMAGES.into(), Box::new(task));
                let text = format!("(task: {})", ron_text(&task));
                let source = self.add_source("the data", &text, SourceKind::Preset);
                let mut settled = self.read(source)?;
                settled.fields_mut()?.iter_mut().for_each(|(_, task)| task.drop_none());
                lower.overlay(settled);
            }
        }
        // What is wrong with an override is found again.
        self.problems.truncate(known);
        Some(self.lay_over(lower, layers, catalog))
    }

    /// Lays the written values over `root`; parts are chosen before any of their settings is set.
    fn lay_over(&mut self, mut root: Node, layers: &Layers, catalog: &Catalog) -> Node {
        root.overlay(layers.file.clone());
        let is_of_part = |over: &Override| paths::lookup(&SCENARIO, &over.path).is_err();
        let (of_parts, fields): (Vec<_>, Vec<_>) = layers.overrides.iter().partition(|(over, _)| is_of_part(over));
        for (over, node) in fields.into_iter().chain(of_parts) {
            if let Some(node) = node
                && let Err(problem) = layers::put(&SCENARIO, &mut root, &over.path, node.clone(), catalog)
            {
                self.problems.push(problem);
            }
        }
        root
    }

    /// Lays the preset over `root` that the strongest layer names.
    fn add_preset(&mut self, layers: &Layers, root: &mut Node) -> Option<()> {
        let overriding = layers.overrides.iter().rev().find(|(over, _)| over.path == "preset");
        let chosen = match overriding {
            Some((_, node)) => node.as_ref(),
            None => layers.file.field("preset"),
        };
        if let Some(Value::Text(name) | Value::Word(name)) = chosen.map(|node| &node.value)
            && let Some(preset) = preset_named(name)
        {
            let label = format!("preset {}", preset.name);
            let source = self.add_source(&label, preset.values.get_ron(), SourceKind::Preset);
            root.overlay(self.read(source)?);
        }
        Some(())
    }

    fn override_node(&mut self, over: &Override) -> Option<Node> {
        let source = self.add_source(&over.shown, &over.value, SourceKind::Argument);
        if over.is_plain_text(&SCENARIO) {
            let span = Span {
                source,
                start: 0,
                end: over.value.len(),
            };
            return Some(Node::new(Value::Text(over.value.clone()), span));
        }
        self.read(source)
    }

    /// A field that two arguments set is an error.
    fn report_conflicts(&mut self, overrides: &[Override], nodes: &[(&Override, Option<Node>)]) {
        for (index, later) in overrides.iter().enumerate().filter(|(_, later)| !later.is_above) {
            if let Some(earlier) = overrides[..index].iter().find(|earlier| later.overlaps(earlier)) {
                let node = nodes[index].1.as_ref();
                let span = node.map_or(Span::start_of(FILE), |node| node.span);
                let message = format!("already given by {}; give it once", earlier.shown);
                self.problems.push(Problem::error(span, &later.path, message));
            }
        }
    }

    /// Findings about values that are sound in themselves, at the first of their fields that the user wrote.
    fn add_findings(&mut self, findings: Vec<Finding>, checked: &Checked) {
        let known: Vec<String> = self.problems.iter().map(|problem| problem.path.clone()).collect();
        let within = |inner: &str, outer: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        for mut finding in findings {
            for path in &mut finding.paths {
                *path = checked.written_path(path);
            }
            let follows_from_another = finding.paths.iter().any(|path| {
                known
                    .iter()
                    .any(|known| !known.is_empty() && (within(path, known) || within(known, path)))
            });
            if follows_from_another {
                continue;
            }
            let written = finding.paths.iter().find_map(|path| {
                let span = *checked.places.get(path)?;
                (self.sources[span.source].kind != SourceKind::Defaults).then_some((path, span))
            });
            let fallback = finding.paths.first().map(String::as_str).unwrap_or_default();
            let (path, span) = written.map_or((fallback, Span::start_of(FILE)), |(path, span)| (path.as_str(), span));
            self.problems.push(Problem {
                severity: finding.severity,
                span,
                path: path.into(),
                message: finding.message,
                help: finding.help,
            });
        }
    }

    fn origins(&self, places: &BTreeMap<String, Span>) -> BTreeMap<String, String> {
        let has_below = |path: &str, mark: char| {
            let prefix = format!("{path}{mark}");
            let next = places.range(prefix.clone()..).next();
            next.is_some_and(|(next, _)| next.starts_with(&prefix))
        };
        let is_leaf = |path: &str| !has_below(path, '.') && !has_below(path, '[');
        let is_written = |(path, span): &(&String, &Span)| {
            !path.is_empty() && self.sources[span.source].kind != SourceKind::Defaults && is_leaf(path)
        };
        let mut written: Vec<_> = places.iter().filter(is_written).collect();
        written.sort_unstable_by_key(|(_, span)| (span.source, span.start));
        let mut cursors: Vec<Cursor> = self.sources.iter().map(|source| Cursor::new(&source.text)).collect();
        let placed = written.into_iter().map(|(path, span)| {
            let position = cursors[span.source].position(span.start);
            (path.clone(), self.sources[span.source].place(position))
        });
        placed.collect()
    }
}

impl Scenario {
    /// The task in full: its preset's fields where the scenario says nothing else. `None` for a task name that is not in the
    /// catalog, which the check reports.
    fn written_task(&self, catalog: &Catalog) -> Option<TaskSpec> {
        match &self.task {
            TaskChoice::Custom(spec) => Some((**spec).clone()),
            TaskChoice::Preset(name, overrides) => {
                let mut tasks = catalog.tasks.iter().map(|task| &task.spec);
                let mut spec = tasks.find(|spec| spec.name.eq_ignore_ascii_case(name))?.clone();
                overrides.apply(&mut spec);
                Some(spec)
            }
        }
    }

    /// The task with what other sections say in it: `run.max_steps`, `lifecycle.slots` and `lifecycle.max_seeds`, and the
    /// validation batch size resolved. `None` for a task name that is not in the catalog.
    pub fn task_spec(&self, catalog: &Catalog) -> Option<TaskSpec> {
        let mut spec = self.written_task(catalog)?;
        if let Some(slots) = &self.lifecycle.slots {
            spec.slots.clone_from(slots);
        }
        spec.max_seeds = self.lifecycle.max_seeds.unwrap_or(spec.max_seeds);
        spec.max_steps = self.run.max_steps.unwrap_or(spec.max_steps);
        spec.val_batch_size = Some(spec.val_rows());
        Some(spec)
    }
}

/// A run name from a file name: its stem, odd characters replaced.
fn run_name(label: &str) -> String {
    let stem = Path::new(label).file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = stem.chars().map(plain).take(64).collect();
    let name = name.trim_start_matches(['.', '_', '-']);
    if name.is_empty() { "run".into() } else { name.into() }
}
