use std::sync::Mutex;

use super::*;
use crate::telemetry::UpdateSkip;
use crate::telemetry::examples;

#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn shown(view: impl Fn(Box<dyn Write + Send>) -> View, events: Vec<Event>) -> String {
    let screen = Screen::default();
    let mut sink = ConsoleSink {
        live: LiveState::default(),
        view: view(Box::new(screen.clone())),
    };
    let events: Vec<_> = events.into_iter().map(Arc::new).collect();
    sink.write(&events).unwrap();
    sink.finish(&examples::run_finished()).unwrap();
    let bytes = screen.0.lock().unwrap();
    String::from_utf8(bytes.clone()).unwrap()
}

#[test]
fn plain_progress_is_a_line_for_everything_but_step_rows() {
    insta::assert_snapshot!(shown(View::Plain, examples::events()));
}

#[test]
fn a_first_round_has_no_rolling_accuracy() {
    let mut round = examples::round_finished();
    round.rolling_accuracy = None;

    let text = shown(View::Plain, vec![Event::round(0, round)]);

    assert_eq!(
        text,
        "round 1/? acc 54.3% (roll n/a) best 81.0% rew +12.00 G3 F1 P2 6.4 env-steps/s eta n/a\n"
    );
}

#[test]
fn a_round_that_nobody_is_paid_for_shows_no_reward() {
    let mut round = examples::round_finished();
    round.paid = None;

    let text = shown(View::Plain, vec![Event::round(0, round)]);

    assert!(!text.contains("rew"), "{text}");
}

#[test]
fn an_update_that_was_not_performed_is_said_so() {
    let mut update = examples::learner_update();
    (update.update_performed, update.skip_reason) = (false, UpdateSkip::Nonfinite);

    let text = shown(View::Plain, vec![Event::round(0, update)]);

    assert_eq!(text, "the policy was not updated: something was not finite\n");
}

#[test]
fn json_progress_is_one_event_a_round() {
    let text = shown(View::Json, examples::events());

    assert_eq!(text.lines().count(), 1);
    assert!(text.contains("\"type\":\"round_finished\""));
}

#[test]
fn the_status_line_shows_accuracy_and_speed() {
    let mut live = LiveState::default();
    for event in examples::events() {
        live.apply(&event);
    }

    assert_eq!(
        status_line(&live),
        "accuracy 50.0%  best 80.5%  reward +12.00  germinated 1 fossilized 1 pruned 1  eta 0s"
    );
}

#[test]
fn durations_are_short() {
    assert_eq!(short_duration(42.4), "42s");
    assert_eq!(short_duration(185.0), "3m05s");
    assert_eq!(short_duration(4320.0), "1h12m");
}
