//! Section `policy`: the controller that decides what grows, and its limits.

use super::{DeviceSpec, HeuristicConfig, PeriodicConfig, ReplayConfig, ScheduleConfig};
use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleOp, Tempo};
use crate::schema::{Settings, choice, section};

section! {
    /// Section `policy`: the controller that decides what grows, and its limits.
    pub struct PolicyConfig {
        /// Controller that decides.
        controller: String = "actor_critic".into(), CONTROLLER;
        /// Settings that a plugin's controller declares.
        controller_settings: Settings, settings_of("controller");
        /// Network of the learned controller.
        net: String = "lstm".into(), NETWORK;
        /// Settings that a plugin's network declares.
        net_settings: Settings, settings_of("net");
        /// Sizes of the network.
        net_cfg: NetConfig;
        /// Device on which the network acts and learns, and which holds its rollouts. None: the first of run.devices.
        device: Option<DeviceSpec>;
        /// Optional features that are added to an observation. Those of plugins are always added.
        features: Vec<FeatureGroup>;
        /// Legal commands that the controller can't choose.
        masks: MaskConfig;
        /// Folder of a saved policy whose weights the learned controller starts with, relative to this file.
        init_from: Option<String>;
        /// Folder of a saved policy that the learned controller is kept close to at first, relative to this file.
        teacher: Option<String>;
        /// Constants of the rule-based controller.
        heuristic: HeuristicConfig;
        /// Seeds that the `periodic` and `fragrow` controllers grow, and the period of `periodic`.
        periodic: PeriodicConfig;
        /// List of commands that the `schedule` controller plays.
        schedule: ScheduleConfig;
        /// Decisions that the `replay` controller repeats in the same env, round and step.
        replay: ReplayConfig;
    }
}

choice! {
    /// Choices that the logits of an action's parameters depend on.
    #[derive(Copy, Eq)]
    pub enum HeadConditioning {
        /// every operation has its own logits for slots, styles, targets, speeds and curves
        PerOp,
        /// as per_op, and every slot also has its own logits for blueprints
        PerSlot,
        /// all operations share these logits
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
        /// Bias on the operation logits of a fresh built-in network: what it prefers before it has learnt anything.
        op_bias: OpBias;
    }
}

section! {
    /// Bias on the operation logits of a fresh built-in network: what it prefers before it has learnt anything.
    #[derive(Copy)]
    pub struct OpBias {
        /// Bias on germinating.
        germinate: f64;
        /// Bias on pruning.
        prune: f64 = -2.0;
        /// Bias on committing.
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
    /// Optional built-in features of an observation.
    #[derive(Copy, Eq)]
    pub enum FeatureGroup {
        /// the parts of a reward: 4 of the env, 5 of each slot
        RewardParts,
    }
}

section! {
    /// Legal commands that the controller can't choose.
    pub struct MaskConfig {
        /// Allows germination only while no other seed develops.
        sequential_germination: bool;
        /// Choices that controllers have. None: every one.
        action_space: ActionSpace;
    }
}

section! {
    /// Members that controllers may choose. `None` allows all members of a head.
    #[derive(Eq)]
    pub struct ActionSpace {
        /// Operations, including "wait".
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
