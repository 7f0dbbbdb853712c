//! The card of a network: its kind, its measures, the data it has learnt from and the seeds that have grown in it. `card.json`
//! is for programs, and `card.md` says the same to people.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::compare::statistics::wilson;
use crate::growth::Topology;
use crate::hash::sha256;
use crate::network::{GrownNetwork, Measured};
use crate::report::merged;
use crate::torch::libtorch_version;

const FORMAT: u32 = 1;
/// The sections for people in their order, each with an explanation of its numbers.
const SECTIONS: [(&str, &str); 8] = [
    (
        "choice",
        "`grow.json`, or `adapt.json` for an adaptation, has everything that was tried.",
    ),
    (
        "sizes",
        "Trainable values, and multiply-accumulates per sample, of the network and of its host alone.",
    ),
    (
        "measures",
        "Accuracies in percent, with Wilson's 95 % intervals of the samples alone: another training would differ by more. A \
         grown network was chosen by the validation part.",
    ),
    (
        "growth",
        "Contribution: validation accuracy of this network minus that without the seed; Shapley value: the seed's share of what \
         all of them add together. Both are percentage points, measured with these weights. Stages are listed with their steps.",
    ),
    (
        "data",
        "Pixels are read as pixel·scale + offset, channel by channel. Classes are in the order of the logits. Parts without \
         files of their own are places in the training files.",
    ),
    ("origin", "Rounds are counted from 0."),
    (
        "domains",
        "These read the input with `load()(x, domain=\"name\")`. The rest of this card is about the given network.",
    ),
    (
        "certificate",
        "A hash of the given network's weights. `python network.py --certificate` proves that they are unchanged.",
    ),
];
/// The number of values of a list that people see. Programs get all.
const LONGEST: usize = 100;

/// Everything known about a network. `tensors` is the content of `network.safetensors`, `choice` the reason for its choice, where
/// it was compared with others.
pub(super) fn card(network: &GrownNetwork, tensors: &[u8], choice: Option<&str>) -> Value {
    let part = |measured: Option<Measured>| {
        measured.map(|measured| merged(json!({ "interval": interval(&measured) }), &measured))
    };
    let known = |network: &GrownNetwork| {
        let measures = &network.measures;
        json!({
            "sizes": {
                "parameters": measures.parameters,
                "macs": measures.macs,
                "host_parameters": measures.host_parameters,
                "host_macs": measures.host_macs,
            },
            "measures": { "validation": part(measures.validation), "test": part(measures.test) },
            "data": network.data,
            "origin": network.origin,
            "growth": network.growth,
        })
    };
    let mut card = merged(
        known(network),
        &json!({
            "format": FORMAT,
            "sha256": sha256(tensors),
            // The version that trained or exported it.
            "torch": libtorch_version(),
        }),
    );
    if !network.domains.is_empty() {
        let domains = network
            .domains
            .iter()
            .map(|(name, network)| (name.clone(), known(network)));
        card["domains"] = domains.collect::<serde_json::Map<_, _>>().into();
    }
    if let Some(choice) = choice {
        card["choice"] = choice.into();
    }
    card
}

/// The card for people.
pub(super) fn markdown(network: &GrownNetwork, card: &Value) -> String {
    let title = if network.has_grown() {
        "A grown network"
    } else {
        "A network"
    };
    let mut text = format!("# {title}\n");
    for (section, note) in SECTIONS {
        let Some(value) = card.get(section) else { continue };
        _ = write!(text, "\n## {section}\n\n");
        match value {
            Value::Object(domains) if section == "domains" => {
                for (name, known) in domains {
                    for part in ["measures", "sizes", "growth"] {
                        _ = write!(text, "### {name}: {part}\n\n{}\n", content(&known[part]));
                    }
                }
                text += note;
            }
            value => _ = write!(text, "{}\n{note}", content(value)),
        }
        text.push('\n');
    }
    text + "\n" + &scaling(network)
}

/// The content of a section: a table, a list of seeds, or a sentence.
fn content(value: &Value) -> String {
    let lines = |lines: &mut dyn Iterator<Item = String>| lines.fold(String::new(), |text, line| text + &line + "\n");
    match value {
        Value::Array(seeds) if seeds.is_empty() => "No seed was committed.\n".into(),
        Value::Array(seeds) => lines(&mut seeds.iter().map(|seed| {
            let rows = rows_of(seed, "").into_iter();
            let facts: Vec<String> = rows.map(|(name, value)| format!("{name} {value}")).collect();
            format!("- {}", facts.join("; "))
        })),
        Value::Object(_) => {
            let rows = rows_of(value, "").into_iter();
            "| | |\n| --- | --- |\n".to_owned() + &lines(&mut rows.map(|(name, value)| format!("| {name} | {value} |")))
        }
        value => format!("{}\n", value.as_str().unwrap_or_default()),
    }
}

/// The values of an object by their names. Values of inner objects have the names of both, the outer one first.
fn rows_of(value: &Value, at: &str) -> Vec<(String, String)> {
    let Value::Object(fields) = value else {
        return vec![(at.trim_start().into(), shown(value, ", "))];
    };
    let fields = fields.iter();
    fields
        .flat_map(|(name, value)| rows_of(value, &format!("{at} {name}")))
        .collect()
}

fn shown(value: &Value, separator: &str) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => code(text),
        Value::Array(values) if values.len() > LONGEST => format!("{} values, in `card.json`", values.len()),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(|value| shown(value, " ")).collect();
            values.join(separator)
        }
        Value::Number(number) if number.is_f64() => format!("{:.4}", number.as_f64().unwrap_or(f64::NAN)),
        value => value.to_string(),
    }
}

/// The 95 % interval of an accuracy, percent.
fn interval(measured: &Measured) -> [f64; 2] {
    let interval = wilson(measured.accuracy / 100.0, measured.samples);
    [interval.low, interval.high].map(|end| (100.0 * end).clamp(0.0, 100.0))
}

/// Returns whether it reads bytes, gray or in colour, as the engine makes them of files of images.
pub(super) fn reads_photographs(network: &GrownNetwork) -> bool {
    network.graph.topology == Topology::Image && network.data.full == 255.0 && matches!(network.data.scale.len(), 1 | 3)
}

/// The size of images that the network reads, and the way to scale others to it. Empty if it reads no images of files.
pub(super) fn scaling(network: &GrownNetwork) -> String {
    let side = network.graph.side;
    match reads_photographs(network) {
        false => String::new(),
        true => format!(
            "The network reads images of {side}x{side} pixels. `photograph(image)` of network.py, which needs Pillow, brings \
             an image of\nPIL to that as the engine does with files: upright, its central square, scaled.\n"
        ),
    }
}

/// A name from the outside, as Markdown shows it unchanged, also in a table.
fn code(name: &str) -> String {
    let shown = |character: char| match character {
        '`' => '\'',
        '|' => '/',
        character if character.is_control() => ' ',
        character => character,
    };
    format!("`{}`", name.chars().map(shown).collect::<String>())
}
