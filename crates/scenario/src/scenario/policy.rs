//! Section `policy`: who decides what to grow, and within which limits.

use super::{DeviceSpec, HeuristicConfig, PeriodicConfig, ReplayConfig, ScheduleConfig};
use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleOp, Tempo};
use crate::schema::{Settings, choice, section};

section! {
    /// Section `policy`: who decides what to grow, and within which limits.
    pub struct PolicyConfig {
        /// Who decides.
        controller: String = "actor_critic".into(), CONTROLLER;
        /// Settings of a controller that a plugin has registered, as it declares them.
        controller_settings: Settings, settings_of("controller");
        /// Network of the learned controller.
        net: String = "lstm".into(), NETWORK;
        /// Settings of a network that a plugin has registered, as it declares them.
        net_settings: Settings, settings_of("net");
        /// Sizes of the network.
        net_cfg: NetConfig;
        /// Device on which the network acts and learns, with the rollouts that it learns from. None: the first of run.devices.
        device: Option<DeviceSpec>;
        /// Features that an observation has beyond those that each has; those of plugins come in any case.
        features: Vec<FeatureGroup>;
        /// Which legal commands the controller is not offered.
        masks: MaskConfig;
        /// Folder of a saved policy whose weights the learned controller starts with, relative to this file.
        init_from: Option<String>;
        /// Folder of a saved policy that the learned controller is held to at first, relative to this file.
        teacher: Option<String>;
        /// Constants of the rule-based controller.
        heuristic: HeuristicConfig;
        /// Seeds that the `periodic` and `fragrow` controllers grow, and how often the former does.
        periodic: PeriodicConfig;
        /// The list that the `schedule` controller plays.
        schedule: ScheduleConfig;
        /// The decisions that the `replay` controller repeats, env by env, round by round, step by step.
        replay: ReplayConfig;
    }
}

choice! {
    /// Choices that the logits of an action's parameters depend on.
    #[derive(Copy, Eq)]
    pub enum HeadConditioning {
        /// every operation has its own logits for slots, styles, targets, speeds and curves
        PerOp,
        /// the same, and every slot has its own logits for blueprints
        PerSlot,
        /// all operations share them
        Shared,
    }
}

section! {
    /// Sizes of the policy network.
    #[derive(Copy)]
    pub struct NetConfig {
        /// Width of the layer that reads the observation and of the core; a multiple of 8.
        hidden_dim: usize = 128, integer(8, 65536);
        /// Recurrent layers.
        layers: usize = 1, integer(1, 64);
        /// Choices that the logits of an action's parameters depend on.
        head_conditioning: HeadConditioning = HeadConditioning::PerSlot;
        /// Added to the logits of a fresh built-in network's operations: what it tries before it has learnt anything.
        op_bias: OpBias;
    }
}

section! {
    /// Added to the logits of a fresh built-in network's operations: what it tries before it has learnt anything.
    #[derive(Copy)]
    pub struct OpBias {
        /// On germinating.
        germinate: f64;
        /// On pruning.
        prune: f64 = -2.0;
        /// On committing.
        commit: f64 = 2.0;
    }
}

impl OpBias {
    /// In the order of the operations.
    pub const fn values(&self) -> [f64; 6] {
        [0.0, self.germinate, 0.0, self.prune, self.commit, 0.0]
    }
}

choice! {
    /// Built-in features that an observation need not have.
    #[derive(Copy, Eq)]
    pub enum FeatureGroup {
        /// what a reward is made of: 4 of the env, 5 of each slot
        RewardParts,
    }
}

section! {
    /// Which legal commands the controller is not offered.
    pub struct MaskConfig {
        /// Allow germination only while no other seed develops.
        sequential_germination: bool;
        /// Choices that controllers have at all; None: every one.
        action_space: ActionSpace;
    }
}

section! {
    /// Members that controllers may choose; `None` allows all of a head.
    #[derive(Eq)]
    pub struct ActionSpace {
        /// Operations, "wait" among them.
        allowed_ops: Option<Vec<LifecycleOp>> = Some(vec![
            LifecycleOp::Wait,
            LifecycleOp::Germinate,
            LifecycleOp::Prune,
            LifecycleOp::Commit,
        ]);
        /// Recipes of seeds.
        blueprint: Option<Vec<String>>, BLUEPRINT;
        /// Curves and operators of a blend.
        style: Option<Vec<GerminationStyle>>;
        /// Lengths of the first blend.
        tempo: Option<Vec<Tempo>>;
        /// Amplitudes to blend to.
        alpha_target: Option<Vec<AlphaTarget>> = Some(vec![AlphaTarget::Full]);
        /// Lengths of a later ramp.
        alpha_speed: Option<Vec<AlphaSpeed>>;
        /// Curves of a later ramp.
        alpha_curve: Option<Vec<AlphaCurveAction>>;
    }
}
