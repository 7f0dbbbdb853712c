use super::*;

#[test]
fn a_clock_plays_every_step_of_every_round_once() {
    let mut clock = RunClock::new(RunLength {
        first_round: 2,
        end_round: 4,
        max_steps: 2,
        train_batches: 3,
        val_batches: 1,
    });

    let mut played = Vec::new();
    while clock.next_round() {
        while clock.next_step() {
            played.push((clock.round(), clock.step(), clock.is_last_step()));
        }
    }

    assert_eq!(played, [(2, 1, false), (2, 2, true), (3, 1, false), (3, 2, true)]);
}
