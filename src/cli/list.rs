//! `list` and `explain`: what this build knows.

use serde::Serialize;

use super::output::Printer;
use super::rejection::Rejection;
use super::{Context, ListWhat, Outcome};
use crate::growth::SlotId;
use crate::report::{Table, wrapped};
use crate::scenario::{
    self, Catalog, Entry, Explanation, HostChoice, HostName, HostOutline, Scenario, TRAINING_PRESETS,
    TaskPreset, TaskSpec, UnknownField, data_forms, host_families, reward_forms,
};
use crate::sweep::SweepFile;
use crate::telemetry::{Detectors, Payload};

/// Prints one of the lists.
pub fn list(what: ListWhat, context: &Context) -> Outcome {
    let Context { printer, catalog, .. } = context;
    match what {
        ListWhat::Tasks => {
            let rows = catalog.tasks.iter().map(|task| task_row(task, catalog));
            let head = [
                "task", "host", "widths", "size", "batch", "episode", "slots", "question",
            ];
            print(&catalog.tasks, &head, rows, printer)
        }
        ListWhat::Data => {
            let forms = data_forms(catalog);
            let rows = forms
                .iter()
                .map(|form| vec![form.form.clone(), form.summary.clone(), form.tasks.join(", ")]);
            print(&forms, &["data", "what it is", "tasks"], rows, printer)
        }
        ListWhat::Hosts => {
            let hosts = host_rows(catalog);
            let head = ["host", "size", "ops", "widths", "slots", "what it is"];
            print(&hosts, &head, hosts.iter().map(HostRow::cells), printer)
        }
        ListWhat::Blueprints => {
            let rows = catalog.blueprints.iter().map(|blueprint| {
                let note = if blueprint.selectable { "" } else { " (not selectable)" };
                vec![
                    blueprint.index.to_string(),
                    blueprint.name.clone(),
                    blueprint
                        .grows_in
                        .iter()
                        .map(|topology| topology.name())
                        .collect::<Vec<_>>()
                        .join(", "),
                    format!("{}{note}", blueprint.summary),
                ]
            });
            let head = ["index", "blueprint", "grows in", "what it is"];
            print(&catalog.blueprints, &head, rows, printer)
        }
        ListWhat::Rewards => print_entries(&reward_forms(catalog), printer),
        ListWhat::Controllers => print_entries(&catalog.controllers, printer),
        ListWhat::Networks => print_entries(&catalog.nets, printer),
        ListWhat::Presets => {
            let presets = presets();
            printer.show_either(&presets, || {
                let paragraphs = presets.iter().map(|preset| preset.paragraph(printer.width()));
                paragraphs.collect::<String>()
            })
        }
        ListWhat::Events => {
            let rows = Payload::CATALOGUE.iter();
            let rows = rows.map(|event| vec![event.name.into(), event.summary.into()]);
            print(&Payload::CATALOGUE, &["event", "what it says"], rows, printer)
        }
        ListWhat::Detectors => {
            let detectors = detectors(&context.names.detectors);
            let rows = detectors.iter().map(|row| {
                let condition = format!("{} {}", row.comparison, row.threshold);
                vec![
                    row.name.clone(),
                    row.severity.into(),
                    condition,
                    row.window.to_string(),
                    format!("{}: {}", row.summary, row.remedy),
                ]
            });
            let head = [
                "detector",
                "severity",
                "value",
                "in a row",
                "what is wrong, and what to do",
            ];
            print(&detectors, &head, rows, printer)
        }
        ListWhat::Plugins => {
            let plugins = &context.names.plugins;
            let rows = plugins
                .iter()
                .map(|plugin| vec![plugin.name.clone(), plugin.version.clone(), plugin.summary.clone()]);
            print(plugins, &["plugin", "version", "what it does"], rows, printer)
        }
    }
}

fn print(
    items: &impl Serialize,
    head: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    printer: &Printer,
) -> Outcome {
    printer.show_either(items, || Table::of(head, &[], rows).render())
}

fn print_entries(entries: &[Entry], printer: &Printer) -> Outcome {
    let rows = entries
        .iter()
        .map(|entry| vec![entry.name.clone(), entry.summary.clone()]);
    print(&entries, &["name", "what it is"], rows, printer)
}

/// A rule that looks for anomalies.
#[derive(Serialize)]
struct DetectorRow {
    name: String,
    severity: &'static str,
    comparison: &'static str,
    threshold: f64,
    window: u32,
    summary: String,
    remedy: String,
}

