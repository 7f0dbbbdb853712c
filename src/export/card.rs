//! The card of a network: what it is, what was measured, what it has learnt from and what has grown in it, for programs and people.

use std::fmt::Write;

use serde_json::json;

use crate::compare::statistics::wilson;
use crate::growth::Topology;
use crate::hash::sha256;
use crate::network::{GrownNetwork, Measured, Measures};
use crate::report::merged;
use crate::torch::libtorch_version;

const FORMAT: u32 = 1;

/// All that is known of a network.
pub(super) struct Card<'a> {
    network: &'a GrownNetwork,
    /// Why it was chosen, where it was compared with others.
    choice: Option<&'a str>,
    /// Of `network.safetensors`.
    sha256: String,
    /// libtorch's version, with which it was trained or exported.
    torch: String,
}

impl<'a> Card<'a> {
    /// `tensors` is the content of `network.safetensors`.
    pub(super) fn of(network: &'a GrownNetwork, tensors: &[u8], choice: Option<&'a str>) -> Self {
        Self {
            network,
            choice,
            sha256: sha256(tensors),
            torch: libtorch_version(),
        }
    }

    /// `card.json`.
    pub(super) fn json(&self) -> String {
        let measures = &self.network.measures;
        let part = |measured: Option<Measured>| {
            measured.map(|measured| merged(json!({ "interval": interval(&measured) }), &measured))
        };
        let mut card = json!({
            "format": FORMAT,
            "sha256": self.sha256,
            "torch": self.torch,
            // Trainable values, and multiply-accumulates of a sample.
            "sizes": {
                "parameters": measures.parameters,
                "macs": measures.macs,
                "host_parameters": measures.host_parameters,
                "host_macs": measures.host_macs,
            },
            "measures": { "validation": part(measures.validation), "test": part(measures.test) },
            "data": self.network.data,
            "origin": self.network.origin,
            "growth": self.network.growth,
        });
        if let Some(choice) = self.choice {
            card["choice"] = choice.into();
        }
        format!("{card:#}\n")
    }

    pub(super) fn markdown(&self) -> String {
        let Measures {
            validation,
            test,
            parameters,
            macs,
            host_parameters,
            host_macs,
        } = self.network.measures;
        let (title, host) = match self.network.has_grown() {
            true => ("A grown network", "the host that it has grown from"),
            false => ("A network", "its host alone"),
        };
        let mut text = format!(
            "# {title}\n\n| | network | {host} |\n| --- | --- | --- |\n\
             | parameters | {parameters} | {host_parameters} |\n\
             | multiply-accumulates of a sample | {macs} | {host_macs} |\n\n\
             ## Accuracy\n\n| part | accuracy | 95 % interval | loss | samples |\n| --- | --- | --- | --- | --- |\n"
        );
        measured_row(&mut text, "validation, by which it was chosen", validation);
        measured_row(&mut text, "test", test);
        text += "\nIntervals are Wilson's, of the samples alone: another training would differ by more.\n";
        if let Some(choice) = self.choice {
            _ = writeln!(
                text,
                "\nBeside what else its compute could have been spent on (`grow.json`): {choice}."
            );
        }
        self.add_data(&mut text);
        self.add_growth(&mut text);
        self.add_origin(&mut text);
        text
    }

    fn add_data(&self, text: &mut String) {
        let data = &self.network.data;
        _ = write!(
            text,
            "\n## Data\n\nTask {}, data set {}, blake3 `{}`.\n",
            code(&data.task),
            code(&data.name),
            data.hash
        );
        if !data.scale.is_empty() {
            _ = writeln!(
                text,
                "Pixels, 0 to 255, are read as pixel·scale + offset, channel by channel: scale {:?}, offset {:?}.",
                data.scale, data.offset
            );
        }
        text.push_str(&scaling(self.network));
        if !data.classes.is_empty() {
            let classes: Vec<String> = data.classes.iter().map(|class| code(class)).collect();
            _ = writeln!(text, "Classes in the order of the logits: {}.", classes.join(", "));
        }
        for (part, places) in [("validation", &data.validation), ("test", &data.test)] {
            _ = match places {
                Some(places) => writeln!(
                    text,
                    "The {part} part are {} samples of the training files; `card.json` has their places.",
                    places.len()
                ),
                None => writeln!(text, "The {part} part is in files of its own."),
            };
        }
    }

