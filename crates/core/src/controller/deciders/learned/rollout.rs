//! From the observations of a step's envs to their logits and values: one upload, one forward, one read.

use tch::{Kind, Tensor};

use crate::actions::PolicyError;
use crate::controller::view::{DecisionView, EnvRow};
use crate::policy::{ActorCritic, NetOutput, PolicyInput, PolicyPrecision, RecurrentState};
use crate::torch::{NoGrad, TorchError, catch, read_f32};

/// The recurrent state of a run's envs, and the storage that steps reuse.
#[derive(Debug)]
pub struct Rollout {
    rows: usize,
    state: RecurrentState,
    /// Rows with a state that is reset before the next step.
    forgotten: Vec<usize>,
    staging: Vec<f32>,
    /// Rows of the newest step and their state before it.
    before: Option<(Tensor, RecurrentState)>,
}

impl Rollout {
    pub fn new(net: &dyn ActorCritic, rows: usize) -> Result<Self, TorchError> {
        Ok(Self {
            rows,
            state: catch(|| net.zero_state(rows as i64))?,
            forgotten: Vec::new(),
            staging: Vec::new(),
            before: None,
        })
    }

    /// Zeroes rows before they are used again.
    pub fn forget(&mut self, rows: impl Iterator<Item = usize>) {
        let known = self.rows;
        self.forgotten.extend(rows.filter(|&row| row < known));
    }

    /// The live state of all rows.
    pub fn state(&mut self) -> Result<&RecurrentState, TorchError> {
        if !self.forgotten.is_empty() {
            catch(|| self.state.reset(&self.forgotten))?;
            self.forgotten.clear();
        }
        Ok(&self.state)
    }

    /// Returns logits and value of each env, `A + 1` numbers each, and advances the envs' rows.
    pub fn act(
        &mut self,
        net: &dyn ActorCritic,
        precision: PolicyPrecision,
        view: &DecisionView,
    ) -> Result<Vec<f32>, PolicyError> {
        let (rows, before, output) = self.step(net, precision, view)?;
        let _no_grad = NoGrad::new();
        let packed = catch(|| {
            self.state.scatter(&rows, &output.state);
            Tensor::cat(&[output.logits, output.value.unsqueeze(-1)], -1)
        })?;
        self.before = Some((rows, before));
        Ok(read_f32(&packed, view.reads)?)
    }

    /// Puts the rows of the newest step back to where it found them.
    pub fn take_back(&mut self) -> Result<(), TorchError> {
        match self.before.take() {
            None => Ok(()),
            Some((rows, before)) => catch(|| self.state.scatter(&rows, &before)),
        }
    }

    /// Returns the value of each env. The rows stay unchanged.
    pub fn value(
        &mut self,
        net: &dyn ActorCritic,
        precision: PolicyPrecision,
        view: &DecisionView,
    ) -> Result<Vec<f32>, PolicyError> {
        let (_, _, output) = self.step(net, precision, view)?;
        Ok(read_f32(&output.value, view.reads)?)
    }

    /// The envs' rows, their values, and the network's output.
    fn step(
        &mut self,
        net: &dyn ActorCritic,
        precision: PolicyPrecision,
        view: &DecisionView,
    ) -> Result<(Tensor, RecurrentState, NetOutput), PolicyError> {
        self.state()?;
        let (input, rows) = self.upload(net, view)?;
        let _no_grad = NoGrad::new();
        let before = catch(|| self.state.select(&rows))?;
        let output = precision.step(net, &input, &before)?;
        Ok((rows, before, output))
    }

    /// The inputs of a step, on the device, and the envs' rows, `i64 [n]`. Observations, blueprints and row numbers travel as
    /// one matrix of floats, which holds all of them exactly.
    fn upload(&mut self, net: &dyn ActorCritic, view: &DecisionView) -> Result<(PolicyInput, Tensor), PolicyError> {
        let spec = net.spec();
        let (features, slots) = (spec.observation, spec.slots);
        self.staging.clear();
        for env in view.envs {
            let observation = env.observation.ok_or(PolicyError::NoObservation {
                at: view.point(env.row),
            })?;
            let found = [observation.normalised.len(), observation.blueprints.len()];
            if found != [features, slots] {
                return Err(PolicyError::ShapeMismatch {
                    what: "observation (features, slots)",
                    expected: vec![features as i64, slots as i64],
                    found: found.map(|length| length as i64).into(),
                });
            }
            let row = self.row_of(env.row)?;
            self.staging.extend_from_slice(&observation.normalised);
            self.staging
                .extend(observation.blueprints.iter().map(|&index| index as f32));
            self.staging.push(row as f32);
        }
        let (envs, features, slots) = (view.envs.len() as i64, features as i64, slots as i64);
        let upload = catch(|| {
            let matrix = Tensor::from_slice(&self.staging)
                .view([envs, features + slots + 1])
                .to_device(net.params().device());
            let whole = |first, length| matrix.narrow(1, first, length).to_kind(Kind::Int64);
            let input = PolicyInput {
                observations: matrix.narrow(1, 0, features),
                blueprints: whole(features, slots),
            };
            (input, whole(features + slots, 1).squeeze_dim(1))
        })?;
        Ok(upload)
    }

    fn row_of(&self, row: EnvRow) -> Result<usize, PolicyError> {
        if row.env < self.rows {
            return Ok(row.env);
        }
        Err(PolicyError::ShapeMismatch {
            what: "row of the rollout",
            expected: vec![self.rows as i64],
            found: vec![row.env as i64],
        })
    }
}
