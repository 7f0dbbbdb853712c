//! A grown seed as a layer of a host.

use tch::Tensor;

use crate::graph::{LayerGraph, SeedGraph};
use crate::growth::{AlphaAlgorithm, Topology};
use crate::host::{Features, HostError, Layer, LayerDesign};
use crate::nn::{Mode, ParamSet};
use crate::seed::{BlendError, GateNetwork, SeedInstance, module_of};

/// Layer of a grown seed: its addition to the features, its amplitude fixed.
#[derive(Clone, Debug)]
pub(super) struct SeedDesign {
    pub graph: SeedGraph,
    pub topology: Topology,
}

impl SeedDesign {
    const fn is_gated(&self) -> bool {
        matches!(self.graph.operator, AlphaAlgorithm::Gate)
    }
}

impl LayerDesign for SeedDesign {
    fn output(&self, input: Features) -> Features {
        input
    }

    fn parameters(&self, input: Features) -> u64 {
        let gate = if self.is_gated() {
            GateNetwork::param_count(input.channels)
        } else {
            0
        };
        self.graph.module.parameters(input.channels).saturating_add(gate)
    }

    fn macs(&self, input: Features) -> u64 {
        let positions = match self.topology {
            Topology::Image => input.positions(),
            Topology::Tokens => input.side,
        };
        let positions = positions.max(0).unsigned_abs();
        let gate = if self.is_gated() {
            GateNetwork::macs_of(self.topology, input.channels, positions)
        } else {
            0
        };
        self.graph.module.macs(input.channels, positions).saturating_add(gate)
    }

    fn graph(&self, _: Features) -> LayerGraph {
        LayerGraph::Seed(self.graph.clone())
    }

    fn build(&self, _: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        let fresh = || ParamSet::new(params.backend());
        let SeedGraph { channels, module, .. } = &self.graph;
        let module = module_of(module, self.topology, *channels, fresh())?;
        let gate = self
            .is_gated()
            .then(|| GateNetwork::over(self.topology, *channels, fresh()));
        let gate = gate.transpose()?;
        params.adopt(name, module.params())?;
        if let Some(gate) = &gate {
            params.adopt(name, gate.params())?;
        }
        Ok(Box::new(SeedLayer {
            instance: SeedInstance::new(module, gate),
            operator: self.graph.operator,
            amplitude: self.graph.amplitude,
        }))
    }
}

struct SeedLayer {
    instance: SeedInstance,
    operator: AlphaAlgorithm,
    amplitude: f64,
}

impl Layer for SeedLayer {
    fn forward(&self, x: &Tensor, mode: Mode) -> Result<Tensor, HostError> {
        let blended = self.instance.blend(x, self.amplitude, self.operator, false, mode);
        blended.map_err(|error| match error {
            BlendError::Torch(error) => error.into(),
            other => HostError::Broken(other.to_string()),
        })
    }
}
