//! `list` and `explain`: the names and fields that this build knows.

use serde::Serialize;
use serde_json::{Value, json};

use super::output::Printer;
use super::rejection::Rejection;
use super::{Context, ListWhat, Outcome};
use crate::growth::SlotId;
use crate::report::{Table, wrapped};
use crate::scenario::{
    self, Catalog, Entry, Explanation, HostChoice, HostName, HostOutline, Scenario, TRAINING_PRESETS, TaskPreset,
    TaskSpec, UnknownField, data_forms, host_families, reward_forms,
};
use crate::sweep::SweepFile;
use crate::telemetry::Payload;

/// Prints one of the lists.
pub fn list(what: ListWhat, context: &Context) -> Outcome {
    let (printer, catalog) = (context.printer, &context.names.catalog);
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
            print(&forms, &["data", "description", "tasks"], rows, printer)
        }
        ListWhat::Hosts => {
            // Families first, as a scenario writes them, then names.
            let families = host_families().into_iter().map(|family| host_row(family, None));
            let named = catalog.hosts.entries().into_iter().map(|entry| {
                let choice = HostChoice::Named(HostName(entry.name.clone()));
                host_row(entry, catalog.hosts.outline(&choice, CLASSES, None).ok())
            });
            let (hosts, rows): (Vec<Value>, Vec<_>) = families.chain(named).unzip();
            let head = ["host", "size", "ops", "widths", "slots", "description"];
            print(&hosts, &head, rows, printer)
        }
        ListWhat::Blueprints => {
            let rows = catalog.blueprints.iter().map(|blueprint| {
                let note = if blueprint.selectable { "" } else { " (not selectable)" };
                vec![
                    blueprint.index.map_or_else(|| "-".into(), |index| index.to_string()),
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
            let head = ["index", "blueprint", "grows in", "description"];
            print(&catalog.blueprints, &head, rows, printer)
        }
        ListWhat::Rewards => print_entries(&reward_forms(catalog), printer),
        ListWhat::Controllers => print_entries(&catalog.controllers, printer),
        ListWhat::Networks => print_entries(&catalog.nets, printer),
        ListWhat::Presets => {
            let presets = TRAINING_PRESETS.iter().map(|preset| {
                let values = preset.values.get_ron().split_whitespace().collect::<Vec<_>>().join(" ");
                let lines = wrapped(&values, printer.width() - 4).replace('\n', "\n    ");
                let paragraph = format!("preset: \"{}\"\n    {lines}\n", preset.name);
                let row = json!({ "field": "preset", "name": preset.name, "values": values });
                (row, paragraph)
            });
            let (presets, paragraphs): (Vec<Value>, String) = presets.unzip();
            printer.show_either(&presets, || paragraphs)
        }
        ListWhat::Events => {
            let rows = Payload::CATALOGUE.iter();
            let rows = rows.map(|event| vec![event.name.into(), event.summary.into()]);
            print(&Payload::CATALOGUE, &["event", "description"], rows, printer)
        }
        ListWhat::Detectors => {
            let detectors = &context.names.detectors;
            let rows = detectors.parts().zip(detectors.iter());
            let rows = rows.map(|((name, detector), (_, summary))| {
                let (severity, remedy) = (detector.severity.name(), &detector.remedy);
                let (sign, threshold, window) =
                    (detector.comparison.sign(), detector.threshold, detector.window.max(1));
                let value = json!({
                    "name": name, "severity": severity, "comparison": sign, "threshold": threshold, "window": window,
                    "summary": summary, "remedy": remedy,
                });
                let (condition, meaning) = (format!("{sign} {threshold}"), format!("{summary}: {remedy}"));
                let cells = vec![name.into(), severity.into(), condition, window.to_string(), meaning];
                (value, cells)
            });
            let (detectors, rows): (Vec<Value>, Vec<_>) = rows.unzip();
            let head = ["detector", "severity", "value", "in a row", "problem and remedy"];
            print(&detectors, &head, rows, printer)
        }
        ListWhat::Plugins => {
            let plugins = &context.names.plugins;
            let rows = plugins
                .iter()
                .map(|plugin| vec![plugin.name.clone(), plugin.version.clone(), plugin.summary.clone()]);
            print(plugins, &["plugin", "version", "description"], rows, printer)
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
    print(&entries, &["name", "description"], rows, printer)
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

/// A host as a scenario may choose it, for programs, and as cells; without its size the fields of a family decide.
fn host_row(Entry { name, summary }: Entry, host: Option<HostOutline>) -> (Value, Vec<String>) {
    let Some(host) = host else {
        let value = json!({ "name": name, "summary": summary });
        let cells = [name.as_str(), "by its fields", "", "", "", summary.as_str()].map(String::from);
        return (value, cells.into());
    };
    let slots: Vec<SlotId> = host.by_depth().map(|place| place.slot).collect();
    let ends = match slots.as_slice() {
        [first, .., last] => format!("{} slots {first}..{last}", slots.len()),
        [only] => format!("slot {only}"),
        [] => "no slots".into(),
    };
    let (parameters, ops, widths) = (host.parameters, host.ops, host.widths());
    let value = json!({
        "name": name, "summary": summary, "parameters": parameters, "ops": ops, "widths": widths, "slots": slots,
    });
    let size = format!("{parameters} parameters");
    (value, vec![name, size, format!("{ops} ops"), widths, ends, summary])
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
    let explanation = explanation(path, &context.names.catalog)?;
    Ok(context.printer.show_either(&explanation, || &explanation))
}

/// The description of a field of a scenario, or of a sweep file.
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
