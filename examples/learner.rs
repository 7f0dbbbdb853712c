//! The learner without the engine: a recurrent network of the registry, trained by PPO on a task whose optimum is known. A cue is
//! shown at the first step and has to be recalled at the last, which pays 1; guessing pays 0.5.
//!
//! Run it with `cargo run --release --example learner`.

use std::error::Error;
use std::num::NonZeroU16;

use simic_engine::extend::*;
use simic_engine::prelude::*;
use tch::{Device, Kind};

const ENVS: usize = 32;
const STEPS: usize = 4;
const HIDDEN: usize = 32;
const UPDATES: u32 = 40;
const SEED: u64 = 7;
/// Operations on the seed in the only slot, by cue.
const ANSWERS: [LifecycleOp; 2] = [LifecycleOp::Prune, LifecycleOp::Advance];
const BLUEPRINTS: usize = 1;

/// A network, seen by the learner: of the action's heads only the operation leaves a choice in this task.
struct Recall(Box<dyn ActorCritic>);

impl Recall {
    fn new() -> Result<Self, PolicyError> {
        let mut spec = NetSpec {
            kind: "lstm".into(),
            observation: 3,
            slots: 1,
            blueprints: BLUEPRINTS,
            config: Default::default(),
        };
        spec.config.hidden_dim = HIDDEN;
        let (device, seed) = (Device::Cpu, SEED);
        let net = NetRegistry::default().build(NetContext { spec, device, seed }, &Default::default())?;
        Ok(Self(net))
    }

    /// `[.., 6]`, f32: log-probabilities of the operations that the masks `[.., W]`, bool, allow.
    fn log_probs(&self, logits: &Tensor, masks: &Tensor) -> Tensor {
        let columns = self.0.spec().layout().columns(Head::Op, LifecycleOp::Wait, 0);
        let logits = logits.narrow(-1, columns.start as i64, columns.len() as i64);
        // A row of masks begins with the slots of each operation. Here it is one slot.
        let forbidden = masks.narrow(-1, 0, OPS as i64).logical_not();
        logits.masked_fill(&forbidden, -1e4).log_softmax(-1, Kind::Float)
    }
}

impl TrainablePolicy for Recall {
    fn params(&self) -> Vec<PolicyParam> {
        self.0.params().iter().collect()
    }

    fn value_output(&self) -> Linear {
        self.0.value_output()
    }

    fn evaluate(&self, input: &SequenceInput) -> Result<Evaluation, PolicyError> {
        let [rows, steps] = [0, 1].map(|dimension| input.valid.size()[dimension]);
        let sequence = NetSequence {
            observations: input.observations,
            blueprints: input.blueprints,
            lengths: input.lengths,
            initial: &self.0.zero_state(input.lengths.len() as i64),
        };
        let output = self.0.sequence(&sequence).map_err(TorchError::from)?;
        let log_probs = self.log_probs(&output.logits, input.masks);
        let chosen = input.actions.narrow(-1, Head::Op as i64, 1);
        let entropy = -(log_probs.exp() * &log_probs).sum_dim_intlist(-1, true, Kind::Float) / 3f64.ln();
        // All other heads hold their placeholders: probability 1, entropy 0.
        let others = Tensor::zeros([rows, steps, HEADS as i64 - 1], (Kind::Float, Device::Cpu));
        let with_others = |op: &Tensor| Tensor::cat(&[&others, op], -1);
        Ok(Evaluation {
            log_probs: with_others(&log_probs.gather(-1, &chosen, false)),
            value: output.value,
            entropy_causal: with_others(&entropy),
            entropy_available: with_others(&entropy),
            final_state: output.state.detach(),
        })
    }

    fn set_floor_scale(&mut self, _scale: f64) {}
}

/// Masks of a host whose one slot holds a seed in training; before the last step waiting is all there is.
fn masks() -> Result<[MaskSet; 2], PolicyError> {
    let lifecycle = LifecycleConfig {
        // The controller tries the gate out of training, by `ADVANCE`.
        auto_forward: false,
        ..LifecycleConfig::default()
    };
    let limits = Limits::new(&lifecycle, &MaskConfig::default(), 0);
    let seed = SeedReport {
        age_steps: 20,
        steps_in_stage: 19,
        ..SeedReport::at_rest(SlotId::new(0, 0), SeedStage::Training)
    };
    let (env, episode, step) = (0, 0, 1);
    let at = DecisionPoint { env, episode, step };
    let mut recalling = MaskSet::build(at, &[Some(seed)], &[Choices::first_n(BLUEPRINTS)], &limits)?;
    for row in [MaskRow::AlphaSpeed, MaskRow::AlphaCurve] {
        recalling.keep(row, Choices::only(0))?;
    }
    let mut waiting = recalling.clone();
    waiting.keep_ops(&[LifecycleOp::Wait])?;
    Ok([waiting, recalling])
}

