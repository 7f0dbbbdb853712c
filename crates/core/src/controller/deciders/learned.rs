//! The controller that learns: masks, floors, sampling and recurrent rows around any [`ActorCritic`].

mod rollout;
mod storage;
mod saved_policy;

use std::path::Path;

use tch::{Kind, Tensor};

use super::context::BuildContext;
use super::controller::{Controller, LearningPolicy};
use crate::actions::{Decision, HEADS, Head, MaskSet, PolicyError, command_of};
use crate::controller::saved::SavedFolder;
use crate::controller::view::{DecisionView, EnvRow, EnvView, ObservationNormaliser, ObservationSchema};
use crate::health::Failure;
use crate::nn::Linear;
use crate::policy::{
    ActorCritic, DecideMode, Evaluation, Floor, LogitLayout, NetContext, NetSequence, NetSpec, OpTables, PolicyParam,
    PolicyPrecision, RawObservations, RecurrentState, SequenceInput, Stored, TrainablePolicy, choose, head_terms,
    head_uniforms,
};
use crate::random::Domain;
use crate::torch::{HostSyncCounter, NoGrad, catch, copy_into, read_f32};
use crate::unfinished::UnfinishedRound;
use rollout::Rollout;
use storage::{FORMAT, PolicyManifest, VALUE_HEAD, action_space_hash, load_policy, save_policy};

pub use saved_policy::SavedPolicy;
pub use storage::{MANIFEST_FILE, WEIGHTS_FILE};

/// A policy network at work on the envs of a run.
pub struct ActorCriticController {
    net: Box<dyn ActorCritic>,
    layout: LogitLayout,
    tables: OpTables,
    schema: ObservationSchema,
    normaliser: ObservationNormaliser,
    blueprints: Vec<String>,
    /// Choices that the scenario does not allow, as `head:member`.
    excluded: Vec<String>,
    floors: [Floor; HEADS],
    floor_scale: f64,
    mode: DecideMode,
    rollout: Rollout,
    precision: PolicyPrecision,
    seed: u64,
    /// Updates that the weights have seen: part of a saved policy.
    updates: u64,
    /// Weights by name that replace the current ones if their outputs aren't finite. Used once.
    last_good: Vec<(String, Tensor)>,
    /// The policy that this one is kept close to.
    teacher: Option<Box<Self>>,
    /// Reads for storage and for the teacher. The view's counter counts the reads of a step.
    reads: HostSyncCounter,
}

impl ActorCriticController {
    /// Builds the network that `policy.net` names, on the context's device, and loads `policy.init_from` and `policy.teacher`.
    ///
    /// # Errors
    /// An unknown network, a configuration that it refuses, a saved policy that does not fit, or a device error.
    pub fn new(context: &BuildContext) -> Result<Self, PolicyError> {
        let policy = &context.scenario.policy;
        let from = |folder: &Option<String>| Self::from_folder(context, folder.as_deref());
        let teacher = policy.teacher.is_some().then(|| from(&policy.teacher));
        Ok(Self {
            teacher: teacher.transpose()?.map(Box::new),
            ..from(&policy.init_from)?
        })
    }

    fn from_folder(context: &BuildContext, folder: Option<&str>) -> Result<Self, PolicyError> {
        let (policy, learner) = (&context.scenario.policy, &context.scenario.learner);
        let run = &context.scenario.run;
        let schema = context.schema();
        let net = NetContext {
            spec: NetSpec {
                kind: policy.net.clone(),
                observation: schema.len(),
                slots: context.slots.len(),
                blueprints: context.blueprints.len(),
                config: policy.net_cfg,
            },
            device: context.device,
            seed: run.seed,
        };
        let net = context.nets.build(net, &policy.net_settings)?;
        let blueprints: Vec<String> = context.blueprints.iter().map(|name| (*name).to_string()).collect();
        let mut controller = Self {
            layout: net.spec().layout(),
            tables: catch(|| OpTables::new(context.device))?,
            normaliser: ObservationNormaliser::new(&schema),
            schema,
            excluded: context.allowed_actions().excluded(&blueprints),
            blueprints,
            floors: Floor::of_heads(1.0),
            floor_scale: 1.0,
            mode: DecideMode::default(),
            rollout: Rollout::new(&*net, run.n_envs)?,
            precision: PolicyPrecision::new(learner.amp, context.device),
            net,
            seed: run.seed,
            updates: 0,
            last_good: Vec::new(),
            teacher: None,
            reads: HostSyncCounter::default(),
        };
        if let Some(folder) = folder {
            controller.load(&SavedFolder::read(&context.path(folder))?)?;
        }
        Ok(controller)
    }

