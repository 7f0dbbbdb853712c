//! Section `learner`: how a policy is trained (spec 04 §13).

use serde::{Deserialize, Serialize};

use super::AmpMode;

/// What the last step of a full-length episode means to the value of what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpisodeEnd {
    /// The episode was cut off: what would have followed counts, by the critic's estimate.
    Truncated,
    /// Nothing follows.
    Terminal,
}

/// How the heads of an action share the surrogate objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RatioMode {
    /// Each head's ratio is clipped on its own.
    PerHead,
    /// The product of the heads' ratios is clipped.
    Joint,
}

/// Over which steps advantages are standardised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdvantageNorm {
    Rollout,
    Minibatch,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LrSchedule {
    Constant,
    Linear,
    Cosine,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationNormMode {
    /// None: the fixed scales of the schema.
    Off,
    /// Features marked so, of slots only occupied ones, slots pooled.
    Running,
    /// Every element by itself, zeros and unknowns included (classic).
    RunningAll,
    /// By the statistics of the saved policy in this folder; they never move.
    Fixed(String),
}

/// What becomes of an observation's elements that are NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NonfiniteObservations {
    /// The run ends; the error names env and feature.
    Error,
    /// They are read as 0.
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardNormMode {
    Off,
    /// Root mean square of the rewards.
    Rms,
    /// Standard deviation of the rewards.
    Std,
    /// Standard deviation of the running discounted sum of an env's rewards.
    ReturnStd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueNormMode {
    Off,
    /// Divided by the deviation of the returns.
    Scale,
    /// Centred and divided; the critic's outputs stay as they are when the statistics move.
    Popart,
}

/// Observation normaliser (spec 04 §5.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObservationNorm {
    pub mode: ObservationNormMode,
    pub momentum: f64,
    pub clip: f64,
    /// Rollouts before the first update in which actions are drawn uniformly, to fit the statistics alone.
    pub warmup_rollouts: u32,
    /// `None`: the statistics move as long as the run lasts.
    pub freeze_after_updates: Option<u64>,
    pub nonfinite_obs: NonfiniteObservations,
}

impl ObservationNorm {
    /// Whether the statistics learn from a rollout that was collected after `updates` updates.
    pub fn learns_after(&self, updates: u64) -> bool {
        self.fits() && self.freeze_after_updates.is_none_or(|last| updates < last)
    }

    /// Whether there are statistics that move at all.
    pub fn fits(&self) -> bool {
        matches!(
            self.mode,
            ObservationNormMode::Running | ObservationNormMode::RunningAll
        )
    }
}

impl Default for ObservationNorm {
    fn default() -> Self {
        Self {
            mode: ObservationNormMode::Running,
            momentum: 0.99,
            clip: 10.0,
            warmup_rollouts: 0,
            freeze_after_updates: None,
            nonfinite_obs: NonfiniteObservations::Error,
        }
    }
}

/// Reward normaliser (spec 04 §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardNorm {
    pub mode: RewardNormMode,
    pub momentum: f64,
    pub clip: f64,
}

impl Default for RewardNorm {
    fn default() -> Self {
        Self {
            mode: RewardNormMode::Rms,
            momentum: 1.0,
            clip: 10.0,
        }
    }
}

/// Value normaliser (spec 04 §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValueNorm {
    pub mode: ValueNormMode,
    pub momentum: f64,
}

impl Default for ValueNorm {
    fn default() -> Self {
        Self {
            mode: ValueNormMode::Popart,
            momentum: 0.95,
        }
    }
}

/// A number per action head, each with its own default, so that a scenario names only those it changes.
macro_rules! per_head {
    ($(#[$doc:meta])* $name:ident { $($head:ident: $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $(pub $head: f64,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($head: $value,)* }
            }
        }

        impl $name {
            /// In the storage order of the heads.
            pub const fn values(&self) -> [f64; 8] {
                [$(self.$head,)*]
            }
        }
    };
}

per_head! {
    /// Weight of each head in the entropy bonus (spec 04 §7.4).
    EntropyMultipliers {
        slot: 1.0,
        blueprint: 1.3,
        style: 1.2,
        tempo: 1.3,
        alpha_target: 1.2,
        alpha_speed: 1.2,
        alpha_curve: 1.2,
        op: 1.0,
    }
}

per_head! {
    /// Normalised entropy below which a head is penalised (spec 04 §7.4).
    EntropyFloors {
        slot: 0.15,
        blueprint: 0.20,
        style: 0.15,
        tempo: 0.20,
        alpha_target: 0.10,
        alpha_speed: 0.10,
        alpha_curve: 0.10,
        op: 0.30,
    }
}

per_head! {
    /// Strength of each head's entropy floor (spec 04 §7.4).
    EntropyFloorCoefs {
        slot: 0.1,
        blueprint: 0.3,
        style: 0.1,
        tempo: 0.3,
        alpha_target: 0.1,
        alpha_speed: 0.1,
        alpha_curve: 0.1,
        op: 0.3,
    }
}

