//! `simic-engine list tasks|hosts|blueprints|controllers`.

use super::output::{show, show_json};
use super::{GlobalOptions, ListWhat, Outcome};
use crate::scenario::{Catalog, CnnSpec, TaskPreset, TaskSpec};

pub fn list(what: ListWhat, catalog: &Catalog, global: &GlobalOptions) -> Outcome {
    if global.json {
        match what {
            ListWhat::Tasks => show_json(&catalog.tasks),
            ListWhat::Hosts => show_json(&catalog.hosts),
            ListWhat::Blueprints => show_json(&catalog.blueprints),
            ListWhat::Controllers => show_json(&catalog.controllers),
        }
    } else {
        show(table(&rows(what, catalog)));
    }
    Outcome::Done
}

fn rows(what: ListWhat, catalog: &Catalog) -> Vec<Vec<String>> {
    match what {
        ListWhat::Tasks => catalog.tasks.iter().map(task_row).collect(),
        ListWhat::Hosts => host_rows(catalog),
        ListWhat::Blueprints => catalog
            .blueprints
            .iter()
            .map(|blueprint| {
                let note = if blueprint.selectable { "" } else { " (not selectable)" };
                vec![
                    blueprint.index.to_string(),
                    blueprint.name.clone(),
                    format!("{}{note}", blueprint.summary),
                ]
            })
            .collect(),
        ListWhat::Controllers => catalog
            .controllers
            .iter()
            .map(|controller| vec![controller.name.clone(), controller.summary.clone()])
            .collect(),
    }
}

fn task_row(task: &TaskPreset) -> Vec<String> {
    let spec = &task.spec;
    vec![
        spec.name.clone(),
        channels(&spec.host),
        format!("{} parameters", spec.host.parameters(spec.classes)),
        format!("batch {}", spec.batch_size),
        format!("{} steps", spec.max_steps),
        slots(spec),
        task.question.clone(),
    ]
}

fn host_rows(catalog: &Catalog) -> Vec<Vec<String>> {
    let hosts = catalog
        .hosts
        .iter()
        .map(|host| vec![host.name.clone(), host.summary.clone()]);
    let shapes = catalog.tasks.iter().map(|task| {
        let host = &task.spec.host;
        let (kernel, size) = (host.kernel_size, host.input_hw);
        let shape = format!(
            "channels {}, kernel {kernel}x{kernel}, {} pools, input {size}x{size}",
            channels(host),
            host.pool_layers
        );
        vec![format!("  {}", task.spec.name), shape]
    });
    hosts.chain(shapes).collect()
}

fn channels(host: &CnnSpec) -> String {
    let blocks: Vec<String> = host.channels().map(|c| c.to_string()).collect();
    format!("{}->{}", host.in_channels, blocks.join(","))
}

fn slots(spec: &TaskSpec) -> String {
    match (spec.slots.first(), spec.slots.last()) {
        (Some(first), Some(last)) if first != last => format!("{first}..{last}"),
        (Some(only), _) => only.clone(),
        _ => "no slots".into(),
    }
}

/// Left-aligned columns, two spaces apart, no trailing blanks.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
