//! Proximal policy optimization over one rollout (Schulman et al. 2017), for a recurrent policy whose action has several
//! heads. Read `run`, `step` and `objective` in this order: they are the algorithm. Measurements are gathered after each
//! step by [`MinibatchStep::measure`].
//!
//! Nothing in the loop waits for the device: the divergence stop, the consistency check and the finiteness gates are flags
//! on the device that suppress the optimizer's step, and all measurements are read once at the end. On a CPU, where
//! reading waits for nothing, the loop leaves early when a flag says that no further step will be taken.
//! On a GPU steps from the second minibatch on are played as CUDA graphs where that is asked for.

use tch::{Device, Kind, Tensor};

use super::loss::{
    Gates, LearnerSchedules, Losses, Ratios, cloning_loss, divergence_from, drift, entropy_floor_penalty,
    head_denominators, head_entropies, mean, per_head_policy_loss, value_loss,
};
use super::measurements::{MAX_DRIFT, MeasuredStep, MinibatchStep, UpdateMeasurements, read_all};
use super::optimizer::PolicyOptimizer;
use super::sequences::{SequenceBatch, split};
use super::steps::LearnerError;
use crate::actions::HEADS;
use crate::env::FallbackGuard;
use crate::policy::{Evaluation, TrainablePolicy};
use crate::random::Draw;
use crate::scenario::{Algorithm, LearnerConfig};
use crate::telemetry::Fallbacks;
use crate::torch::{Backend, Graph, HostSyncCounter, Stream, TorchError, catch, read_f32, synchronize, upload};
use crate::training::graphs::Graphs;

/// An update stops where the divergence exceeds the target by this factor.
const KL_TOLERANCE: f64 = 1.5;
/// Weight of each head in the entropy bonus, in the storage order of the heads: what grows and how it is blended is tried longer than
/// where and when.
const ENTROPY_MULTIPLIERS: [f64; HEADS] = [1.0, 1.3, 1.2, 1.3, 1.2, 1.2, 1.2, 1.0];
/// Normalised entropy below which a head is penalised, in the storage order of the heads: without it a head that has found one
/// good choice stops trying the others.
const ENTROPY_FLOORS: [f64; HEADS] = [0.15, 0.20, 0.15, 0.20, 0.10, 0.10, 0.10, 0.30];
/// Strength of that penalty, by head.
const ENTROPY_FLOOR_COEFS: [f64; HEADS] = [0.1, 0.3, 0.1, 0.3, 0.1, 0.1, 0.1, 0.3];

/// Flags of an update that stay set, f32 scalars on the device.
struct StopFlags {
    kl: Tensor,
    mismatch: Tensor,
}

/// One pass of the algorithm over a rollout.
pub(super) struct Update<'a> {
    pub config: &'a LearnerConfig,
    pub schedules: LearnerSchedules,
    pub batch: &'a SequenceBatch,
    /// As [`by_head`] makes them.
    pub by_head: [Tensor; 3],
    pub reads: &'a HostSyncCounter,
    pub guard: &'a FallbackGuard,
}

