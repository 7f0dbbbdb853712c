//! Section `learner`: the training of a policy.

use crate::scenario::AmpMode;
use crate::schema::{choice, section};

choice! {
    /// Meaning of the end of a full-length episode.
    #[derive(Copy, Eq)]
    pub enum EpisodeEnd {
        /// the episode was cut off, so the critic's estimate of what would follow counts
        Truncated,
        /// nothing follows
        Terminal,
    }
}

choice! {
    /// Baseline that is subtracted from advantages, in addition to the critic's estimate.
    #[derive(Copy, Eq)]
    pub enum AdvantageBaseline {
        /// no baseline
        None,
        /// the mean advantage of the other envs in the same step
        LeaveOneOut,
    }
}

/// Floor of the entropy weight under any annealing: a policy that no longer explores cannot improve.
pub const LEAST_ENTROPY_COEF: f64 = 0.01;

section! {
    /// Recorded trajectories to learn from, without an env.
    pub struct RecordingsConfig {
        /// Sets of trajectories, or folders of runs that recorded some. Empty: envs are played.
        sets: Vec<String>;
        /// Share of the segments to learn from, those with the largest return under the scenario's reward.
        best: f64 = 1.0, SHARE;
    }
}

section! {
    /// Imitation of recordings.
    #[derive(Copy)]
    pub struct CloneConfig {
        /// Temperature of advantage-weighted regression: the weight of a step with the standardised advantage A is e^(A/beta), at
        /// most 20. None: equal weights.
        beta: Option<f64>, POSITIVE;
    }
}

section! {
    /// Learning from earlier rollouts as well as the newest.
    #[derive(Copy)]
    pub struct ImpalaConfig {
        /// Rollouts that an update learns from, including the newest. It has no effect on recordings.
        rollouts: u32 = 4, integer(1, 64);
    }
}

choice! {
    /// Learning algorithm of the policy.
    #[derive(Copy)]
    pub enum Algorithm {
        /// proximal policy optimization, on rollouts or on recordings of similar policies
        Ppo,
        /// imitation of recordings, which makes their choices likelier
        Clone(CloneConfig),
        /// ppo that also learns from rollouts of earlier policies, corrected by V-trace
        Impala(ImpalaConfig),
    }
}

impl Algorithm {
    /// Returns whether it compares the probabilities of choices with those of the policy that acted.
    pub const fn needs_behaviour(&self) -> bool {
        !matches!(self, Self::Clone(_))
    }
}

section! {
    /// Section `learner`: the training of the policy.
    pub struct LearnerConfig {
        /// Learning algorithm of the policy.
        algorithm: Algorithm = Algorithm::Ppo;
        /// Recorded trajectories to learn from, without an env.
        recordings: RecordingsConfig;
        /// Episodes of each env between two updates.
        episodes_per_update: u32 = 1, integer(1, 64);
        /// Meaning of the end of a full-length episode.
        episode_end: EpisodeEnd = EpisodeEnd::Terminal;
        /// Discount factor of future rewards, per step.
        gamma: f64 = 0.995, SHARE;
        /// Weight of long returns, relative to the critic's estimates, in advantages.
        gae_lambda: f64 = 0.98, FRACTION;
        /// Passes over a rollout.
        epochs: u32 = 12, integer(1, 64);
        /// Minibatches of whole sequences per pass; at most the number of sequences.
        num_minibatches: u32 = 1, at_least(1);
        /// Difference of a probability ratio from 1 beyond which the ratio is clipped.
        clip_ratio: f64 = 0.2, OPEN_FRACTION;
        /// Smallest share of the steps that a rare head's loss is divided by.
        head_min_fraction: f64 = 0.05, FRACTION;
        /// Divergence from the old policy. An update stops at 1.5 times this value. None: never.
        target_kl: Option<f64> = Some(0.03), POSITIVE;
        /// Baseline that is subtracted from advantages before they are standardised, in addition to the critic's estimate.
        advantage_baseline: AdvantageBaseline = AdvantageBaseline::None;
        /// Weight of the value loss.
        value_coef: f64 = 1.0, NOT_NEGATIVE;
        /// Weight of steps without a choice in the value loss.
        forced_value_weight: f64 = 0.2, FRACTION;
        /// Weight of the entropy bonus; if it is annealed, the weight at the first update.
        entropy_coef: f64 = 0.02, NOT_NEGATIVE;
        /// Weight of the entropy bonus after annealing. None: entropy_coef.
        entropy_coef_end: Option<f64>, NOT_NEGATIVE;
        /// Episodes, counted over all envs, in which the weight is annealed; 0: it is constant.
        entropy_anneal_episodes: u32;
        /// Number of updates that schedules span. None: the number of rollouts in the run.
        total_updates: Option<u64>, at_least(1);
        /// Learning rate of AdamW.
        lr: f64 = 5e-4, OPEN_FRACTION;
        /// Share of the learning rate that is left after total_updates. The rate falls linearly.
        lr_end_factor: f64 = 1.0, FRACTION;
        /// L2 norm to which the policy's gradient is clipped. None: no clipping.
        max_grad_norm: Option<f64> = Some(5.0), POSITIVE;
        /// Mixed precision of the policy.
        amp: AmpMode = AmpMode::Off;
    }
}

impl LearnerConfig {
    /// Returns whether it learns from recordings, without an env.
    pub const fn is_offline(&self) -> bool {
        !self.recordings.sets.is_empty()
    }

    /// Rollouts of envs that an update learns from in place of the newest alone; `None` if it does not look back.
    pub const fn kept_rollouts(&self) -> Option<u32> {
        match self.algorithm {
            Algorithm::Impala(config) if !self.is_offline() => Some(config.rollouts),
            _ => None,
        }
    }

    /// Episodes of each env that an update learns from at most.
    pub fn episodes_learnt_from(&self) -> u32 {
        self.episodes_per_update * self.kept_rollouts().unwrap_or(1)
    }

    /// Updates over which schedules run: as configured, else the rollouts of `rounds` episodes; at least 1.
    pub fn planned_updates(&self, rounds: u32) -> u64 {
        let rollouts = rounds / self.episodes_per_update.max(1);
        self.total_updates.unwrap_or(rollouts.into()).max(1)
    }

    /// Weight of the entropy bonus after annealing.
    pub fn last_entropy_coef(&self) -> f64 {
        self.entropy_coef_end.unwrap_or(self.entropy_coef)
    }
}