fn detectors(registered: &Detectors) -> Vec<DetectorRow> {
    let summaries = registered.iter().map(|(_, summary)| summary.to_owned());
    let rows = registered
        .parts()
        .zip(summaries)
        .map(|((name, detector), summary)| DetectorRow {
            name: name.into(),
            severity: detector.severity.name(),
            comparison: detector.comparison.sign(),
            threshold: detector.threshold,
            window: detector.window.max(1),
            summary,
            remedy: detector.remedy.clone(),
        });
    rows.collect()
}

/// Values under a name, and the field that the name is given to.
#[derive(Serialize)]
struct Preset {
    field: &'static str,
    name: &'static str,
    /// RON, on one line.
    values: String,
}

impl Preset {
    fn paragraph(&self, width: usize) -> String {
        let values = wrapped(&self.values, width - 4).replace('\n', "\n    ");
        format!("{}: \"{}\"\n    {values}\n", self.field, self.name)
    }
}

fn presets() -> Vec<Preset> {
    let presets = TRAINING_PRESETS.iter().map(|preset| Preset {
        field: "preset",
        name: &preset.name,
        values: preset.values.get_ron().split_whitespace().collect::<Vec<_>>().join(" "),
    });
    presets.collect()
}

fn task_row(task: &TaskPreset, catalog: &Catalog) -> Vec<String> {
    let spec = &task.spec;
    let host = catalog.hosts.outline(&spec.host, spec.classes, None).ok();
    let of_host = |tell: fn(&HostOutline) -> String| host.as_ref().map(tell).unwrap_or_default();
    vec![
        spec.name.clone(),
        spec.host.label().into(),
        of_host(HostOutline::widths),
        of_host(|host| format!("{} parameters", host.parameters)),
        format!("batch {}", spec.batch_size),
        format!("{} steps", spec.max_steps),
        slots(spec),
        task.question.clone(),
    ]
}

/// Classes for which parameters are listed.
const CLASSES: i64 = 10;

/// A host as a scenario may choose it.
#[derive(Serialize)]
struct HostRow {
    name: String,
    summary: String,
    /// Absent for a family: its fields decide.
    #[serde(flatten)]
    size: Option<HostSize>,
}

#[derive(Serialize)]
struct HostSize {
    /// With ten classes.
    parameters: u64,
    ops: usize,
    /// Channels of the images, and along the line.
    widths: String,
    /// In the order in which they are executed.
    slots: Vec<SlotId>,
}

impl HostRow {
    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.name.clone()];
        if let Some(size) = &self.size {
            let ends = match size.slots.as_slice() {
                [first, .., last] => format!("{} slots {first}..{last}", size.slots.len()),
                [only] => format!("slot {only}"),
                [] => "no slots".into(),
            };
            cells.extend([
                format!("{} parameters", size.parameters),
                format!("{} ops", size.ops),
                size.widths.clone(),
                ends,
            ]);
        } else {
            cells.extend(["by its fields".into(), String::new(), String::new(), String::new()]);
        }
        cells.push(self.summary.clone());
        cells
    }
}

/// Families first, as a scenario writes them, then names.
fn host_rows(catalog: &Catalog) -> Vec<HostRow> {
    let families = host_families().into_iter().map(|Entry { name, summary }| HostRow {
        name,
        summary,
        size: None,
    });
    let named = catalog.hosts.entries().into_iter().map(|Entry { name, summary }| {
        let choice = HostChoice::Named(HostName(name.clone()));
        let size = catalog.hosts.outline(&choice, CLASSES, None).ok().map(|host| HostSize {
            parameters: host.parameters,
            ops: host.ops,
            widths: host.widths(),
            slots: host.by_depth().map(|place| place.slot).collect(),
        });
        HostRow { name, summary, size }
    });
    families.chain(named).collect()
}

fn slots(spec: &TaskSpec) -> String {
    match (spec.slots.first(), spec.slots.last()) {
        (Some(first), Some(last)) if first != last => format!("{first}..{last}"),
        (Some(only), _) => only.to_string(),
        _ => "no slots".into(),
    }
}

/// Before the dotted paths of sweep files.
pub const SWEEP: &str = "sweep";

pub fn explain(path: &str, context: &Context) -> Result<Outcome, Rejection> {
    let explanation = explanation(path, &context.catalog)?;
    Ok(context.printer.show_either(&explanation, || &explanation))
}

/// Of a field of a scenario, or of a sweep file.
fn explanation(path: &str, catalog: &Catalog) -> Result<Explanation, UnknownField> {
    let of_sweep = |below: &str| scenario::explain::<SweepFile>(SWEEP, below, catalog);
    match path.split_once('.').unwrap_or((path, "")) {
        (SWEEP, below) => of_sweep(below),
        _ => scenario::explain::<Scenario>("", path, catalog).map_err(|unknown| UnknownField {
            suggestion: of_sweep(path).map_or(unknown.suggestion, |found| Some(found.path)),
            ..unknown
        }),
    }
}
