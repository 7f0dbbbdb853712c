use super::*;

fn run(steps: Option<u32>, minutes: Option<f64>) -> RunConfig {
    RunConfig {
        checkpoint_every_steps: steps,
        checkpoint_every_minutes: minutes,
        ..RunConfig::default()
    }
}

#[test]
fn a_checkpoint_is_due_by_steps_by_time_and_before_a_stop() {
    let minute = Duration::from_secs(60);

    assert!(is_due(&run(Some(3), None), 6, minute, false));
    assert!(!is_due(&run(Some(3), None), 7, 1000 * minute, false));
    assert!(is_due(&run(None, Some(2.0)), 7, 2 * minute, false));
    assert!(!is_due(&run(None, Some(2.0)), 6, minute, false));
    assert!(is_due(&run(None, Some(2.0)), 6, minute, true));
    // Without either interval no step has one.
    assert!(!is_due(&run(None, None), 6, Duration::MAX, true));
}

#[test]
fn a_run_that_plays_its_round_to_the_end_needs_none_before_it_stops() {
    let mut run = run(Some(5), None);
    run.stop_at = StopAt::Round;

    assert!(!is_due(&run, 6, Duration::ZERO, true));
    assert!(is_due(&run, 5, Duration::ZERO, true));
}
