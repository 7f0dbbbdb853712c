use super::*;
use crate::telemetry::{Event, Num, examples};

/// Heads and the line of one round, for a run that learns, or does not.
fn lines(learns: bool, task_kind: TaskKind) -> Vec<String> {
    let (mut started, mut round) = (examples::run_started(), examples::round_finished());
    started.task_kind = task_kind;
    started.policy_params = started.policy_params.filter(|_| learns);
    round.perplexity = (task_kind == TaskKind::LanguageModel).then_some(Num(9.874));
    let mut live = LiveState::default();
    live.apply(&Event::run(started));
    live.apply(&Event::round(2, examples::learner_update()));
    live.apply(&Event::round(2, round));
    let mut lines = header(&live);
    lines.push(round_line(&live.rounds[0], &live));
    lines
}

#[test]
fn a_language_model_has_its_perplexity() {
    let lines = lines(true, TaskKind::LanguageModel);

    let [.., heads, round] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert!(heads.contains("perplexity") && round.contains(" 9.87 "), "{lines:#?}");
}

/// Its text is in the snapshots of the console.
#[test]
fn a_round_is_a_line_of_eighty_columns_under_its_heads() {
    let lines = lines(true, TaskKind::Classification);

    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
}

#[test]
fn where_nothing_learns_lines_say_nothing_of_learning() {
    let expected = [
        "  round  mean rolling  best   reward     seeds steps/s   left",
        "    3/3  54.3    53.8  81.0   +12.00     3/1/2     6.4     0s",
    ];
    assert_eq!(lines(false, TaskKind::Classification)[2..], expected);
}

#[test]
fn durations_are_short() {
    assert_eq!(short_duration(42.4), "42s");
    assert_eq!(short_duration(185.0), "3m05s");
    assert_eq!(short_duration(4320.0), "1h12m");
}
