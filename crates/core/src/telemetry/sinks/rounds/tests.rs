use super::*;
use crate::telemetry::{Event, examples};

#[test]
fn a_language_model_has_its_perplexity() {
    let mut live = LiveState::default();
    let mut round = examples::round_finished();
    round.perplexity = Some(crate::telemetry::Num(9.874));
    live.apply(&Event::run(crate::telemetry::RunStarted {
        task_kind: TaskKind::LanguageModel,
        ..examples::run_started()
    }));
    live.apply(&Event::round(2, round));

    assert!(header(&live).last().is_some_and(|heads| heads.contains("perplexity")));
    assert!(round_line(&live.rounds[0], &live).contains(" 9.87 "));
    assert!(!lines(true).concat().contains("perplexity"));
}

/// The lines of one round of a run that learns, or does not.
fn lines(learns: bool) -> Vec<String> {
    let mut started = examples::run_started();
    started.policy_params = started.policy_params.filter(|_| learns);
    let mut live = LiveState::default();
    live.apply(&Event::run(started));
    live.apply(&Event::round(2, examples::learner_update()));
    live.apply(&Event::round(2, examples::round_finished()));
    let mut lines = header(&live);
    lines.push(round_line(&live.rounds[0], &live));
    lines
}

#[test]
fn a_round_is_a_line_of_eighty_columns_under_its_heads() {
    let lines = lines(true);

    assert_eq!(
        lines[2..],
        [
            "  round  mean rolling  best   reward entropy     KL     seeds steps/s   left",
            "    3/3  54.3    53.8  81.0   +12.00    0.71 0.0080     3/1/2     6.4     0s"
        ]
    );
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
}

#[test]
fn where_nothing_learns_there_is_no_word_of_learning() {
    assert_eq!(
        lines(false)[2..],
        [
            "  round  mean rolling  best   reward     seeds steps/s   left",
            "    3/3  54.3    53.8  81.0   +12.00     3/1/2     6.4     0s"
        ]
    );
}

#[test]
fn durations_are_short() {
    assert_eq!(short_duration(42.4), "42s");
    assert_eq!(short_duration(185.0), "3m05s");
    assert_eq!(short_duration(4320.0), "1h12m");
}
