//! Two small tasks with known optima, in the engine's own action space.

use crate::actions::fixtures::{empty, limits, masks, report};
use crate::actions::{Choices, Head, HeadIndices, MaskRow, MaskSet};
use crate::growth::{LifecycleOp, SeedStage};
use crate::random::{Draw, RunRng};
use crate::seed::SeedReport;

pub const BLUEPRINTS: usize = 8;

/// Several envs that play episodes of a fixed length side by side.
pub trait Task {
    const SLOTS: usize;
    /// Length of an observation.
    const OBSERVATION: usize;
    /// Heads that have a choice, those that others depend on first.
    const HEADS: &'static [Head];
    /// Steps of an episode.
    const STEPS: usize;
    fn envs(&self) -> usize;
    fn begin_episode(&mut self, rng: &mut RunRng);
    fn observation(&self, env: usize, step: usize) -> Vec<f32>;
    fn masks(&self, env: usize, step: usize) -> &MaskSet;
    /// Reward of an action and, if there was a choice, the quality of the choice from 0 to 1.
    fn play(&mut self, env: usize, step: usize, action: &HeadIndices) -> (f32, Option<f64>);
}

/// A cue is shown at phase 0 of each of two rounds and must be recalled at phase 5: waiting is all there is in between.
pub struct CueTask {
    cues: Vec<[usize; 2]>,
    /// Reward of a right answer.
    pub reward: f32,
    waiting: MaskSet,
    deciding: MaskSet,
}

impl CueTask {
    const PHASES: usize = 6;
    const ANSWERS: [LifecycleOp; 2] = [LifecycleOp::Prune, LifecycleOp::Advance];

    pub fn new(envs: usize) -> Self {
        // It may be pruned or moved on.
        let seed = SeedReport {
            age_steps: 20,
            steps_in_stage: 19,
            ..report(0, SeedStage::Training)
        };
        let mut deciding = masks(&[Some(seed)], &limits());
        for row in [MaskRow::AlphaSpeed, MaskRow::AlphaCurve] {
            deciding.keep(row, Choices::only(0)).expect("0 is a member");
        }
        let mut waiting = deciding.clone();
        waiting.keep_ops(&[LifecycleOp::Wait]).expect("waiting is possible");
        Self {
            cues: vec![[0; 2]; envs],
            reward: 1.0,
            waiting,
            deciding,
        }
    }

    fn is_decision(step: usize) -> bool {
        step % Self::PHASES == Self::PHASES - 1
    }
}

impl Task for CueTask {
    const SLOTS: usize = 1;
    const OBSERVATION: usize = 4;
    const HEADS: &'static [Head] = &[Head::Op];
    const STEPS: usize = 2 * Self::PHASES;

    fn envs(&self) -> usize {
        self.cues.len()
    }

    fn begin_episode(&mut self, rng: &mut RunRng) {
        for cues in &mut self.cues {
            *cues = [rng.below(2) as usize, rng.below(2) as usize];
        }
    }

    fn observation(&self, env: usize, step: usize) -> Vec<f32> {
        let mut observation = vec![0.0; Self::OBSERVATION];
        if step.is_multiple_of(Self::PHASES) && step < Self::STEPS {
            observation[self.cues[env][step / Self::PHASES]] = 1.0;
        }
        observation[2] = step as f32 / Self::STEPS as f32;
        observation[3] = f32::from(u8::from(Self::is_decision(step)));
        observation
    }

    fn masks(&self, _env: usize, step: usize) -> &MaskSet {
        if Self::is_decision(step) {
            &self.deciding
        } else {
            &self.waiting
        }
    }

    fn play(&mut self, env: usize, step: usize, action: &HeadIndices) -> (f32, Option<f64>) {
        if !Self::is_decision(step) {
            return (0.0, None);
        }
        let answer = Self::ANSWERS[self.cues[env][step / Self::PHASES]];
        let is_right = usize::from(action[Head::Op as usize]) == answer.code();
        let score = f64::from(u8::from(is_right));
        (self.reward * score as f32, Some(score))
    }
}

/// Episodes of one step. The best seed to germinate depends on the context; in the last context waiting is best. Each part of
/// a germination that is right pays a sixth.
pub struct BanditTask {
    contexts: Vec<usize>,
    masks: Vec<MaskSet>,
}

impl BanditTask {
    const CONTEXTS: usize = 4;
    const WAIT_REWARD: f64 = 0.4;
    /// The best members of `PARTS`, by context.
    const BEST: [[u8; 5]; Self::CONTEXTS - 1] = [[0, 3, 1, 0, 2], [2, 5, 3, 2, 0], [1, 7, 0, 1, 1]];
    const PARTS: [Head; 5] = [Head::Slot, Head::Blueprint, Head::Style, Head::Tempo, Head::AlphaTarget];

    pub fn new(envs: usize) -> Self {
        let masks = (0..Self::CONTEXTS).map(|context| {
            let mut masks = masks(&empty(Self::SLOTS), &limits());
            if let Some(&[_, blueprint, style, ..]) = Self::BEST.get(context) {
                // Half of what is wrong is not even offered.
                let (blueprint, style) = (usize::from(blueprint), usize::from(style));
                let offered = [blueprint, 1 + blueprint % 7, 1 + (blueprint + 3) % 7];
                for slot in 0..Self::SLOTS {
                    let row = MaskRow::Blueprints { slot };
                    masks.keep(row, offered.into_iter().collect()).expect("offered");
                }
                let styles = [style, (style + 1) % 4].into_iter().collect();
                masks.keep(MaskRow::Style, styles).expect("offered");
            }
            masks
        });
        Self {
            contexts: vec![0; envs],
            masks: masks.collect(),
        }
    }

    fn value(context: usize, action: &HeadIndices) -> f64 {
        if usize::from(action[Head::Op as usize]) == LifecycleOp::Wait.code() {
            return Self::WAIT_REWARD;
        }
        Self::BEST.get(context).map_or(0.0, |best| {
            let parts = Self::PARTS.iter().zip(best);
            let right = parts.filter(|(part, best)| action[**part as usize] == **best);
            (1 + right.count()) as f64 / 6.0
        })
    }
}

impl Task for BanditTask {
    const SLOTS: usize = 3;
    const OBSERVATION: usize = Self::CONTEXTS;
    const HEADS: &'static [Head] = &[
        Head::Op,
        Head::Slot,
        Head::Blueprint,
        Head::Style,
        Head::Tempo,
        Head::AlphaTarget,
    ];
    const STEPS: usize = 1;

    fn envs(&self) -> usize {
        self.contexts.len()
    }

    fn begin_episode(&mut self, rng: &mut RunRng) {
        for context in &mut self.contexts {
            *context = rng.below(Self::CONTEXTS as u64) as usize;
        }
    }

    fn observation(&self, env: usize, _step: usize) -> Vec<f32> {
        let mut observation = vec![0.0; Self::CONTEXTS];
        observation[self.contexts[env]] = 1.0;
        observation
    }

    fn masks(&self, env: usize, _step: usize) -> &MaskSet {
        &self.masks[self.contexts[env]]
    }

    fn play(&mut self, env: usize, _step: usize, action: &HeadIndices) -> (f32, Option<f64>) {
        let context = self.contexts[env];
        let value = Self::value(context, action);
        let is_growth_best = context < Self::BEST.len();
        let optimum = if is_growth_best { 1.0 } else { Self::WAIT_REWARD };
        (value as f32, Some(value / optimum))
    }
}
