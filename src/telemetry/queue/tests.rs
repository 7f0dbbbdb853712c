use super::*;
use crate::telemetry::examples;

fn batch(step: u32) -> Batch {
    let context = examples::context_at(0, 0, step);
    vec![
        Arc::new(Event::env(context, examples::env_step())),
        Arc::new(Event::env(context, examples::host_stabilized())),
    ]
}

fn received(queue: &Queue) -> Vec<(&'static str, Option<u32>)> {
    let mut events = Vec::new();
    while let Delivery::Events(batch) = queue.receive(Duration::ZERO) {
        events.extend(batch.iter().map(|event| (event.payload.kind(), event.step)));
    }
    events
}

#[test]
fn a_full_live_queue_drops_the_oldest_step_rows_only() {
    let queue = Queue::new("probe", SinkClass::Live, 2, Duration::ZERO);

    for step in 1..=4 {
        queue.send(batch(step));
    }

    assert_eq!(queue.tally().dropped, 2);
    assert_eq!(
        received(&queue),
        [
            ("host_stabilized", Some(1)),
            ("host_stabilized", Some(2)),
            ("env_step", Some(3)),
            ("host_stabilized", Some(3)),
            ("env_step", Some(4)),
            ("host_stabilized", Some(4)),
        ]
    );
}

#[test]
fn a_step_row_that_warns_is_kept() {
    let queue = Queue::new("probe", SinkClass::Live, 1, Duration::ZERO);
    let warning = Event::env(examples::context(), examples::env_step()).severity(Severity::Warning);
    queue.send(vec![Arc::new(warning)]);

    queue.send(batch(2));

    assert_eq!(queue.tally().dropped, 0);
    assert_eq!(received(&queue).len(), 3);
}

#[test]
fn a_full_durable_queue_waits_for_its_reader() {
    let queue = Queue::new("probe", SinkClass::Durable, 1, Duration::ZERO);
    queue.send(batch(1));

    let blocked = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            queue.receive(Duration::ZERO);
        });
        queue.send(batch(2))
    });

    assert_eq!(queue.tally().dropped, 0);
    assert!(blocked > Duration::ZERO);
    assert!(queue.tally().blocked_ms.0 > 0.0);
    assert_eq!(received(&queue).len(), 2);
}

#[test]
fn nobody_waits_for_an_abandoned_queue() {
    let queue = Queue::new("probe", SinkClass::Durable, 1, Duration::ZERO);
    queue.send(batch(1));

    queue.abandon("broken".into(), HeldBack::default());
    assert_eq!(queue.tally().dropped, 2);
    queue.send(batch(2));

    assert_eq!(queue.tally().dropped, 4);
    assert_eq!(queue.len(), 0);
}

fn no_room() -> SinkError {
    SinkError::Other("no room".into())
}

#[test]
fn a_full_queue_of_a_sink_that_fails_loses_what_it_is_sent_and_knows_since_when() {
    let queue = Queue::new("probe", SinkClass::Durable, 1, Duration::ZERO);
    queue.send(batch(1));
    queue.failed(&no_room(), 0);

    queue.send(batch(2));

    let gap = queue.gap().expect("something is lost");
    assert_eq!((gap.lost_events, gap.round, gap.why.as_str()), (2, Some(0), "no room"));
    assert_eq!(received(&queue).len(), 2, "what was there is kept");
}

#[test]
fn the_end_of_a_run_finds_room_in_a_full_queue() {
    let queue = Queue::new("probe", SinkClass::Durable, 1, Duration::ZERO);
    queue.send(batch(1));
    queue.failed(&no_room(), 0);

    queue.send(vec![Arc::new(Event::run(examples::run_finished()))]);

    assert_eq!(received(&queue).last(), Some(&("run_finished", None)));
}

#[test]
fn a_sink_that_fails_is_given_up_only_once_the_run_is_over() {
    let queue = Queue::new("probe", SinkClass::Durable, 1, Duration::ZERO);
    assert!(queue.failed(&no_room(), 0), "it is tried again");
    assert_eq!(queue.gap(), None);

    queue.close(Arc::new(examples::run_finished()));

    assert!(queue.failed(&no_room(), 1), "a last time");
    assert!(!queue.failed(&no_room(), 2));
}
