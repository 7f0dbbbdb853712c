//! The arms of an experiment as layers: what each of them lays over the scenario.

use super::SCENARIO;
use super::Scenario;
use super::experiment::{AbConfig, ArmConfig, ExperimentConfig};
use super::layers;
use super::tree::{Name, Node, Span, Value};

/// The sections that an arm may write.
const SECTIONS: [&str; 4] = ["reward", "policy", "learner", "initial_topology"];
const ENVS: &str = "run.n_envs";

impl Scenario {
    /// The experiment's declaration, if this is no single run.
    pub fn ab(&self) -> Option<&AbConfig> {
        self.experiment.as_ref().map(|ExperimentConfig::Ab(ab)| &**ab)
    }

    pub(super) fn arms_mut(&mut self) -> &mut [ArmConfig] {
        match &mut self.experiment {
            Some(ExperimentConfig::Ab(ab)) => &mut ab.arms,
            None => &mut [],
        }
    }
}

/// What one arm lays over the scenario.
pub struct ArmLayer {
    pub id: String,
    /// A record of those sections that it writes.
    pub sections: Node,
    /// Envs of every arm, where the experiment says how many.
    envs: Option<Node>,
}

impl ArmLayer {
    /// Makes a scenario of its own out of `root`.
    pub fn lay_over(&self, root: &mut Node) {
        root.overlay(self.sections.clone());
        if let Some(envs) = &self.envs {
            // The path is one of this version.
            _ = layers::put(&SCENARIO, root, ENVS, envs.clone());
        }
        let single = Node::new(Value::Word("None".into()), root.span);
        root.overlay(record(vec![("experiment", single)], root.span));
    }
}

/// The arms in a tree of all layers, as far as they can be told apart; the check names what is wrong with the others.
pub fn arm_layers(root: &Node) -> Vec<ArmLayer> {
    let declared = root.field("experiment").and_then(|experiment| match &experiment.value {
        Value::Tuple(Some(_), items) => items.first(),
        _ => None,
    });
    let Some(declared) = declared else {
        return Vec::new();
    };
    let envs = declared.field("envs_per_arm").filter(|envs| !envs.is_none());
    let arms = match declared.field("arms").map(|arms| &arms.value) {
        Some(Value::List(arms)) => &arms[..],
        _ => &[],
    };
    let layer = |arm: &Node| {
        let Value::Text(id) = &arm.field("id")?.value else {
            return None;
        };
        let written = SECTIONS.into_iter().filter_map(|section| {
            let node = arm.field(section).filter(|node| !node.is_none())?;
            Some((section, node.clone()))
        });
        Some(ArmLayer {
            id: id.clone(),
            sections: record(written.collect(), arm.span),
            envs: envs.cloned(),
        })
    };
    arms.iter().filter_map(layer).collect()
}

fn record(fields: Vec<(&str, Node)>, span: Span) -> Node {
    let named = fields.into_iter().map(|(name, node)| {
        let text = name.into();
        (Name { text, span: node.span }, node)
    });
    Node::new(Value::Record(None, named.collect()), span)
}

#[cfg(test)]
mod tests;
