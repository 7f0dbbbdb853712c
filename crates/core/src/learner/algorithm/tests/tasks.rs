//! Two small tasks with known optima, in the engine's own action space.

use crate::extend::{
    AutoForward, Choices, DecisionPoint, Head, HeadIndices, LifecycleConfig, Limits, MaskConfig, MaskRow, SeedReport,
    SlotId,
};
use crate::prelude::{Draw, LifecycleOp, MaskSet, RunRng, SeedStage};

pub const BLUEPRINTS: usize = 8;

/// Several envs that play episodes of a fixed length side by side.
pub trait Task {
    fn envs(&self) -> usize;
    fn slots(&self) -> usize;
    fn observation_len(&self) -> usize;
    /// Heads that have a choice, those that others depend on first.
    fn heads(&self) -> &'static [Head];
    /// Steps of an episode.
    fn steps(&self) -> usize;
    fn begin_episode(&mut self, rng: &mut RunRng);
    fn observation(&self, env: usize, step: usize) -> Vec<f32>;
    fn masks(&self, env: usize, step: usize) -> &MaskSet;
    /// Reward of an action, and how well it was chosen from 0 to 1 if there was anything to choose.
    fn play(&mut self, env: usize, step: usize, action: &HeadIndices) -> (f32, Option<f64>);
}

fn masks_of(reports: &[Option<SeedReport>]) -> MaskSet {
    let lifecycle = LifecycleConfig {
        auto_forward: AutoForward {
            g1: false,
            g2: false,
            g3: false,
        },
        ..LifecycleConfig::default()
    };
    let masks = MaskConfig {
        sequential_germination: true,
        ..MaskConfig::default()
    };
    let limits = Limits::new(&lifecycle, &masks, 0);
    let blueprints = vec![Choices::first_n(BLUEPRINTS).without(0); reports.len()];
    let at = DecisionPoint {
        env: 0,
        episode: 0,
        step: 1,
    };
    MaskSet::build(at, reports, &blueprints, &limits).expect("waiting is always possible")
}

/// A cue is shown at phase 0 of each of two rounds and must be recalled at phase 5: waiting is all there is in between.
pub struct CueTask {
    cues: Vec<[usize; 2]>,
    /// Reward of a right answer.
    reward: f32,
    /// Rewards are paid at the last step of the episode.
    pays_late: bool,
    /// By env: rewards of this episode that are still to be paid.
    owed: Vec<f32>,
    waiting: MaskSet,
    deciding: MaskSet,
}

impl CueTask {
    const PHASES: usize = 6;
    const ANSWERS: [LifecycleOp; 2] = [LifecycleOp::Prune, LifecycleOp::Advance];

    pub fn new(envs: usize) -> Self {
        let mut deciding = masks_of(&[Some(training_seed())]);
        for row in [MaskRow::AlphaSpeed, MaskRow::AlphaCurve] {
            deciding.keep(row, Choices::only(0)).expect("0 is a member");
        }
        let mut waiting = deciding.clone();
        waiting.keep_ops(&[LifecycleOp::Wait]).expect("waiting is possible");
        Self {
            cues: vec![[0; 2]; envs],
            reward: 1.0,
            pays_late: false,
            owed: vec![0.0; envs],
            waiting,
            deciding,
        }
    }

    pub fn paying(self, reward: f32) -> Self {
        Self { reward, ..self }
    }

    pub fn paying_late(self) -> Self {
        Self {
            pays_late: true,
            ..self
        }
    }

    fn is_decision(step: usize) -> bool {
        step % Self::PHASES == Self::PHASES - 1
    }
}

impl Task for CueTask {
    fn envs(&self) -> usize {
        self.cues.len()
    }

    fn slots(&self) -> usize {
        1
    }

    fn observation_len(&self) -> usize {
        4
    }

    fn heads(&self) -> &'static [Head] {
        &[Head::Op]
    }

    fn steps(&self) -> usize {
        2 * Self::PHASES
    }

    fn begin_episode(&mut self, rng: &mut RunRng) {
        for cues in &mut self.cues {
            *cues = [rng.below(2) as usize, rng.below(2) as usize];
        }
    }

    fn observation(&self, env: usize, step: usize) -> Vec<f32> {
        let mut observation = vec![0.0; 4];
        if step.is_multiple_of(Self::PHASES) && step < self.steps() {
            observation[self.cues[env][step / Self::PHASES]] = 1.0;
        }
        observation[2] = step as f32 / self.steps() as f32;
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
        self.owed[env] += self.reward * score as f32;
        let is_due = !self.pays_late || step + 1 == self.steps();
        let reward = if is_due {
            std::mem::take(&mut self.owed[env])
        } else {
            0.0
        };
        (reward, Some(score))
    }
}

/// Episodes of one step. What is best to germinate depends on the context; in the last context waiting is. Each part of a
/// germination that is right pays a sixth.
pub struct BanditTask {
    contexts: Vec<usize>,
    masks: Vec<MaskSet>,
}

impl BanditTask {
    const CONTEXTS: usize = 4;
    const WAIT_REWARD: f64 = 0.4;
    /// Slot, blueprint, style, tempo, target.
    const BEST: [[u8; 5]; Self::CONTEXTS - 1] = [[0, 3, 1, 0, 2], [2, 5, 3, 2, 0], [1, 7, 0, 1, 1]];
    const PARTS: [Head; 5] = [Head::Slot, Head::Blueprint, Head::Style, Head::Tempo, Head::AlphaTarget];

    pub fn new(envs: usize) -> Self {
        let masks = (0..Self::CONTEXTS).map(|context| {
            let mut masks = masks_of(&[None, None, None]);
            if let Some(best) = Self::BEST.get(context) {
                // Half of what is wrong is not even offered.
                let blueprint = usize::from(best[1]);
                let offered = [blueprint, 1 + blueprint % 7, 1 + (blueprint + 3) % 7];
                for slot in 0..3 {
                    let row = MaskRow::Blueprints { slot };
                    masks.keep(row, offered.into_iter().collect()).expect("offered");
                }
                let styles = [usize::from(best[2]), (usize::from(best[2]) + 1) % 4];
                masks
                    .keep(MaskRow::Style, styles.into_iter().collect())
                    .expect("offered");
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
        match Self::BEST.get(context) {
            None => 0.0,
            Some(best) => {
                let right = Self::PARTS
                    .iter()
                    .zip(best)
                    .filter(|(part, best)| action[**part as usize] == **best);
                (1 + right.count()) as f64 / 6.0
            }
        }
    }

    fn optimum(context: usize) -> f64 {
        if context < Self::BEST.len() {
            1.0
        } else {
            Self::WAIT_REWARD
        }
    }
}

impl Task for BanditTask {
    fn envs(&self) -> usize {
        self.contexts.len()
    }

    fn slots(&self) -> usize {
        3
    }

    fn observation_len(&self) -> usize {
        Self::CONTEXTS
    }

    fn heads(&self) -> &'static [Head] {
        &[
            Head::Op,
            Head::Slot,
            Head::Blueprint,
            Head::Style,
            Head::Tempo,
            Head::AlphaTarget,
        ]
    }

    fn steps(&self) -> usize {
        1
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
        (value as f32, Some(value / Self::optimum(context)))
    }
}

/// A seed in training that may be pruned or moved on.
fn training_seed() -> SeedReport {
    SeedReport {
        age_steps: 20,
        steps_in_stage: 19,
        seed_params: 592,
        ..SeedReport::at_rest(SlotId::new(0, 0), SeedStage::Training)
    }
}
