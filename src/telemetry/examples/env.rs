//! What an env tells of its steps and episodes.

use super::*;

pub fn env_step() -> EnvStep {
    EnvStep {
        train_loss: Num(f64::NAN),
        train_accuracy: Num(48.5),
        val_loss: Num(1.25),
        val_accuracy: Num(50.0),
        host_grad_norm: None,
        params_total: 1500,
        params_seeds_active: 266,
        params_fossilized: 0,
        growth_ratio: Num(1.0),
        best_accuracy: Num(50.5),
        steps_since_best: 1,
        status: EnvStatus::Healthy,
        seeds: vec![SeedRow {
            slot: SLOT,
            seed_id: "e9.r0c0.0".into(),
            stage: SeedStage::Blending,
            blueprint: "norm".into(),
            params: 266,
            alpha: Num(0.5),
            alpha_target: Num(1.0),
            alpha_mode: AlphaMode::Up,
            epochs_in_stage: 2,
            age_epochs: 6,
            accuracy_delta: Num(1.5),
            contribution: Some(Num(0.0)),
            contribution_velocity: Some(Num(0.25)),
            interaction_sum: None,
            boost_received: None,
            gradient_norm: Some(Num(0.2)),
            gradient_health: Some(Num(1.0)),
            gradient_ratio: Some(Num(0.0597614188939707)),
            vanishing: Some(false),
            exploding: Some(false),
        }],
    }
}

pub fn decision() -> Decision {
    Decision {
        op: LifecycleOp::Prune,
        slot: Some(SLOT),
        success: false,
        blocked: Some(refusal_code(&FailureReason::TooYoung { age: 3, min: 5 }).into()),
        effective_op: LifecycleOp::Wait,
        forced: BTreeMap::from([("op".into(), false), ("slot".into(), true)]),
        scripted: false,
        choice: Choice::of(
            &LifecycleCommand::Prune {
                slot: 0,
                speed: AlphaSpeed::Instant,
                curve: AlphaCurveAction::Linear,
            },
            |index| index.to_string(),
        ),
        thought: Some(policy_thought()),
        op_mask: vec![true, false, false, true, false, false],
        reason: Some("no improvement".into()),
        contribution_age: Some(0),
        paid: Some(decision_reward()),
        action_id: context().action_id(),
    }
}

fn policy_thought() -> PolicyThought {
    PolicyThought {
        p: by_head(&[("op", 0.25), ("slot", 1.0)]),
        h: by_head(&[("op", 0.75)]),
        op_probs: [0.75, 0.0, 0.0, 0.25, 0.0, 0.0].map(Num).into(),
        alternatives: vec![Alternative {
            op: LifecycleOp::Wait,
            p: Num(0.75),
        }],
        value: Num(0.5),
    }
}

pub(super) fn by_head(values: &[(&str, f64)]) -> ByHead {
    let values = values.iter();
    values.map(|&(head, value)| (head.into(), Num(value))).collect()
}

pub fn decision_reward() -> DecisionReward {
    let named = |values: &[(&str, f64)]| -> BTreeMap<String, Num> {
        let values = values.iter();
        values.map(|&(name, value)| (name.into(), Num(value))).collect()
    };
    DecisionReward {
        reward: Num(0.3),
        terms: named(&[
            ("attribution", 0.4),
            ("compute_rent", -0.15),
            ("pbrs", 0.05),
            ("synergy", 0.1),
            ("intervention", -0.1),
        ]),
        context: named(&[("delta_cf", 0.5), ("phi", 3.5), ("phi_next", 3.8)]),
    }
}

pub fn host_stabilized() -> HostStabilized {
    HostStabilized {
        stable_count: 3,
        required: 3,
        val_loss: Num(1.5),
    }
}

pub fn episode_finished() -> EpisodeFinished {
    let mut growth = GrowthCounts {
        germinated: 2,
        fossilized: 1,
        pruned: 1,
        ..GrowthCounts::default()
    };
    growth.record(LifecycleOp::Wait, true);
    growth.record(LifecycleOp::Germinate, false);
    EpisodeFinished {
        final_accuracy: Num(80.5),
        committed_accuracy: Some(Num(80.0)),
        final_loss: Num(0.7),
        best_accuracy: Num(81.0),
        best_step: 18,
        test_accuracy: Some(Num(79.5)),
        test_loss: Some(Num(0.75)),
        length: 20,
        end: EpisodeEnd::Horizon,
        outcome: Outcome::Success,
        paid: Some(episode_rewards()),
        param_ratio: Num(1.5),
        contributing: 1,
        rollbacks: 1,
        growth,
        blueprints: BTreeMap::from([(
            "norm".into(),
            BlueprintCounts {
                germinated: 2,
                fossilized: 1,
                pruned: 1,
            },
        )]),
    }
}

fn episode_rewards() -> EpisodeRewards {
    EpisodeRewards {
        reward: Num(12.5),
        return_discounted: Num(11.25),
        stability: Num(0.5),
        reward_terms: BTreeMap::from([(
            "pbrs".into(),
            TermSummary {
                n: 3,
                sum: Num(-0.5),
                abs: Num(1.5),
                min: Num(-1.0),
                max: Num(0.25),
            },
        )]),
    }
}
