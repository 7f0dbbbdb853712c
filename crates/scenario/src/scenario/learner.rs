//! Section `learner`: how a policy is trained.

use crate::scenario::AmpMode;
use crate::schema::{choice, section};

choice! {
    /// Meaning of the end of a full-length episode.
    #[derive(Copy, Eq)]
    pub enum EpisodeEnd {
        /// the episode was cut off: what would follow counts, by the critic's estimate
        Truncated,
        /// nothing follows
        Terminal,
    }
}

choice! {
    /// Baseline that is subtracted from advantages besides the critic's estimate.
    #[derive(Copy, Eq)]
    pub enum AdvantageBaseline {
        /// nothing
        None,
        /// the mean advantage of the other envs in the same step
        LeaveOneOut,
    }
}

/// Floor of the entropy weight under any annealing: a policy that no longer explores cannot improve.
pub const LEAST_ENTROPY_COEF: f64 = 0.01;

section! {
    /// Recorded trajectories that are learnt from without an env.
    pub struct RecordingsConfig {
        /// Sets of trajectories, or folders of runs that recorded theirs. None: envs are played.
        sets: Vec<String>;
        /// Share of the segments that are learnt from: those with the largest return under the scenario's reward.
        best: f64 = 1.0, SHARE;
    }
}

section! {
    /// How what was recorded is imitated.
    #[derive(Copy)]
    pub struct CloneConfig {
        /// A step weighs e^(A/beta), at most 20, A its standardised advantage: advantage-weighted regression. None: all weigh alike.
        beta: Option<f64>, POSITIVE;
    }
}

section! {
    /// Rollouts that are learnt from besides the newest.
    #[derive(Copy)]
    pub struct ImpalaConfig {
        /// Rollouts that an update learns from, the newest included; recordings are learnt from as they are.
        rollouts: u32 = 4, integer(1, 64);
    }
}

choice! {
    /// How the policy is improved.
    #[derive(Copy)]
    pub enum Algorithm {
        /// proximal policy optimization, on rollouts or on recordings of policies near by
        Ppo,
        /// imitation of recordings: what they chose becomes likelier
        Clone(CloneConfig),
        /// the same as ppo on what earlier policies did as well, corrected by V-trace
        Impala(ImpalaConfig),
    }
}

impl Algorithm {
    /// Learns from how much likelier than the policy that acted the present one is to choose so.
    pub const fn needs_behaviour(&self) -> bool {
        !matches!(self, Self::Clone(_))
    }
}

section! {
    /// Section `learner`: how the policy is trained.
    pub struct LearnerConfig {
        /// How the policy is improved.
        algorithm: Algorithm = Algorithm::Ppo;
        /// Recorded trajectories that are learnt from without an env.
        recordings: RecordingsConfig;
        /// Episodes of each env between two updates.
        episodes_per_update: u32 = 1, integer(1, 64);
        /// Meaning of the end of a full-length episode.
        episode_end: EpisodeEnd = EpisodeEnd::Terminal;
        /// Discount of future rewards per step.
        gamma: f64 = 0.995, SHARE;
        /// Weight of long returns against the critic's estimates in advantages.
        gae_lambda: f64 = 0.98, FRACTION;
        /// Passes over a rollout.
        epochs: u32 = 12, integer(1, 64);
        /// Minibatches per pass, of whole sequences; at most the sequences there are.
        num_minibatches: u32 = 1, at_least(1);
        /// How far a probability ratio may leave 1 before it stops paying.
        clip_ratio: f64 = 0.2, OPEN_FRACTION;
        /// Least share of the steps by which a rare head's loss is divided.
        head_min_fraction: f64 = 0.05, FRACTION;
        /// An update stops at 1.5 times this divergence from the old policy. None: never.
        target_kl: Option<f64> = Some(0.03), POSITIVE;
        /// Baseline that is subtracted from advantages besides the critic's estimate, before they are standardised.
        advantage_baseline: AdvantageBaseline = AdvantageBaseline::None;
        /// Weight of the value loss.
        value_coef: f64 = 1.0, NOT_NEGATIVE;
        /// Weight in the value loss of steps without a choice.
        forced_value_weight: f64 = 0.2, FRACTION;
        /// Weight of the entropy bonus; at the first update, where it is annealed.
        entropy_coef: f64 = 0.02, NOT_NEGATIVE;
        /// Its weight after annealing. None: entropy_coef.
        entropy_coef_end: Option<f64>, NOT_NEGATIVE;
        /// Episodes of all envs together over which the weight moves; 0: it is constant.
        entropy_anneal_episodes: u32;
        /// Updates over which schedules run. None: the rollouts of the run.
        total_updates: Option<u64>, at_least(1);
        /// Learning rate of AdamW.
        lr: f64 = 5e-4, OPEN_FRACTION;
        /// Share of the learning rate that is left after total_updates, to which it falls in a line.
        lr_end_factor: f64 = 1.0, FRACTION;
        /// L2 norm to which the policy's gradient is clipped. None: no clipping.
        max_grad_norm: Option<f64> = Some(5.0), POSITIVE;
        /// Mixed precision of the policy.
        amp: AmpMode = AmpMode::Off;
    }
}

impl LearnerConfig {
    /// Learns from recordings, without an env.
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