    fn restore_last_good(&mut self) -> Result<(), PolicyError> {
        let last_good = std::mem::take(&mut self.last_good);
        for param in self.net.params().iter() {
            if let Some((_, weight)) = last_good.iter().find(|(name, _)| *name == param.name) {
                copy_into(&param.tensor, weight, false)?;
            }
        }
        Ok(self.rollout.take_back()?)
    }

    /// Acts for all envs of a view and advances their rows.
    fn act(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let outputs = self.rollout.act(&*self.net, self.precision, view)?;
        let rows = outputs.chunks_exact(self.layout.width() + 1);
        let envs = view.envs.iter().zip(masks).zip(rows);
        envs.map(|((env, masks), output)| self.decision(view, env, masks, output))
            .collect()
    }

    fn decision(
        &self,
        view: &DecisionView,
        env: &EnvView,
        masks: &MaskSet,
        output: &[f32],
    ) -> Result<Decision, PolicyError> {
        let (logits, value) = output.split_at(self.layout.width());
        let infinite = Head::ALL.into_iter().find(|&head| {
            let columns = self.layout.head(head);
            let logits = &logits[columns.first..columns.first + columns.width()];
            logits.iter().any(|logit| !logit.is_finite())
        });
        let value_is_finite = value.iter().all(|value| value.is_finite());
        if infinite.is_some() || !value_is_finite {
            return Err(PolicyError::PolicyNonFinite {
                at: view.point(env.row),
                head: infinite,
            });
        }
        let mut stream = view.stream(self.seed, Domain::DecisionSampling, env.row);
        let uniforms = head_uniforms(&mut stream);
        let (indices, mut sample) = choose(logits, &self.layout, masks, &self.floors, &uniforms, self.mode);
        sample.value = value.first().copied().unwrap_or(f32::NAN);
        let reason = match self.mode {
            DecideMode::Sample => "sampled",
            DecideMode::Greedy => "likeliest",
        };
        let mut decision = Decision::new(command_of(&indices)?, masks, reason);
        decision.sample = Some(sample);
        Ok(decision)
    }

    fn manifest(&self) -> PolicyManifest {
        let spec = self.net.spec();
        let slots: Vec<String> = self.schema.slots().iter().map(ToString::to_string).collect();
        PolicyManifest {
            format: FORMAT,
            net: spec.kind.clone(),
            net_cfg: spec.config,
            action_space: action_space_hash(&slots, &self.blueprints),
            slots,
            blueprints: self.blueprints.clone(),
            excluded: self.excluded.clone(),
            observation: self.schema.len(),
            schema_hash: self.schema.hash(),
            value_head: VALUE_HEAD,
            floor_scale: self.floor_scale,
            statistics: self.normaliser.statistics().to_vec(),
            updates: self.updates,
            weights: String::new(),
        }
    }
}

/// Name of a tensor of the recurrent state, in a checkpoint inside a round.
fn state_name(index: usize) -> String {
    format!("controller.recurrent.{index}")
}

impl Controller for ActorCriticController {
    fn name(&self) -> &str {
        "actor_critic"
    }

    fn needs_observation(&self) -> bool {
        true
    }

    fn begin_episode(&mut self, rows: &[EnvRow]) {
        self.rollout.forget(rows.iter().map(|row| row.env));
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        if view.envs.is_empty() {
            return Ok(Vec::new());
        }
        match self.act(view, masks) {
            Err(error @ PolicyError::PolicyNonFinite { .. }) if !self.last_good.is_empty() => {
                tracing::warn!("{error}; the weights before the newest update are restored");
                self.restore_last_good()?;
                self.act(view, masks)
            }
            decided => decided,
        }
    }

    fn learned(&mut self) -> Option<&mut dyn LearningPolicy> {
        Some(self)
    }

    fn save_episodes(&mut self, round: &mut UnfinishedRound) -> Result<(), Failure> {
        let state = self.rollout.state()?.0.iter().enumerate();
        for (index, tensor) in state {
            round.put_tensor(state_name(index), tensor)?;
        }
        Ok(())
    }

    fn restore_episodes(&mut self, round: &UnfinishedRound) -> Result<(), Failure> {
        let state = self.rollout.state()?.0.iter().enumerate();
        for (index, tensor) in state {
            round.copy_to(&state_name(index), tensor)?;
        }
        Ok(())
    }