/// Section `learner` (spec 04 §13).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LearnerConfig {
    pub episodes_per_update: u32,
    pub episode_end: EpisodeEnd,
    pub gamma: f64,
    pub gae_lambda: f64,
    pub epochs: u32,
    pub num_minibatches: u32,
    /// `None`: whole segments.
    pub chunk_length: Option<u32>,
    pub clip_ratio: f64,
    pub ratio_mode: RatioMode,
    pub head_min_fraction: f64,
    pub target_kl: Option<f64>,
    pub adv_norm: AdvantageNorm,
    pub adv_std_floor: f64,
    pub min_actor_steps: u32,
    pub value_coef: f64,
    /// `None`: a tenth of `value_coef`.
    pub value_coef_start: Option<f64>,
    pub value_warmup_updates: u32,
    pub clip_value: bool,
    pub value_clip: f64,
    pub forced_value_weight: f64,
    pub entropy_coef: f64,
    /// `None`: `entropy_coef`.
    pub entropy_coef_start: Option<f64>,
    /// `None`: `entropy_coef`.
    pub entropy_coef_end: Option<f64>,
    pub entropy_coef_min: f64,
    pub entropy_anneal_episodes: u32,
    pub entropy_head_mult: EntropyMultipliers,
    pub entropy_floor: EntropyFloors,
    pub entropy_floor_coef: EntropyFloorCoefs,
    pub prob_floor_end_scale: f64,
    /// `None`: the rollouts of the run.
    pub total_updates: Option<u64>,
    pub aux_coef: f64,
    pub aux_warmup_updates: u32,
    pub aux_clip: f64,
    /// Read by the policy: its contribution predictor sees a detached trunk output.
    pub aux_stop_gradient: bool,
    pub lr: f64,
    pub lr_schedule: LrSchedule,
    pub lr_warmup_updates: u32,
    pub lr_end_factor: f64,
    pub betas: (f64, f64),
    pub eps: f64,
    pub critic_weight_decay: f64,
    pub max_grad_norm: Option<f64>,
    pub obs_norm: ObservationNorm,
    pub reward_norm: RewardNorm,
    pub value_norm: ValueNorm,
    pub norm_min_count: u64,
    pub amp: AmpMode,
    pub max_consecutive_failures: u32,
    pub ev_var_floor: f64,
}

impl Default for LearnerConfig {
    fn default() -> Self {
        Self {
            episodes_per_update: 1,
            episode_end: EpisodeEnd::Truncated,
            gamma: 0.995,
            gae_lambda: 0.98,
            epochs: 4,
            num_minibatches: 1,
            chunk_length: None,
            clip_ratio: 0.2,
            ratio_mode: RatioMode::PerHead,
            head_min_fraction: 0.05,
            target_kl: Some(0.02),
            adv_norm: AdvantageNorm::Rollout,
            adv_std_floor: 0.1,
            min_actor_steps: 8,
            value_coef: 0.5,
            value_coef_start: None,
            value_warmup_updates: 0,
            clip_value: false,
            value_clip: 0.2,
            forced_value_weight: 0.2,
            entropy_coef: 0.05,
            entropy_coef_start: None,
            entropy_coef_end: None,
            entropy_coef_min: 0.01,
            entropy_anneal_episodes: 0,
            entropy_head_mult: EntropyMultipliers::default(),
            entropy_floor: EntropyFloors::default(),
            entropy_floor_coef: EntropyFloorCoefs::default(),
            prob_floor_end_scale: 0.2,
            total_updates: None,
            aux_coef: 0.05,
            aux_warmup_updates: 20,
            aux_clip: 10.0,
            aux_stop_gradient: true,
            lr: 3e-4,
            lr_schedule: LrSchedule::Constant,
            lr_warmup_updates: 0,
            lr_end_factor: 0.0,
            betas: (0.9, 0.999),
            eps: 1e-5,
            critic_weight_decay: 0.0,
            max_grad_norm: Some(5.0),
            obs_norm: ObservationNorm::default(),
            reward_norm: RewardNorm::default(),
            value_norm: ValueNorm::default(),
            norm_min_count: 32,
            amp: AmpMode::Off,
            max_consecutive_failures: 3,
            ev_var_floor: 1.0,
        }
    }
}

impl LearnerConfig {
    /// Updates over which schedules run: as configured, else the rollouts of `rounds` episodes that are learnt from; at
    /// least 1.
    pub fn planned_updates(&self, rounds: u32) -> u64 {
        let rollouts = self
            .rollouts_before(rounds)
            .saturating_sub(self.obs_norm.warmup_rollouts);
        self.total_updates.unwrap_or(rollouts.into()).max(1)
    }

    /// Rollouts that are complete when round `round` begins.
    fn rollouts_before(&self, round: u32) -> u32 {
        round / self.episodes_per_update.max(1)
    }

    /// Whether round `round` belongs to a rollout that fits the observations' statistics and nothing else.
    pub fn is_warm_up(&self, round: u32) -> bool {
        self.rollouts_before(round) < self.obs_norm.warmup_rollouts
    }

    pub fn entropy_coefs(&self) -> (f64, f64) {
        let or_constant = |coef: Option<f64>| coef.unwrap_or(self.entropy_coef);
        (or_constant(self.entropy_coef_start), or_constant(self.entropy_coef_end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(warmup_rollouts: u32, freeze_after_updates: Option<u64>) -> LearnerConfig {
        LearnerConfig {
            episodes_per_update: 2,
            obs_norm: ObservationNorm {
                warmup_rollouts,
                freeze_after_updates,
                ..ObservationNorm::default()
            },
            ..LearnerConfig::default()
        }
    }

    #[test]
    fn the_first_rollouts_warm_up_and_are_no_updates() {
        let learner = after(2, None);

        let warm: Vec<u32> = (0..8).filter(|&round| learner.is_warm_up(round)).collect();

        assert_eq!(warm, [0, 1, 2, 3]);
        assert_eq!(learner.planned_updates(8), 2);
        assert_eq!(after(0, None).planned_updates(8), 4);
        assert!(!after(0, None).is_warm_up(0));
    }

    #[test]
    fn statistics_stop_after_so_many_updates_or_never() {
        let moving = |freeze: Option<u64>| {
            (0..4)
                .filter(|&updates| after(0, freeze).obs_norm.learns_after(updates))
                .count()
        };
        assert_eq!([moving(None), moving(Some(0)), moving(Some(2))], [4, 0, 2]);
    }
}