/// Plays an episode of every env into the buffer; returns the mean reward.
fn play(policy: &Recall, learner: &Learner, buffer: &mut RolloutBuffer, round: u32) -> Result<f64, Box<dyn Error>> {
    let _no_grad = NoGrad::new();
    let reads = HostSyncCounter::default();
    let [waiting, recalling] = masks()?;
    let mut rng = RunRng::new(SEED, Domain::DecisionSampling, &[round.into()]);
    let cues: Vec<usize> = (0..ENVS).map(|_| rng.below(2) as usize).collect();
    let mut state = policy.0.zero_state(ENVS as i64);
    let mut right = 0;
    for step in 0..STEPS {
        let is_last = step + 1 == STEPS;
        let masks = if is_last { &recalling } else { &waiting };
        let mut row = vec![false; MaskSet::row_width(1, BLUEPRINTS)];
        masks.write_row(BLUEPRINTS, &mut row);
        // The cue as one of two lights, and whether an answer is due.
        let seen = cues.iter().flat_map(|&cue| match step {
            0 => [1.0 - cue as f32, cue as f32, 0.0],
            _ => [0.0, 0.0, f32::from(u8::from(is_last))],
        });
        let input = PolicyInput {
            observations: Tensor::from_slice(&seen.collect::<Vec<_>>()).view([ENVS as i64, 3]),
            blueprints: Tensor::zeros([ENVS as i64, 1], (Kind::Int64, Device::Cpu)),
        };
        let output = policy.0.step(&input, &state)?;
        let log_probs = read_f32(&policy.log_probs(&output.logits, &Tensor::from_slice(&row)), &reads)?;
        let values = read_f32(&output.value, &reads)?;
        let ops: Vec<usize> = log_probs.chunks(OPS).map(|row| draw(row, rng.uniform_f64())).collect();
        let decided = (0..ENVS).map(|env| {
            let mut indices = Head::ALL.map(|head| head.placeholder() as u8);
            indices[Head::Op as usize] = ops[env] as u8;
            let mut of_heads = [0.0; HEADS];
            of_heads[Head::Op as usize] = log_probs[env * OPS + ops[env]];
            DecidedStep {
                env,
                round,
                step: step as u32 + 1,
                indices,
                log_probs: of_heads,
                value: learner.value_units().raw(values[env].into()) as f32,
                masks,
            }
        });
        let tensors = StepTensors {
            observations: &input.observations,
            raw_observations: &input.observations,
            blueprints: &input.blueprints,
        };
        buffer.begin_steps(&decided.collect::<Vec<_>>(), &tensors)?;
        let outcomes = (0..ENVS).map(|env| {
            let is_right = is_last && ops[env] == ANSWERS[cues[env]].code();
            right += usize::from(is_right);
            StepOutcome {
                env,
                reward: f32::from(u8::from(is_right)),
                effective_op: LifecycleOp::from_code(ops[env]).unwrap_or(LifecycleOp::Wait),
            }
        });
        buffer.complete_steps(&outcomes.collect::<Vec<_>>())?;
        state = output.state;
    }
    let ends: Vec<_> = (0..ENVS).map(|env| (env, SegmentEnd::Terminal)).collect();
    buffer.end_segments(&ends)?;
    Ok(right as f64 / ENVS as f64)
}

/// The index at which the running sum of probabilities passes `uniform`.
fn draw(log_probs: &[f32], mut uniform: f64) -> usize {
    let passes = |log_prob: &f32| {
        uniform -= f64::from(log_prob.exp());
        uniform < 0.0
    };
    log_probs.iter().position(passes).unwrap_or(0)
}

fn main() -> Result<(), Box<dyn Error>> {
    // Threads cost more than they save on tensors as small as these.
    set_intra_op_threads(NonZeroU16::MIN)?;
    let mut policy = Recall::new()?;
    let shape = BufferShape {
        envs: ENVS,
        steps: STEPS,
        observation: 3,
        slots: 1,
        blueprints: BLUEPRINTS,
    };
    let mut buffer = RolloutBuffer::new(shape, Device::Cpu)?;
    let config = LearnerConfig {
        lr: 3e-3,
        epochs: 4,
        ..LearnerConfig::default()
    };
    let (total_updates, envs) = (UPDATES.into(), ENVS);
    let horizon = Horizon { total_updates, envs };
    let mut learner = Learner::new(config, horizon, SEED, &policy, Implementation::Fused)?;
    for round in 0..UPDATES {
        let reward = play(&policy, &learner, &mut buffer, round)?;
        learner.learn(&mut buffer, &mut policy, round.into(), &HostSyncCounter::default())?;
        buffer.clear()?;
        if (round + 1) % 5 == 0 {
            println!("update {:2}: reward {reward:.2}, at best 1", round + 1);
        }
    }
    Ok(())
}
