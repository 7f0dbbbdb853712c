//! The host with its committed seeds alone, as an episode ends with it, on the test part. A kept network is measured on the
//! validation part with and without its seeds. These numbers describe exactly the weights that stay. The numbers of the
//! steps describe the network as it was then.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use smallvec::SmallVec;
use tch::{Kind, Tensor};

use super::coalition::coalition_forward;
use super::coalition_tree::{CoalitionTree, LiveSlot};
use super::pass::{MAIN, in_chunks, live_slots};
use super::plan::{CoalitionPlan, PlanMoment, Player, Players, all_on, find_players, plan_coalitions};
use super::shapley::{exact_shapley, sampled_shapley};
use crate::data::Batch;
use crate::env::{FallbackGuard, HostModel, SeedSlots};
use crate::growth::SeedStage;
use crate::health::Failure;
use crate::host::Host;
use crate::network::SeedMeasures;
use crate::scenario::{AttributionConfig, AttributionStrategy};
use crate::seed::Isolation;
use crate::telemetry::Fallbacks;
use crate::torch::{Backend, HostSyncCounter, Inference, read_f64};
use crate::training::evaluate_rows;

/// Accuracy, in percent, and loss, in nats.
pub type Reached = (f64, f64);

/// Resources of an evaluation.
#[derive(SystemParam)]
pub struct Tools<'w> {
    /// Counts reads.
    syncs: Res<'w, HostSyncCounter>,
    /// Computes in another way what fails.
    guard: Res<'w, FallbackGuard>,
}

/// An env's host with its committed seeds alone, in its current state and folded.
pub struct CommittedNetwork<'a> {
    host: &'a dyn Host,
    live: SmallVec<[LiveSlot<'a>; 4]>,
    players: Players,
    backend: Backend,
}

impl<'a> CommittedNetwork<'a> {
    /// Folds the host; call it inside the env's stream. A rollback may have changed the host since a step's validation folded it.
    pub fn of(
        host: &'a mut HostModel,
        slots: &'a mut SeedSlots,
        isolation: Isolation,
        backend: Backend,
    ) -> Result<Self, Failure> {
        let committed = slots.records().map(|record| {
            let seed = record.filter(|seed| seed.stage == SeedStage::Committed)?;
            Some((seed.stage, seed.alpha.alpha()))
        });
        let players = find_players(committed, true);
        let mut live = live_slots(&mut slots.0, isolation);
        live.retain(|live| players.iter().any(|player| player.slot == live.slot));
        let host = host.0.get();
        host.refill()?;
        Ok(Self {
            host: &**host,
            live,
            players,
            backend,
        })
    }

    /// Accuracy and loss of the whole network on `batches`, at least one; with one read.
    pub fn evaluate(&self, batches: &[Batch], tools: &Tools, fallbacks: &mut Fallbacks) -> Result<(f64, f64), Failure> {
        let (players, masks) = (SmallVec::new(), vec![0]);
        let whole = CoalitionPlan { players, masks };
        Ok(self.reached(&whole, batches, tools, fallbacks)?[MAIN])
    }

    /// The same, and the contribution of each seed to the network, by slot, at any strategy and cadence of the run.
    pub fn measure(
        &self,
        moment: PlanMoment,
        batches: &[Batch],
        tools: &Tools,
    ) -> Result<(Reached, BTreeMap<usize, SeedMeasures>), Failure> {
        let config = AttributionConfig {
            strategy: AttributionStrategy::Permutations,
            ..AttributionConfig::default()
        };
        let plan = plan_coalitions(&self.players, &config, moment);
        let masks = &plan.coalitions.masks;
        let reached = self.reached(&plan.coalitions, batches, tools, &mut Fallbacks::default())?;
        let place = |mask: u64| masks.iter().position(|&measured| measured == mask);
        let accuracy = |mask: u64| place(mask).map(|place| reached[place].0);
        let (count, whole) = (self.players.len(), reached[MAIN]);
        let shares = exact_shapley(count, accuracy).or_else(|| sampled_shapley(count, &plan.permutations, accuracy));
        let worth = |(player, of): (usize, &Player)| {
            let without = accuracy(all_on(count) & !(1 << player))?;
            let share = shares.as_ref().map(|shares| shares[player]);
            let measures = SeedMeasures {
                contribution: whole.0 - without,
                shapley: share.map(|share| share.mean.0),
                shapley_error: share.and_then(|share| share.std).map(|error| error.0),
            };
            Some((of.slot, measures))
        };
        let seeds = self.players.iter().enumerate().filter_map(worth).collect();
        Ok((whole, seeds))
    }

    /// Accuracy and loss by configuration of `plan`.
    fn reached(
        &self,
        plan: &CoalitionPlan,
        batches: &[Batch],
        tools: &Tools,
        fallbacks: &mut Fallbacks,
    ) -> Result<Vec<Reached>, Failure> {
        let tree = CoalitionTree::new(plan, &self.live);
        let chunk = tree.chunk_samples(self.backend.device);
        let _inference = Inference::new()?;
        let mut sums = Vec::new();
        for batch in batches {
            in_chunks(batch.n as i64, chunk, |first, count| {
                let x = batch.x.f_narrow(0, first, count)?;
                let y = batch.y.f_narrow(0, first, count)?;
                let logits = tools.guard.compute(self.backend, fallbacks, |_| {
                    coalition_forward(self.host, &self.live, &tree, &x)
                })?;
                let (losses, is_correct) = evaluate_rows(&logits, &y)?;
                let [correct, loss] =
                    [is_correct, losses].map(|rows| rows.f_sum_dim_intlist(1i64, false, Kind::Double));
                sums.push(Tensor::f_stack(&[correct?, loss?], 0)?);
                Ok(())
            })?;
        }
        let sums = read_f64(&Tensor::f_stack(&sums, 0)?, &tools.syncs)?;
        let predictions = batches.iter().map(|batch| batch.y.numel()).sum::<usize>() as f64;
        let blocks = plan.masks.len();
        let total = |column: usize| sums.iter().skip(column).step_by(2 * blocks).sum::<f64>();
        let reached = |&block: &usize| (100.0 * total(block) / predictions, total(blocks + block) / predictions);
        Ok(tree.places().iter().map(reached).collect())
    }
}
