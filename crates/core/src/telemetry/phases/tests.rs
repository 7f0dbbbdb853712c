use std::thread::sleep;

use super::*;

const MOMENT: Duration = Duration::from_millis(5);
const MOMENT_MS: f64 = 5.0;

/// A clock whose round has just begun.
fn clock(phase: impl Into<Option<Phase>>) -> PhaseClock {
    let mut clock = PhaseClock::default();
    clock.enter(phase);
    clock.begin(RoundTime::default());
    clock
}

/// Sum of all fields.
fn sum(times: &PhaseTimes) -> f64 {
    times.named().iter().map(|(_, time)| time.0).sum()
}

#[test]
fn time_belongs_to_the_phase_in_which_it_passes() {
    let mut clock = clock(Phase::Reset);
    sleep(MOMENT);
    clock.enter(Phase::Decide);
    sleep(MOMENT);
    clock.enter(None);
    sleep(MOMENT);

    let taken = clock.read();

    let times = taken.phases();
    for (name, time) in times.named() {
        let is_used = ["reset", "decide", "other"].contains(&name);
        assert_eq!(time.0 >= MOMENT_MS, is_used, "{name}: {}", time.0);
    }
    assert!((sum(&times) - taken.time.as_secs_f64() * 1e3).abs() < 1e-6, "{times:?}");
}

#[test]
fn skipped_time_belongs_to_no_round() {
    let mut clock = clock(Phase::Act);
    sleep(MOMENT);
    clock.read();
    sleep(40 * MOMENT);
    clock.skip();

    let times = clock.read().phases();

    assert!((MOMENT_MS..30.0 * MOMENT_MS).contains(&sum(&times)), "{times:?}");
}

#[test]
fn a_round_that_is_taken_up_continues_with_what_it_had_taken() {
    let mut first = clock(Phase::Update);
    first.add_copied(MOMENT);
    sleep(MOMENT);
    let kept = ron::to_string(first.read()).unwrap();

    let mut second = clock(Phase::Checkpoint);
    second.begin(ron::from_str(&kept).unwrap());
    second.add_copied(MOMENT);

    let taken = second.read();
    assert_eq!(taken.copied, 2 * MOMENT);
    assert!(taken.phases().update.0 >= MOMENT_MS);
}