impl Update<'_> {
    /// Optimises `policy` in place, with its steps recorded if asked for. The caller judges what was measured.
    pub fn run(
        &self,
        policy: &dyn TrainablePolicy,
        optimizer: &mut PolicyOptimizer,
        recorded: &mut Option<RecordedSteps>,
        rng: &mut impl Draw,
    ) -> Result<UpdateMeasurements, LearnerError> {
        let device = self.batch.device();
        let stream = recorded.as_mut().map(|steps| steps.begin(device)).transpose()?;
        let guard = stream.as_ref().map(Stream::enter).transpose()?;
        optimizer.remember()?;
        optimizer.set_lr(self.schedules.lr)?;
        let zero = || catch(|| Tensor::zeros([0i64; 0], (Kind::Float, device)));
        let mut stop = StopFlags {
            kl: zero()?,
            mismatch: zero()?,
        };
        let mut order: Vec<i64> = (0..self.batch.len() as i64).collect();
        let on_device = catch(|| Tensor::zeros([order.len() as i64], (Kind::Int64, device)))?;
        let (mut steps, mut fallbacks) = (Vec::new(), Fallbacks::default());

        'epochs: for epoch in 0..self.config.epochs {
            // Whole sequences are shuffled, never single steps: the recurrent core replays each from its start.
            rng.shuffle(&mut order);
            upload(&on_device, &order)?;
            for (index, part) in split(order.len(), self.config.num_minibatches as usize).enumerate() {
                let minibatch = catch(|| self.batch.select(&order, &on_device, part))?;
                let is_first = steps.is_empty();
                let mut step = |minibatch: &SequenceBatch| {
                    self.step(minibatch, policy, optimizer, (&mut stop, &mut fallbacks), is_first)
                };
                let numbers = match recorded {
                    Some(recorded) if !is_first && recorded.takes(&minibatch) => recorded.play(minibatch, &mut step)?,
                    _ => step(&minibatch)?,
                };
                steps.push(MeasuredStep {
                    epoch,
                    minibatch: index as u32,
                    numbers,
                });
                if !device.is_cuda() && is_over(&stop)? {
                    break 'epochs;
                }
            }
        }
        let mut measured = read_all(&steps, &optimizer.squares()?, self.reads)?;
        measured.fallbacks = fallbacks;
        drop(guard);
        stream.as_ref().map_or(Ok(()), Stream::synchronize)?;
        Ok(measured)
    }

    /// One minibatch: evaluate and differentiate, on the guarded path; descend where nothing forbids it; measure.
    fn step(
        &self,
        minibatch: &SequenceBatch,
        policy: &dyn TrainablePolicy,
        optimizer: &mut PolicyOptimizer,
        (stop, fallbacks): (&mut StopFlags, &mut Fallbacks),
        is_first: bool,
    ) -> Result<Tensor, LearnerError> {
        let backend = optimizer.backend;
        let attempt = |backend: Backend| -> Result<_, LearnerError> {
            // The stored actions under the current weights.
            let evaluation = catch(|| policy.evaluate(&minibatch.input()))??;
            let (ratios, kl, losses) = catch(|| {
                let ratios = Ratios::new(&evaluation.log_probs, &minibatch.old_log_probs, &minibatch.causal);

                // Before any parameter has moved, evaluation must repeat the policy's outputs of acting.
                if is_first {
                    let drift = drift(&evaluation.log_probs, &minibatch.old_log_probs);
                    stop.mismatch = mean(&drift, &minibatch.causal).gt(MAX_DRIFT).to_kind(Kind::Float);
                }
                // Divergence stop: from here on no step is taken.
                let kl = ratios.joint_kl(&minibatch.actor);
                let is_held = !matches!(self.config.algorithm, Algorithm::Clone(_));
                if let Some(target) = self.config.target_kl.filter(|_| is_held) {
                    let exceeded = kl.gt(KL_TOLERANCE * target).to_kind(Kind::Float);
                    // In place, where a recorded step reads it again.
                    let exceeded = stop.kl.maximum(&exceeded);
                    stop.kl.copy_(&exceeded);
                }
                let behaviour = minibatch.behaviour.as_ref();
                let to_behaviour = behaviour.map(|old| Ratios::new(&evaluation.log_probs, old, &minibatch.causal));
                let losses = self.objective(&evaluation, to_behaviour.as_ref().unwrap_or(&ratios), minibatch);
                (ratios, kl, losses)
            })?;

            // Gradients, clipped by their norm.
            optimizer.zero_grad()?;
            let loss_scale = optimizer.loss_scale();
            optimizer.backward(&losses.total, backend)?;
            let gradients = optimizer.clip(self.config.max_grad_norm)?;
            Ok((evaluation, ratios, kl, losses, loss_scale, gradients))
        };
        let (evaluation, ratios, kl, losses, loss_scale, gradients) =
            self.guard.compute(backend, fallbacks, attempt)?;

        // No step after a stop, none with a value that is not finite.
        let gates = catch(|| Gates::check(&evaluation, minibatch, &losses, &gradients))?;
        let suppressed = catch(|| gates.any().maximum(&stop.kl).maximum(&stop.mismatch))?;
        let is_critic_alone = minibatch.teacher.is_some() && self.schedules.is_critic_alone;
        optimizer.step(&suppressed, is_critic_alone)?;
        optimizer.update_scale(&gradients)?;

        Ok(catch(|| {
            MinibatchStep {
                minibatch,
                evaluation: &evaluation,
                ratios: &ratios,
                clip_ratio: self.config.clip_ratio,
                kl: &kl,
                losses: &losses,
                gradients: &gradients,
                gates: &gates,
                loss_scale: loss_scale.as_ref(),
                kl_stop: &stop.kl,
                mismatch: &stop.mismatch,
                suppressed: &suppressed,
            }
            .measure()
        })?)
    }

    /// `L = L_policy + c_V·L_value + c_E·L_entropy + P_floor + c_T·L_teacher`; `ratios` are those to the policy that acted.
    fn objective(&self, evaluation: &Evaluation, ratios: &Ratios, minibatch: &SequenceBatch) -> Losses {
        let (config, schedules) = (self.config, &self.schedules);
        let SequenceBatch {
            actor,
            causal,
            available,
            valid,
            ..
        } = minibatch;
        let denominators = head_denominators(causal, actor, config.head_min_fraction);

        let policy = match &config.algorithm {
            // Clipped surrogate of each head.
            Algorithm::Ppo | Algorithm::Impala(_) => {
                per_head_policy_loss(ratios, &minibatch.advantages, causal, &denominators, config.clip_ratio)
            }
            Algorithm::Clone(_) => cloning_loss(&evaluation.log_probs, &minibatch.advantages, causal, &denominators),
        };
        let policy = policy.sum(Kind::Float);

        // Value loss, in normalised units.
        let value = value_loss(&evaluation.value, &minibatch.targets, &minibatch.value_weights, valid);

        // Entropy bonus of the branches chosen, and penalty of heads that collapse.
        let [multipliers, floors, floor_coefs] = &self.by_head;
        let entropies = head_entropies(&evaluation.entropy_causal, causal, &denominators);
        let entropy = -(entropies * multipliers).sum(Kind::Float);
        let floor_penalty = entropy_floor_penalty(&evaluation.entropy_available, available, floors, floor_coefs);
        let floor_penalty = floor_penalty * schedules.entropy_floor;

        // The policy that it is held to.
        let teacher = minibatch.teacher.as_ref();
        let teacher = teacher.map(|teacher| divergence_from(teacher, &evaluation.log_probs, causal, actor));

        let total = &policy + &value * config.value_coef + &entropy * schedules.entropy_coef + &floor_penalty;
        Losses {
            total: match &teacher {
                Some(divergence) => total + divergence * schedules.teacher_coef,
                None => total,
            },
            teacher,
            policy,
            value,
            entropy,
            floor_penalty,
        }
    }
}

