//! One example of every event, for tests.

use std::collections::BTreeMap;

use super::payload::Interactions;
use super::*;
use crate::seed::*;

mod learner;

pub use learner::{learner_update, rollback_charges};

pub fn context() -> EnvContext {
    context_at(1, 2, 7)
}

/// With four envs a round.
pub fn context_at(env: u32, round: u32, step: u32) -> EnvContext {
    EnvContext {
        env,
        episode: round * 4 + env,
        round,
        step,
    }
}

const SLOT: SlotId = SlotId::new(0, 0);
const OTHER_SLOT: SlotId = SlotId::new(0, 1);

/// One event of every kind, in catalogue order.
pub fn events() -> Vec<Event> {
    let env = |payload: Payload| Event::env(context(), payload);
    let seed = |payload: Payload| Event::seed(context(), SLOT, "e9.r0c0.0", payload);
    vec![
        Event::run(run_started()),
        Event::run(run_finished()),
        Event::run(CheckpointSaved {
            path: "checkpoints/round-000003".into(),
            round: 3,
            update: Some(3),
            rolling_accuracy: Some(Num(55.25)),
            reason: CheckpointReason::Best,
            size_bytes: 204_800,
            wall_ms: Num(12.5),
        }),
        Event::run(CheckpointLoaded {
            path: "checkpoints/round-000003".into(),
            round: 3,
        }),
        Event::run(baseline()),
        Event::run(note()),
        Event::run(user_event()).severity(Severity::Warning),
        Event::run(health()),
        env(env_step().into()),
        env(decision().into()).message("the seed is 3 steps old, 5 are needed"),
        env(host_stabilized().into()),
        env(episode_finished().into()),
        seed(germinated().into()),
        seed(stage_changed().into()),
        seed(alpha_retargeted().into()),
        seed(gate_evaluated().into()),
        seed(fossilized().into()),
        seed(pruned().into()),
        seed(SlotRecycled { idle_steps: 5 }.into()),
        env(matrix().into()),
        env(shapley().into()),
        env(interactions().into()),
        env(alarm().into()),
        env(rollback().into()),
        env(governor_snapshot().into()),
        Event::round(2, learner_update()),
        Event::round(2, round_finished()),
    ]
}

pub fn run_started() -> RunStarted {
    RunStarted {
        scenario: "quickstart".into(),
        scenario_hash: "a1b2c3".into(),
        task: "digits_impaired".into(),
        task_kind: TaskKind::Classification,
        controller: "heuristic".into(),
        controller_hash: None,
        reward_family: "contribution".into(),
        reward_mode: "shaped".into(),
        n_envs: 4,
        n_rounds: 3,
        max_steps: 20,
        n_episodes: 12,
        slots: vec![SLOT, OTHER_SLOT],
        max_seeds: Some(2),
        host_params: 1234,
        lr: Num::from(0.01_f32),
        max_grad_norm_host: Some(Num(1.0)),
        seed: BigInteger(u64::MAX),
        env_devices: vec!["cpu".into(); 4],
        amp_enabled: false,
        amp_dtype: None,
        matmul_precision: "high".into(),
        deterministic: false,
        dataset: DatasetInfo {
            name: "digits".into(),
            train_n: 3000,
            val_n: 823,
            test_n: Some(1797),
            hash: "d1".into(),
        },
        start_round: 0,
        resumed_from: None,
        fallbacks: vec!["fused SGD".into()],
    }
}

pub fn run_finished() -> RunFinished {
    RunFinished {
        status: RunState::Completed,
        rounds_done: 3,
        episodes_done: 12,
        updates: 3,
        wall_s: Num(61.5),
        best_rolling_accuracy: Some(Num(71.25)),
        final_rolling_accuracy: Some(Num(70.5)),
        best_episode: Some(BestEpisode {
            episode: 9,
            accuracy: Num(81.0),
            param_ratio: Num(1.5),
        }),
        rollbacks: 1,
        dropped_events: 0,
        error: None,
    }
}

