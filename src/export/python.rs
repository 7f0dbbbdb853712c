//! The sources of one network with a line for each layer, so that a person can read where each seed grew.

use std::fmt::Write;

use super::card::{reads_photographs, scaling};
use super::library::{self, classes_for};
use crate::files::counted;
use crate::graph::{Graph, LayerGraph, ModuleGraph, NamedLayer, SeedGraph, StackLayer};
use crate::growth::Topology;
use crate::network::{GrownNetwork, SeedHistory};
use crate::scenario::{HostNorm, Positions, Shortcut};

/// Words of Python and attributes of `torch.nn.Module`, which can't be names of layers.
const TAKEN: &str = "False None True and as assert async await break class continue def del elif else except finally for \
     from global if import in is lambda nonlocal not or pass raise return try while with yield T_destination add_module \
     apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval extra_repr float forward \
     get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia named_buffers \
     named_children named_modules named_parameters parameters register_backward_hook register_buffer \
     register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook \
     register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter \
     register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory \
     state_dict to to_empty train training type xpu zero_grad";

/// Attribute names of layers, by index: unchanged where Python allows it.
pub(super) struct Names<'a> {
    layers: &'a [NamedLayer],
    attributes: Vec<String>,
}

impl<'a> Names<'a> {
    pub(super) fn of(graph: &'a Graph) -> Self {
        let layers = &graph.layers;
        let attribute = |(index, layer): (usize, &NamedLayer)| {
            let is_inside = |other: &NamedLayer| {
                let rest = layer.name.strip_prefix(&other.name);
                rest.is_some_and(|rest| rest.starts_with('.'))
            };
            if layer.name.split('.').all(is_free) && !layers.iter().any(is_inside) {
                return layer.name.clone();
            }
            let mut name = format!("layer{index}");
            while layers.iter().any(|other| other.name == name) {
                name.push('_');
            }
            name
        };
        Self {
            layers,
            attributes: layers.iter().enumerate().map(attribute).collect(),
        }
    }

    fn of_layer(&self, name: &str) -> &str {
        let mut pairs = self.layers.iter().zip(&self.attributes);
        let found = pairs.find(|(layer, _)| layer.name == name && layer.layer != LayerGraph::Pool);
        found.map_or("", |(_, attribute)| attribute)
    }

    /// Name of the tensor `name` in the `state_dict`.
    pub(super) fn of_tensor(&self, name: &str) -> String {
        let pairs = self.layers.iter().zip(&self.attributes);
        let inside = pairs.filter_map(|(layer, attribute)| {
            let rest = name.strip_prefix(&layer.name)?;
            (layer.layer != LayerGraph::Pool && rest.starts_with('.')).then_some((attribute, rest))
        });
        let closest = inside.min_by_key(|(_, rest)| rest.len());
        closest.map_or_else(|| name.into(), |(attribute, rest)| format!("{attribute}{rest}"))
    }
}

fn is_free(part: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    part.bytes().all(is_word)
        && part.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
        && !TAKEN.split_ascii_whitespace().any(|taken| taken == part)
}

/// `network.py`.
pub(super) fn network_py(network: &GrownNetwork, names: &Names) -> String {
    let mut class = class_of("Network", network, names);
    let mut known = String::new();
    for (domain, network) in &network.domains {
        let name = format!("Domain_{domain}");
        _ = write!(class, "\n\n{}", class_of(&name, network, &Names::of(&network.graph)));
        _ = writeln!(known, "    {domain:?}: {name},");
    }
    let load = match known.is_empty() {
        true => library::LOAD.to_owned(),
        false => format!("DOMAINS = {{\n{known}}}\n\n\n{}", library::DOMAINS),
    };
    let (constants, samples) = match network.graph.topology {
        Topology::Image => (images(network), library::IMAGES),
        Topology::Tokens => (String::new(), library::TEXTS),
    };
    let classes = classes_for(&class);
    let photograph = if reads_photographs(network) {
        library::PHOTOGRAPH
    } else {
        ""
    };
    let parts = [
        &constants,
        &classes,
        &class,
        photograph,
        samples,
        library::READ,
        library::CHECK,
        &load,
        library::MAIN,
    ];
    let parts = parts.map(str::trim).into_iter().filter(|part| !part.is_empty());
    format!(
        "{}\n{}\n{}\n",
        doc(network),
        library::HEAD.trim(),
        parts
            .fold(String::new(), |text, part| format!("{text}\n\n{part}\n"))
            .trim_end()
    )
}

