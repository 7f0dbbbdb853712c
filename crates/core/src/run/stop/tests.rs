use super::*;

#[test]
fn the_first_request_counts_for_every_clone() {
    let stop = StopSignal::default();
    let elsewhere = stop.clone();
    assert_eq!(stop.requested(), None);

    elsewhere.request(StopRequest::Terminate);
    stop.request(StopRequest::Interrupt);

    assert_eq!(stop.requested(), Some(StopRequest::Terminate));
}

/// A second signal would end the process that runs this.
#[cfg(unix)]
#[test]
fn the_first_signal_ends_nothing_at_once_even_where_a_system_has_asked_for_a_stop() {
    let (stop, signalled) = (StopSignal::default(), StopSignal::default());
    stop.request(StopRequest::Interrupt);
    stop_on_signals(stop.clone()).unwrap();
    stop_on_signals(signalled.clone()).unwrap();

    signal_hook::low_level::raise(signal_hook::consts::SIGTERM).unwrap();

    while !signalled.is_requested() {
        std::thread::yield_now();
    }
    assert_eq!(signalled.requested(), Some(StopRequest::Terminate));
    assert_eq!(stop.requested(), Some(StopRequest::Interrupt));
}

#[test]
fn exit_codes_are_those_of_the_signals() {
    let requests = [StopRequest::Interrupt, StopRequest::Terminate, StopRequest::HangUp];
    assert_eq!(requests.map(|request| request.exit_code()), [130, 143, 129]);
}

#[cfg(unix)]
#[test]
fn a_process_knows_whether_it_ignores_the_end_of_its_terminal() {
    assert!(!ignores_first_signal("Name:\tengine\nSigIgn:\t0000000000001000\n"));
    assert!(ignores_first_signal("SigIgn:\t0000000000000001\nSigCgt:\t0\n"));
    // An unknown setting stays unchanged.
    assert!(ignores_first_signal("Name:\tengine\n"));
}
