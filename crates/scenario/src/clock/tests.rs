use super::*;

fn clock(first_round: u32, end_round: u32) -> RunClock {
    RunClock::new(RunLength {
        first_round,
        end_round,
        max_steps: 2,
        train_batches: 3,
        val_batches: 1,
    })
}

#[test]
fn a_position_counts_as_people_do() {
    let mut clock = clock(3, 4);
    let mut places = vec![clock.position().to_string()];
    clock.next_round();
    places.push(clock.position().to_string());
    clock.next_step();
    places.push(clock.position().to_string());

    assert_eq!(places, ["", "round 4", "round 4, step 1"]);
}

#[test]
fn a_clock_plays_every_step_of_every_round_once() {
    let mut clock = clock(2, 4);
    let (mut played, mut announced) = (Vec::new(), Vec::new());
    while clock.next_round() {
        while clock.next_step() {
            played.push((clock.round(), clock.step(), clock.is_last_step()));
            announced.push(clock.upcoming_step());
        }
    }

    assert_eq!(played, [(2, 1, false), (2, 2, true), (3, 1, false), (3, 2, true)]);
    assert_eq!(announced, [Some((2, 2)), Some((3, 1)), Some((3, 2)), None]);
}
