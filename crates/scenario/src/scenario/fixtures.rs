//! A scenario for tests in which growth is slow and nothing goes by itself: every operation, gate and amplitude has its turn.

use super::{ActionSpace, GateConfig, LifecycleConfig, MaskConfig, NetConfig, OpBias, Scenario};

/// One seed at a time, through gates that are ordered and ask for ten steps and healthy gradients; a held seed is held for ever.
pub fn slow_lifecycle() -> LifecycleConfig {
    LifecycleConfig {
        max_holding_steps: None,
        auto_forward: false,
        gates: slow_gates(),
        exploding_factor: 10.0,
        ..LifecycleConfig::default()
    }
}

/// The gates of [`slow_lifecycle`].
pub fn slow_gates() -> GateConfig {
    GateConfig {
        min_training_steps: 10,
        min_gradient_health: 0.7,
        ..GateConfig::default()
    }
}

/// One seed at a time, and every choice.
pub fn all_choices() -> MaskConfig {
    MaskConfig {
        sequential_germination: true,
        action_space: every_action(),
    }
}

/// Every member of every head.
pub fn every_action() -> ActionSpace {
    ActionSpace {
        allowed_ops: None,
        alpha_target: None,
        ..ActionSpace::default()
    }
}

/// A network that begins without preferences.
pub fn neutral_net() -> NetConfig {
    NetConfig {
        op_bias: OpBias {
            prune: 0.0,
            commit: 0.0,
            ..OpBias::default()
        },
        ..NetConfig::default()
    }
}

/// All of these.
pub fn slow_scenario() -> Scenario {
    let mut scenario = Scenario {
        lifecycle: slow_lifecycle(),
        ..Scenario::default()
    };
    scenario.policy.masks = all_choices();
    scenario.policy.net_cfg = neutral_net();
    scenario
}