    fn add_growth(&self, text: &mut String) {
        if self.network.growth.is_empty() {
            text.push_str("\n## Growth\n\nNo seed was committed.\n");
            return;
        }
        text.push_str("\n## Seeds\n\n");
        text.push_str(
            "| slot | blueprint | parameters | contribution | Shapley value | stages, by step |\n\
             | --- | --- | --- | --- | --- | --- |\n",
        );
        for seed in &self.network.growth {
            let stages: Vec<String> = seed
                .stages
                .iter()
                .map(|(stage, step)| format!("{step} {}", stage.name()))
                .collect();
            let points = |value: Option<f64>| value.map_or_else(|| "-".into(), |points| format!("{points:+.2}"));
            let stages = match seed.was_there() {
                true => "there from the first step on".into(),
                false => stages.join(", "),
            };
            _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                seed.slot,
                code(&seed.blueprint),
                seed.parameters,
                points(seed.measures.map(|measures| measures.contribution)),
                points(seed.measures.and_then(|measures| measures.shapley)),
                stages
            );
        }
        text.push_str(
            "\nContribution: validation accuracy of this network minus that without the seed; Shapley value: the seed's share \
             of what all of them add together. Percentage points, measured of these weights.\n",
        );
    }

    fn add_origin(&self, text: &mut String) {
        let origin = &self.network.origin;
        let run = origin
            .run
            .as_deref()
            .map_or_else(|| "a run in memory".into(), |run| format!("run {}", code(run)));
        _ = write!(
            text,
            "\n## Origin\n\nsimic-engine {}, {run}, scenario {} (blake3 `{}`), seed {}, round {}, env {}: {} steps, {} \
             rollbacks. Exported with torch {}.\n",
            code(&origin.engine),
            code(&origin.scenario),
            origin.scenario_hash,
            origin.seed,
            u64::from(origin.round) + 1,
            origin.env,
            origin.steps,
            origin.rollbacks,
            self.torch
        );
    }
}

/// The 95 % interval of an accuracy, percent.
fn interval(measured: &Measured) -> [f64; 2] {
    let interval = wilson(measured.accuracy / 100.0, measured.samples);
    [interval.low, interval.high].map(|end| (100.0 * end).clamp(0.0, 100.0))
}

/// Whether it reads bytes, gray or in colour, as the engine makes them of files of images.
pub(super) fn reads_photographs(network: &GrownNetwork) -> bool {
    network.graph.topology == Topology::Image && network.data.full == 255.0 && matches!(network.data.scale.len(), 1 | 3)
}

/// What size of images the network reads, and how others are brought to it; nothing where it reads none of files.
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

fn measured_row(text: &mut String, part: &str, measured: Option<Measured>) {
    let Some(measured) = measured else {
        _ = writeln!(text, "| {part} | not measured | | | |");
        return;
    };
    let [low, high] = interval(&measured);
    _ = writeln!(
        text,
        "| {part} | {:.2} % | {low:.2} to {high:.2} | {} | {} |",
        measured.accuracy,
        measured.loss.map_or_else(|| "-".into(), |loss| format!("{loss:.4}")),
        measured.samples
    );
}

/// A name that others gave, as Markdown shows it unchanged; in a table as well.
fn code(name: &str) -> String {
    let shown = |character: char| match character {
        '`' => '\'',
        '|' => '/',
        character if character.is_control() => ' ',
        character => character,
    };
    format!("`{}`", name.chars().map(shown).collect::<String>())
}