fn doc(network: &GrownNetwork) -> String {
    let measures = &network.measures;
    format!(
        r#""""A network that simic-engine has {}: {} parameters, {} of them in {}.

`load()` returns it with its weights, `normalise(samples)` turns samples as files hold them into what it reads.
{}`python network.py` measures its accuracy again; card.md says what is known of it. It needs torch alone.
"""
"#,
        if network.has_grown() { "grown" } else { "written" },
        measures.parameters,
        measures.parameters.saturating_sub(measures.host_parameters),
        counted(network.graph.seeds().count(), "seed"),
        scaling(network),
    )
}

/// Text in a comment or a docstring: it can end neither.
fn plain(text: &str) -> String {
    let is_harmless = |character: &char| !character.is_control() && !matches!(character, '"' | '\\');
    text.chars().filter(is_harmless).collect()
}

fn images(network: &GrownNetwork) -> String {
    let data = &network.data;
    // A text in JSON is valid Python.
    let classes: Vec<String> = data
        .classes
        .iter()
        .map(|class| serde_json::json!(class).to_string())
        .collect();
    format!(
        "# Names of classes in the order of the logits.\nCLASSES = [{}]\n# Of each channel: pixels are read as pixel * scale + \
         offset.\nSCALE = {:?}\nOFFSET = {:?}\n# Height and width, in pixels.\nSIDE = {}",
        classes.join(", "),
        data.scale,
        data.offset,
        network.graph.side
    )
}

/// The class `name`.
fn class_of(name: &str, network: &GrownNetwork, names: &Names) -> String {
    let (mut init, mut forward) = (String::new(), String::new());
    let mut containers: Vec<&str> = Vec::new();
    for (index, (layer, attribute)) in names.layers.iter().zip(&names.attributes).enumerate() {
        let call = match &layer.layer {
            LayerGraph::Pool => "F.max_pool2d(x, 2)".into(),
            LayerGraph::TextHead { embedding, .. } => {
                format!("self.{attribute}(x, self.{}.tokens)", names.of_layer(embedding))
            }
            _ => format!("self.{attribute}(x)"),
        };
        let last = index + 1 == names.layers.len();
        let result = if last { "return" } else { "x =" };
        _ = writeln!(forward, "        {result} {call}");
        if layer.layer == LayerGraph::Pool {
            continue;
        }
        for (end, _) in attribute.match_indices('.') {
            let container = &attribute[..end];
            if !containers.contains(&container) {
                _ = writeln!(init, "        self.{container} = nn.Module()");
                containers.push(container);
            }
        }
        if let LayerGraph::Seed(seed) = &layer.layer {
            _ = writeln!(init, "        # {}", comment(network, index, seed));
        }
        _ = writeln!(
            init,
            "        self.{attribute} = {}",
            construction(&network.graph, &layer.layer)
        );
    }
    format!(
        "class {name}(nn.Module):\n    def __init__(self):\n        super().__init__()\n{init}\n    def forward(self, \
         x):\n{forward}"
    )
}

/// Comment on the history of a seed.
fn comment(network: &GrownNetwork, index: usize, seed: &SeedGraph) -> String {
    let known = network.history_of(index, seed);
    let verb = match known.is_some_and(SeedHistory::was_there) {
        true => "in",
        false => "grew in",
    };
    let mut text = format!("{verb} slot {}: {}", seed.slot, plain(&seed.blueprint));
    match known {
        Some(known) => _ = write!(text, ", {} parameters", known.parameters),
        None => text.push_str(", in an earlier growth"),
    }
    if let Some(measures) = known.and_then(|known| known.measures) {
        _ = write!(text, ", {measures}");
    }
    text
}

/// The expression that makes a layer.
fn construction(graph: &Graph, layer: &LayerGraph) -> String {
    match layer {
        LayerGraph::Conv {
            inputs,
            outputs,
            kernel,
            stride,
            bias,
            norm,
        } => match norm {
            None => format!(
                "nn.Conv2d({inputs}, {outputs}, {kernel}, {stride}, padding={}, bias=False)",
                kernel / 2
            ),
            Some(norm) => format!(
                "Conv({inputs}, {outputs}, {kernel}, {:?}{}{})",
                norm.name(),
                unless_one("stride", *stride),
                if *bias { ", bias=True" } else { "" }
            ),
        },
        LayerGraph::MaxPool {
            kernel,
            stride,
            padding,
        } => format!("nn.MaxPool2d({kernel}, {stride}, {padding})"),
        LayerGraph::NormRelu { channels, norm } => match norm {
            HostNorm::Batch => format!("BatchNormRelu({channels})"),
            HostNorm::Group => format!("GroupNormRelu({channels})"),
        },
        LayerGraph::Residual {
            inputs,
            outputs,
            stride,
            shortcut,
            pre_activation,
            norm,
        } => {
            let projects = *shortcut == Shortcut::Projection && (*stride != 1 || inputs != outputs);
            format!(
                "{}({inputs}, {outputs}, {:?}{}{})",
                if *pre_activation { "PreActivated" } else { "Residual" },
                norm.name(),
                unless_one("stride", *stride),
                if projects { ", projects=True" } else { "" }
            )
        }
        LayerGraph::Head { inputs, classes } => format!("Head({inputs}, {classes})"),
        LayerGraph::Embedding {
            vocab,
            width,
            positions,
            ..
        } => format!(
            "Embedding({vocab}, {width}, block={}, learned={})",
            graph.side,
            truth(*positions == Positions::Learned)
        ),
        LayerGraph::Text {
            width,
            heads,
            positions,
            ..
        } => {
            format!(
                "Text({width}, heads={heads}, rotary={})",
                truth(*positions == Positions::Rotary)
            )
        }
        LayerGraph::TextHead { width, .. } => format!("TextHead({width})"),
        LayerGraph::Seed(seed) => seed_construction(graph.topology, seed),
        // Pools have no parameters. Custom layers were refused.
        LayerGraph::Pool | LayerGraph::Custom => String::new(),
    }
}

fn seed_construction(topology: Topology, seed: &SeedGraph) -> String {
    let channels = seed.channels;
    let common = format!(
        "channels={channels}, operator={:?}, amplitude={:?}",
        seed.operator.name().to_lowercase(),
        seed.amplitude
    );
    match &seed.module {
        ModuleGraph::Noop | ModuleGraph::Custom => format!("Nothing({common})"),
        ModuleGraph::Stack(layers) => {
            let layers = layers.iter().map(|layer| format!("            {},\n", stacked(*layer)));
            format!("Stack(\n{}            {common},\n        )", layers.collect::<String>())
        }
        ModuleGraph::Norm => match topology {
            Topology::Image => format!("Norm(group_norm({channels}), {common})"),
            Topology::Tokens => format!("Norm(nn.LayerNorm({channels}), {common})"),
        },
        ModuleGraph::SqueezeExcite { hidden } => format!("SqueezeExcite({hidden}, {common})"),
        ModuleGraph::TwoMaps { hidden, is_mlp } => format!("TwoMaps({hidden}, mlp={}, {common})", truth(*is_mlp)),
        ModuleGraph::Attention { heads, window } => {
            let window = window.map_or_else(String::new, |window| format!(", window={window}"));
            format!("AttentionSeed(Attention({channels}, {heads}{window}), {common})")
        }
    }
}

fn stacked(layer: StackLayer) -> String {
    match layer {
        StackLayer::Conv {
            inputs,
            outputs,
            kernel,
            groups,
        } => format!(
            "nn.Conv2d({inputs}, {outputs}, {kernel}, padding={}{}, bias=False)",
            kernel / 2,
            unless_one("groups", groups)
        ),
        StackLayer::Silu => "nn.SiLU()".into(),
        StackLayer::Norm { channels } => format!("group_norm({channels})"),
    }
}

const fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// An argument whose default is 1.
fn unless_one(name: &str, value: i64) -> String {
    match value {
        1 => String::new(),
        value => format!(", {name}={value}"),
    }
}