/// Multipliers of the entropy bonus, entropy floors, and weights of the floors' penalty: each `f32 [K]`, on `device`.
pub(super) fn by_head(device: Device) -> Result<[Tensor; 3], TorchError> {
    let values = [ENTROPY_MULTIPLIERS, ENTROPY_FLOORS, ENTROPY_FLOOR_COEFS];
    catch(|| values.map(|values| Tensor::from_slice(&values.map(|value| value as f32)).to_device(device)))
}

/// No step will be taken any more.
fn is_over(stop: &StopFlags) -> Result<bool, TorchError> {
    let either = catch(|| stop.kl.maximum(&stop.mismatch))?;
    Ok(read_f32(&either, &HostSyncCounter::default())?[0] > 0.0)
}

/// Recordings of the current update.
#[derive(Debug, Default)]
pub(super) struct RecordedSteps {
    /// Nothing is recorded in the device's default stream.
    stream: Option<Stream>,
    updates: u64,
    /// By update and size.
    graphs: Graphs<(u64, Vec<i64>), Graph>,
    /// The minibatch that all steps read.
    place: Option<SequenceBatch>,
    /// The measurements of the recorded step.
    numbers: Option<Tensor>,
    is_refused: bool,
}

impl RecordedSteps {
    /// Begins an update, which is to be played in the stream that this returns.
    pub fn begin(&mut self, device: Device) -> Result<Stream, TorchError> {
        self.updates += 1;
        (self.place, self.numbers) = (None, None);
        synchronize(device)?;
        let stream = match &self.stream {
            Some(stream) => stream.clone(),
            None => Stream::from_pool(device)?,
        };
        Ok(self.stream.insert(stream).clone())
    }

    /// Returns whether a step of `minibatch` may be recorded: padding is packed on the host.
    pub fn takes(&self, minibatch: &SequenceBatch) -> bool {
        !self.is_refused && minibatch.is_full()
    }

    /// Plays `step` on `minibatch`.
    pub fn play(
        &mut self,
        minibatch: SequenceBatch,
        step: &mut dyn FnMut(&SequenceBatch) -> Result<Tensor, LearnerError>,
    ) -> Result<Tensor, LearnerError> {
        let size = minibatch.valid.size();
        let place = match &mut self.place {
            Some(place) if place.valid.size() == size => {
                catch(|| place.copy_from(&minibatch))?;
                place
            }
            place => place.insert(minibatch),
        };
        let numbers = &mut self.numbers;
        let played = self.graphs.play((self.updates, size), false, || {
            *numbers = Some(step(place)?);
            Ok(())
        });
        if let Some(reason) = played.map_err(|failure| TorchError::classify(failure.to_string()))? {
            self.is_refused = true;
            tracing::warn!("run.cuda_graphs: the policy's updates can't be recorded and are played as usual: {reason}");
        }
        let unmeasured = || TorchError::Other("a minibatch was not measured".into());
        let numbers = numbers.as_ref().ok_or_else(unmeasured)?;
        Ok(catch(|| numbers.copy())?)
    }
}

#[cfg(test)]
mod tests;