pub fn baseline() -> BaselineMeasured {
    BaselineMeasured {
        val_accuracy: Num(52.0),
        val_loss: Num(1.4),
        best_val_accuracy: Num(53.5),
        test_accuracy: Some(Num(51.75)),
        test_loss: Some(Num(1.45)),
        steps: 20,
        params: 1234,
    }
}

pub fn note() -> Note {
    Note {
        text: "first look".into(),
        author: None,
    }
}

fn user_event() -> UserEvent {
    UserEvent {
        name: "example.thing".into(),
        fields: BTreeMap::from([
            ("is_on".into(), UserValue::Flag(true)),
            ("limit".into(), UserValue::Number(Num(f64::INFINITY))),
            ("mood".into(), UserValue::Text("calm".into())),
        ]),
    }
}

fn health() -> TelemetryHealth {
    TelemetryHealth {
        sinks: vec![SinkHealth {
            name: "console".into(),
            class: SinkClass::Live,
            queued: 1,
            queue_cap: 256,
            written: 40,
            dropped: 2,
            blocked_ms: Num(0.0),
            errors: 1,
            last_error: Some("broken pipe".into()),
        }],
    }
}

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

fn by_head(values: &[(&str, f64)]) -> ByHead {
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

fn germinated() -> SeedGerminated {
    SeedGerminated {
        blueprint: "norm".into(),
        params: 266,
        gate_params: 0,
        style: GerminationStyle::SigmoidAdd,
        tempo: Tempo::Standard,
        tempo_epochs: 5,
        alpha_target: Num(1.0),
        alpha_curve: AlphaCurve::Sigmoid,
        accuracy: Num(48.5),
        rng_seed: "9876543210".into(),
        action_id: context().action_id(),
    }
}

fn stage_changed() -> SeedStageChanged {
    SeedStageChanged {
        from: SeedStage::Training,
        to: SeedStage::Blending,
        alpha: Num(0.0),
        epochs_in_stage: 3,
        accuracy_delta: Num(-0.5),
        curve: Some(AlphaCurve::Sigmoid),
        gradient_ratio: None,
        vanishing: None,
        exploding: None,
        cause: StageCause::Gate,
        action_id: None,
    }
}

fn alpha_retargeted() -> SeedAlphaRetargeted {
    SeedAlphaRetargeted {
        from: Num(1.0),
        to: Num(0.5),
        steps: 8,
        speed: AlphaSpeed::Slow,
        curve: AlphaCurve::Sigmoid,
        steepness: Some(Num(12.0)),
        operator_from: AlphaAlgorithm::Add,
        operator_to: AlphaAlgorithm::Multiply,
        initiator: Initiator::Policy,
        action_id: Some(context().action_id()),
    }
}

pub fn gate_evaluated() -> SeedGateEvaluated {
    let result = GateResult {
        level: GateLevel::G2,
        passed: false,
        score: 0.5,
        checks: [
            GateCheck {
                id: "improvement",
                value: Some(0.25),
                threshold: Some(0.5),
                passed: false,
            },
            GateCheck {
                id: "ready",
                value: None,
                threshold: None,
                passed: true,
            },
        ]
        .into_iter()
        .collect(),
    };
    SeedGateEvaluated::new(&result, SeedStage::Blending)
}

pub fn fossilized() -> SeedFossilized {
    SeedFossilized {
        blueprint: "norm".into(),
        params_added: 266,
        alpha: Num(1.0),
        age_epochs: 12,
        total_improvement: Num(3.5),
        blending_delta: Some(Num(1.25)),
        contribution: Some(Num(2.25)),
        contributing: true,
        action_id: context().action_id(),
    }
}

fn pruned() -> SeedPruned {
    SeedPruned {
        blueprint: Some("attention".into()),
        reason: PruneReason::SeedNonfinite,
        initiator: Initiator::Auto,
        stage: SeedStage::Training,
        age_epochs: 4,
        total_improvement: Num(-1.0),
        blending_delta: None,
        contribution: None,
        action_id: None,
    }
}

pub fn matrix() -> CounterfactualMatrix {
    let row = |mask, accuracy, discordant| CoalitionRow {
        mask: BigInteger(mask),
        accuracy: Num(accuracy),
        loss: Num(1.5),
        discordant,
    };
    CounterfactualMatrix {
        slots: vec![SLOT, OTHER_SLOT],
        seed_ids: vec!["e0.r0c0.0".into(), "e0.r0c1.0".into()],
        alphas: vec![Num(1.0), Num(0.5)],
        rows: vec![
            row(3, 57.0, None),
            row(2, 52.0, Some((6, 1))),
            row(1, 53.0, Some((5, 1))),
            row(0, 50.0, Some((9, 2))),
        ],
        samples: 100,
        coverage: Coverage::Full,
        dropped: vec![],
        total_ms: Num(12.5),
        val_flops: 3_000_000,
        val_flops_naive: 8_000_000,
    }
}

pub fn shapley() -> Shapley {
    let exactly = |mean| ShapleyValue {
        mean: Num(mean),
        std: Num(0.0),
        n: 1,
    };
    Shapley {
        slots: vec![SLOT, OTHER_SLOT],
        seed_ids: vec!["e0.r0c0.0".into(), "e0.r0c1.0".into()],
        values: vec![exactly(4.0), exactly(3.0)],
        method: ShapleyMethod::Exact,
        efficiency_gap: Num(0.0),
    }
}

fn interactions() -> Interactions {
    Interactions {
        pairs: vec![PairInteraction {
            a: SLOT,
            b: OTHER_SLOT,
            value: Num(2.0),
        }],
    }
}

fn alarm() -> GovernorAlarm {
    GovernorAlarm {
        kind: AlarmKind::Divergence,
        verdict: AlarmVerdict::Suspect,
        loss: Num(50.0),
        threshold: Some(Num(1.6)),
        mean: Some(Num(1.0)),
        std: Some(Num(0.1)),
        consecutive: 1,
        required: 3,
    }
}

pub fn rollback() -> GovernorRollback {
    GovernorRollback {
        kind: AlarmKind::NonFinite,
        loss: Num(f64::NAN),
        threshold: None,
        consecutive: 0,
        snapshot_step: 4,
        steps_lost: 3,
        action_id: Some(context().action_id()),
        penalty_raw: Num(-10.0),
        penalty_applied: None,
        steps_forfeited: 0,
        seeds_pruned: vec![SLOT],
    }
}

fn governor_snapshot() -> GovernorSnapshot {
    GovernorSnapshot {
        action: SnapshotAction::Capture,
        trigger: SnapshotTrigger::Improved,
        bytes: 4936,
        placement: SnapshotPlace::Device,
    }
}

pub fn round_finished() -> RoundFinished {
    RoundFinished {
        accuracy_mean: Num(54.3),
        accuracy_std: Num(2.5),
        accuracy_best: Num(81.0),
        accuracy_env: vec![Num(52.0), Num(56.6)],
        rolling_accuracy: Some(Num(53.8)),
        paid: Some(RoundRewards {
            reward_mean: Num(12.0),
            reward_std: Num(0.5),
            reward_terms_mean: BTreeMap::from([("pbrs".into(), Num(-0.5))]),
        }),
        growth: GrowthCounts {
            germinated: 3,
            fossilized: 1,
            pruned: 2,
            ..GrowthCounts::default()
        },
        governor: GovernorCounts {
            steps_lost: 6,
            snapshot_captures: 5,
            snapshot_promotions: 4,
            snapshot_discards: 1,
        },
        charges: Some(rollback_charges()),
        updates: vec![UpdateVerdict {
            group: "default".into(),
            performed: true,
            skip_reason: UpdateSkip::None,
        }],
        eta_s: Some(Num(20.5)),
        perf: PerfRound {
            round_wall_s: Num(12.5),
            env_steps_per_s: Num(6.4),
            samples_per_s: Num(1024.0),
            samples: 12_800,
            rounds_per_hour: Num(288.0),
            telemetry_ms: Num(1.5),
            blocked_ms: Num(0.0),
            host_reads: 80,
            waits: 80,
        },
    }
}
