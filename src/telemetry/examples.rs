//! One example of every event, for tests.

use std::collections::BTreeMap;

use super::payload::Interactions;
use super::*;
use crate::growth::*;

mod env;
mod learner;
mod lifecycle;

pub use env::*;
pub use learner::{learner_update, rollback_charges};
pub use lifecycle::*;

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
        lr_host: Some(Num::from(0.01_f32)),
        max_grad_norm_host: Some(Num(1.0)),
        learner: Some(LearnerSetup {
            policy_params: 257_857,
            policy_device: "cpu".into(),
            lstm_hidden: 128,
            lr: Num(3e-4),
            clip_ratio: Num(0.2),
            gamma: Num(0.995),
            gae_lambda: Num(0.98),
            entropy_coef: Num(0.1),
            entropy_anneal: Some(EntropyAnneal {
                start: Num(0.1),
                end: Num(0.05),
                rounds: 20,
            }),
            value_coef: Num(0.5),
            max_grad_norm_policy: Some(Num(5.0)),
            update_epochs: 4,
        }),
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
