//! From an env at the end of its episode to the network that it holds: the host with its committed seeds.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_ecs::query::QueryData;
use bevy_ecs::system::SystemParam;

use crate::clock::RunClock;
use crate::data::TaskData;
use crate::env::{EnvBackend, EnvId, EnvStream, EpisodeStats, Experiment, HostModel, LoadedData, SeedSlots, Slot};
use crate::graph::{Graph, ModuleGraph, SeedGraph};
use crate::growth::SeedStage;
use crate::health::Failure;
use crate::host::OpCost;
use crate::network::{DataCard, GrownNetwork, HostRegistry, Measured, Measures, Origin, SeedHistory, SeedMeasures};
use crate::nn::ParamSet;
use crate::record::RunDirectory;
use crate::scenario::resolved_ron;
use crate::seed::{BlueprintRegistry, SeedRecord};
use crate::telemetry::EndReason;
use crate::torch::PlainTensor;
use crate::validation::{
    CommittedNetwork, Counterfactual, PlanMoment, Reached, TestResult, Tools, ValPlan, ValidationBatches,
};

/// The env that a network is taken from.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct EndedNetwork {
    id: &'static EnvId,
    backend: &'static EnvBackend,
    stats: &'static EpisodeStats,
    stream: &'static mut EnvStream,
    host: &'static mut HostModel,
    slots: &'static mut SeedSlots,
    batches: &'static mut ValidationBatches,
    plan: &'static ValPlan,
    counterfactual: &'static Counterfactual,
    test: &'static TestResult,
}

impl EndedNetworkItem<'_, '_> {
    /// Index of the env in the run.
    pub(super) fn index(&self) -> usize {
        self.id.index
    }

    /// The order in which networks are kept: by accuracy, of equals the smallest, then the first env. `None` of an env that
    /// failed, or was never measured.
    pub(super) fn rank(&self) -> Option<(f64, u64, usize)> {
        self.stats.end.filter(|end| end.reason != EndReason::Failed)?;
        let shown = self.stats.last_val?.accuracy_percent;
        let accuracy = self.counterfactual.committed_accuracy(self.plan, &self.slots, shown);
        let accuracy = accuracy.unwrap_or(shown);
        let committed = self.slots.records().flatten().filter(|seed| is_committed(seed));
        let parameters = committed.map(SeedRecord::params).sum();
        (!accuracy.is_nan()).then_some((-accuracy, parameters, self.id.index))
    }
}

fn is_committed(seed: &SeedRecord) -> bool {
    seed.stage == SeedStage::Committed
}

/// Resources for taking the networks of a round.
#[derive(SystemParam)]
pub struct KeepContext<'w> {
    pub(super) experiment: Res<'w, Experiment>,
    pub(super) clock: Res<'w, RunClock>,
    hosts: Res<'w, HostRegistry>,
    blueprints: Res<'w, BlueprintRegistry>,
    data: Res<'w, LoadedData>,
    pub(super) directory: Option<Res<'w, RunDirectory>>,
    tools: Tools<'w>,
}

/// Data that all networks of a round have in common.
pub(super) struct Surroundings<'a> {
    host: Graph,
    costs: Vec<OpCost>,
    host_parameters: u64,
    blueprints: &'a BlueprintRegistry,
    data: DataCard,
    /// Predictions of a step's validation, and of the test part.
    validated: u64,
    tested: u64,
    experiment: &'a Experiment,
    tools: &'a Tools<'a>,
    /// Without the env's.
    origin: Origin,
}

impl<'a> Surroundings<'a> {
    pub(super) fn new(context: &'a KeepContext) -> Result<Self, Failure> {
        let KeepContext { experiment, data, .. } = context;
        let Experiment { scenario, task, .. } = &**experiment;
        let host = context.hosts.of(&task.host, experiment.folder.as_deref())?;
        let plan = host.plan(task.classes);
        let directory = context.directory.as_deref();
        let scenario_hash = match directory {
            Some(directory) => directory.scenario_hash().into(),
            None => blake3::hash(resolved_ron(scenario)?.as_bytes()).to_hex().to_string(),
        };
        Ok(Self {
            host: plan.graph(),
            costs: plan.op_costs(),
            host_parameters: plan.outline().parameters,
            blueprints: &context.blueprints,
            validated: data.feed.val_units() as u64,
            tested: (data.set.sizes().test * data.feed.units_per_sample) as u64,
            experiment,
            tools: &context.tools,
            data: card(&task.name, &data.set),
            origin: Origin {
                engine: env!("CARGO_PKG_VERSION").into(),
                run: directory.map(|directory| directory.run_id().into()),
                scenario: scenario.name.clone(),
                scenario_hash,
                seed: scenario.run.seed,
                round: context.clock.round(),
                env: 0,
                steps: 0,
                rollbacks: 0,
            },
        })
    }