    fn save(&self, folder: &Path) -> Result<(), PolicyError> {
        save_policy(folder, &self.manifest(), self.net.params())
    }

    fn load(&mut self, saved: &SavedFolder) -> Result<(), PolicyError> {
        let saved = load_policy(saved, &self.manifest(), self.net.params())?;
        self.normaliser.restore(&saved.statistics)?;
        self.updates = saved.updates;
        self.set_floor_scale(saved.floor_scale);
        Ok(())
    }
}

impl TrainablePolicy for ActorCriticController {
    fn params(&self) -> Vec<PolicyParam> {
        self.net.params().iter().collect()
    }

    fn value_output(&self) -> Linear {
        self.net.value_output()
    }

    fn precision(&self) -> Option<Kind> {
        self.precision.kind()
    }

    fn evaluate(&self, input: &SequenceInput) -> Result<Evaluation, PolicyError> {
        let spec = self.net.spec();
        let initial = catch(|| self.net.zero_state(input.lengths.len() as i64))?;
        let sequence = NetSequence {
            observations: input.observations,
            blueprints: input.blueprints,
            lengths: input.lengths,
            initial: &initial,
        };
        let output = self.precision.sequence(&*self.net, &sequence)?;
        let evaluation = catch(|| {
            let stored = Stored::new(input.masks, input.actions, spec.slots, spec.blueprints, &self.tables);
            let terms = head_terms(&output.logits, &self.layout, &stored, &self.tables, &self.floors);
            Evaluation {
                log_probs: terms.log_probs,
                value: output.value,
                entropy_causal: terms.entropy_causal,
                entropy_available: terms.entropy_available,
                final_state: output.state.detach(),
            }
        })?;
        Ok(evaluation)
    }

    fn teacher_log_probs(&self, raw: RawObservations, input: &SequenceInput) -> Result<Option<Tensor>, PolicyError> {
        let Some(teacher) = &self.teacher else { return Ok(None) };
        let (raw, mut observations, mut row) = (raw()?, Vec::new(), Vec::new());
        for raw in read_f32(&raw, &self.reads)?.chunks_exact(self.schema.len()) {
            teacher.normaliser.normalise(raw, &mut row);
            observations.extend_from_slice(&row);
        }
        let observations = catch(|| Tensor::from_slice(&observations).view_as(&raw).to_device(raw.device()))?;
        let _no_grad = NoGrad::new();
        let evaluation = teacher.evaluate(&SequenceInput {
            observations: &observations,
            ..*input
        })?;
        Ok(Some(evaluation.log_probs))
    }

    fn set_floor_scale(&mut self, scale: f64) {
        // Exploration that both share isn't divergence.
        if let Some(teacher) = &mut self.teacher {
            teacher.set_floor_scale(scale);
        }
        self.floor_scale = scale;
        self.floors = Floor::of_heads(scale);
    }
}

impl LearningPolicy for ActorCriticController {
    fn net(&self) -> &dyn ActorCritic {
        &*self.net
    }

    fn schema(&self) -> &ObservationSchema {
        &self.schema
    }

    fn normaliser(&self) -> &ObservationNormaliser {
        &self.normaliser
    }

    fn normaliser_mut(&mut self) -> &mut ObservationNormaliser {
        &mut self.normaliser
    }

    fn recurrent(&mut self) -> Result<&RecurrentState, PolicyError> {
        Ok(self.rollout.state()?)
    }

    fn reset_rows(&mut self, rows: &[usize]) {
        self.rollout.forget(rows.iter().copied());
    }

    fn value(&mut self, view: &DecisionView) -> Result<Vec<f32>, PolicyError> {
        if view.envs.is_empty() {
            return Ok(Vec::new());
        }
        let values = self.rollout.value(&*self.net, self.precision, view)?;
        match values.iter().zip(view.envs).find(|(value, _)| !value.is_finite()) {
            None => Ok(values),
            Some((_, env)) => Err(PolicyError::PolicyNonFinite {
                at: view.point(env.row),
                head: None,
            }),
        }
    }

    fn set_mode(&mut self, mode: DecideMode) {
        self.mode = mode;
    }

    fn updates(&self) -> u64 {
        self.updates
    }

    fn set_updates(&mut self, updates: u64) {
        self.updates = updates;
    }

    fn set_last_good(&mut self, weights: Vec<(String, Tensor)>) {
        self.last_good = weights;
    }
}

#[cfg(test)]
mod acting_tests;
#[cfg(test)]
mod storage_tests;
#[cfg(test)]
mod tests;
