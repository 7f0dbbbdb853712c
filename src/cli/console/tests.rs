use std::io::Seek;

use super::*;
use crate::cli::Output;
use crate::telemetry::{UpdateSkip, examples};

fn shown(style: ProgressStyle, tells_events: bool, events: Vec<Event>) -> String {
    let mut screen = tempfile::tempfile().unwrap();
    let terminal = Terminal::on(Output::to(screen.try_clone().unwrap()), false, false);
    let mut sink = Console::new(style, tells_events, &terminal);
    let run = RunInfo {
        run_id: "test".into(),
        directory: "runs/test".into(),
        earlier: None,
    };
    sink.start(&run).unwrap();
    let events: Vec<_> = events.into_iter().map(Arc::new).collect();
    sink.write(&events).unwrap();
    sink.finish(&examples::run_finished()).unwrap();
    screen.rewind().unwrap();
    std::io::read_to_string(screen).unwrap()
}

fn plain(events: Vec<Event>) -> String {
    shown(ProgressStyle::Plain, false, events)
}

#[test]
fn plain_progress_is_a_line_a_round_and_what_concerns_the_whole_run() {
    insta::assert_snapshot!(shown(ProgressStyle::Plain, false, examples::events()));
}

#[test]
fn plain_progress_of_those_who_want_more_is_a_line_for_everything_but_step_rows() {
    insta::assert_snapshot!(shown(ProgressStyle::Plain, true, examples::events()));
}

#[test]
fn a_first_round_has_no_rolling_accuracy_and_one_without_rewards_no_reward() {
    let mut round = examples::round_finished();
    (round.rolling_accuracy, round.paid) = (None, None);

    let text = plain(vec![Event::round(0, round)]);

    let last = text.lines().last().unwrap();
    assert_eq!(last, "    1/?  54.3       —  81.0        —     3/1/2     6.4      —");
}

#[test]
fn what_a_round_shows_is_explained_once_and_what_was_found_of_its_hosts_is_a_line_above_it() {
    let at = examples::context_at(0, 0, 4);
    let mut spike = examples::anomaly();
    (spike.rule, spike.state) = ("gradient_spike".into(), AnomalyState::Onset);
    let found = [spike.clone(), spike].map(|spike| Event::env(at, spike));
    let ended = Event::env(at, examples::episode_finished());
    let rounds = [0, 1].map(|round| Event::round(round, examples::round_finished()));

    let text = plain(found.into_iter().chain([ended]).chain(rounds).collect());

    assert_eq!(text.matches("accuracy in %").count(), 1, "{text}");
    let expected = "left\nround 1: gradient_spike 2x in 1 of 2 hosts\n    1/?  ";
    assert!(text.contains(expected) && text.matches("spike").count() == 1, "{text}");
}

#[test]
fn bars_that_cannot_be_drawn_are_said_to_be_lines() {
    let expected = "run directory  runs/test\nstandard error isn't a terminal, so each round prints a line\n";
    assert_eq!(shown(ProgressStyle::Bar, false, Vec::new()), expected);
}

#[test]
fn an_update_that_was_not_performed_is_said_so() {
    let mut update = examples::learner_update();
    (update.update_performed, update.skip_reason) = (false, UpdateSkip::Nonfinite);

    let text = plain(vec![Event::round(0, update)]);

    let expected = "the policy was not updated: something was not finite\n";
    assert!(text.ends_with(expected), "{text}");
}

/// A scenario's name, a note, the error of a round: their authors are unknown.
#[test]
fn what_others_wrote_cannot_steer_the_terminal() {
    let hostile = "\u{1b}[2J\u{9b}31m\u{202e}quickstart\u{7}";
    let mut started = examples::run_started();
    started.task = hostile.into();
    let mut note = examples::note();
    note.text = hostile.into();

    let text = shown(ProgressStyle::Plain, true, vec![Event::run(started), Event::run(note)]);

    let steers = |character: char| character.is_control() && character != '\n' || character == '\u{202e}';
    assert!(!text.contains(steers), "{text:?}");
    let escaped = "\\u{1b}[2J\\u{9b}31m\\u{202e}quickstart\\u{7}";
    assert_eq!(text.matches(escaped).count(), 2, "{text}");
}

#[test]
fn json_progress_is_one_event_a_round() {
    let text = shown(ProgressStyle::Json, false, examples::events());

    assert_eq!(text.lines().count(), 1);
    assert!(text.contains("\"type\":\"round_finished\""));
}

#[test]
fn the_status_line_shows_accuracy_and_growth() {
    let mut live = LiveState::default();
    examples::events().iter().for_each(|event| live.apply(event));

    let expected = "accuracy 50.0 %  germinated 1, committed 1, pruned 1";
    assert_eq!(status_line(&live), expected);
}
