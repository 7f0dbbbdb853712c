//! One example of every event, for tests: `examples/events.jsonl`, as a run would have written it.

use std::sync::LazyLock;

use super::*;

/// The file: an event a line, in catalogue order.
pub const LINES: &str = include_str!("events.jsonl");

/// Read once: tests of slow sinks must not wait for their events.
static EVENTS: LazyLock<Vec<Event>> = LazyLock::new(|| {
    let read = |line| serde_json::from_str(line).expect("the examples are events");
    LINES.lines().map(read).collect()
});

/// One event of every kind, in catalogue order.
pub fn events() -> Vec<Event> {
    EVENTS.clone()
}

/// A function for the payload of each kind that tests build upon.
macro_rules! payloads {
    ($($name:ident: $payload:ident),+ $(,)?) => {
        $(pub fn $name() -> $payload {
            let payload = |event: &Event| match &event.payload {
                Payload::$payload(data) => Some(data.clone()),
                _ => None,
            };
            EVENTS.iter().find_map(payload).expect("every kind of event has an example")
        })+
    };
}

payloads! {
    run_started: RunStarted,
    run_finished: RunFinished,
    baseline: BaselineMeasured,
    note: Note,
    env_step: EnvStep,
    decision: Decision,
    host_stabilized: HostStabilized,
    episode_finished: EpisodeFinished,
    germinated: SeedGerminated,
    gate_evaluated: SeedGateEvaluated,
    pruned: SeedPruned,
    committed: SeedCommitted,
    matrix: CounterfactualMatrix,
    shapley: Shapley,
    rollback: GovernorRollback,
    learner_update: LearnerUpdate,
    round_finished: RoundFinished,
    anomaly: Anomaly,
}

/// Position of the examples of an env's events.
pub fn context() -> EnvContext {
    context_at(1, 2, 7)
}

/// The context in a run with four envs a round.
pub fn context_at(env: u32, round: u32, step: u32) -> EnvContext {
    EnvContext {
        env,
        episode: round * 4 + env,
        round,
        step,
    }
}