    /// The host with its committed seeds, by execution order, and what just these weights reach.
    pub(super) fn capture(&self, env: &mut EndedNetworkItem) -> Result<GrownNetwork, Failure> {
        let step = env.stats.end.map_or(0, |end| end.step);
        let moment = PlanMoment::new(self.origin.seed, (self.origin.round, env.id.index, step), true);
        let _guard = env.stream.0.get().enter()?;
        let isolation = self.experiment.isolation();
        let (whole, seeds) = CommittedNetwork::of(&mut env.host, &mut env.slots, isolation, env.backend.0)?.measure(
            moment,
            env.batches.0.get(),
            self.tools,
        )?;
        let mut parameters = BTreeMap::new();
        take("", env.host.0.get().params(), &mut parameters)?;
        let (mut graph, mut growth) = (self.host.clone(), Vec::new());
        let host_macs = self.costs.iter().map(|cost| cost.macs).sum();
        let (mut macs, mut seed_parameters) = (host_macs, 0);
        for (index, slot) in env.slots.0.iter_mut().enumerate() {
            let Slot {
                spec, record, module, ..
            } = slot;
            let (Some(seed), Some(module)) = (record.as_ref().filter(|seed| is_committed(seed)), module) else {
                continue;
            };
            let instance = module.get();
            let (next, name) = graph.with_seed(self.describe(seed, spec.channels));
            graph = next;
            take(&format!("{name}."), instance.module.params(), &mut parameters)?;
            if let Some(gate) = &instance.gate {
                take(&format!("{name}."), gate.params(), &mut parameters)?;
            }
            seed_parameters += seed.params();
            macs += instance.macs(self.costs[spec.boundary - 1].positions);
            growth.push(history(seed, seeds.get(&index).copied()));
        }
        let stats = env.stats;
        Ok(GrownNetwork {
            graph,
            parameters,
            measures: Measures {
                validation: Some(measured(whole, self.validated)),
                test: env.test.0.map(|reached| measured(reached, self.tested)),
                parameters: self.host_parameters + seed_parameters,
                macs,
                host_parameters: self.host_parameters,
                host_macs,
            },
            data: self.data.clone(),
            origin: Origin {
                env: u32::try_from(env.id.index).unwrap_or(u32::MAX),
                steps: stats.end.map_or(0, |end| end.steps_played()),
                rollbacks: stats.rollbacks,
                ..self.origin.clone()
            },
            growth,
            domains: BTreeMap::new(),
        })
    }

    fn describe(&self, seed: &SeedRecord, channels: i64) -> SeedGraph {
        let index = seed.identity.blueprint_index;
        let blueprint = self.blueprints.get(index).ok();
        SeedGraph {
            slot: seed.identity.slot,
            blueprint: seed.identity.blueprint.clone(),
            channels,
            module: blueprint.map_or(ModuleGraph::Custom, |blueprint| blueprint.graph(channels)),
            operator: seed.algorithm,
            amplitude: seed.alpha.alpha(),
        }
    }
}

fn measured((accuracy, loss): Reached, samples: u64) -> Measured {
    Measured {
        accuracy,
        loss: Some(loss).filter(|loss| loss.is_finite()),
        samples,
    }
}

fn take(prefix: &str, params: &ParamSet, into: &mut BTreeMap<String, PlainTensor>) -> Result<(), Failure> {
    for param in params.all() {
        into.insert(format!("{prefix}{}", param.name), PlainTensor::of(&param.tensor)?);
    }
    Ok(())
}

fn history(seed: &SeedRecord, measures: Option<SeedMeasures>) -> SeedHistory {
    SeedHistory {
        slot: seed.identity.slot,
        blueprint: seed.identity.blueprint.clone(),
        parameters: seed.params(),
        measures,
        stages: seed.history.iter().copied().collect(),
    }
}

fn card(task: &str, data: &TaskData) -> DataCard {
    let places = |places: &[usize]| {
        places
            .iter()
            .map(|&place| u32::try_from(place).unwrap_or(u32::MAX))
            .collect()
    };
    let card = DataCard {
        task: task.into(),
        name: data.name().into(),
        hash: data.hash().into(),
        classes: Vec::new(),
        scale: Vec::new(),
        offset: Vec::new(),
        full: 255.0,
        validation: None,
        test: None,
    };
    match data {
        TaskData::Images(set) => DataCard {
            classes: set.class_names.clone(),
            scale: set.a.clone(),
            offset: set.b.clone(),
            full: set.full,
            validation: set.drawn.val.as_deref().map(places),
            test: set.drawn.test.as_deref().map(places),
            ..card
        },
        TaskData::Tokens(set) => {
            let windows = |windows: &std::ops::Range<usize>| Some(places(&windows.clone().collect::<Vec<_>>()));
            DataCard {
                validation: windows(&set.val),
                test: windows(&set.test),
                ..card
            }
        }
    }
}
