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
    let queue = Queue::new("probe", SinkClass::Live, 2);

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
    let queue = Queue::new("probe", SinkClass::Live, 1);
    let warning = Event::env(examples::context(), examples::env_step()).severity(Severity::Warning);
    queue.send(vec![Arc::new(warning)]);

    queue.send(batch(2));

    assert_eq!(queue.tally().dropped, 0);
    assert_eq!(received(&queue).len(), 3);
}

#[test]
fn a_full_durable_queue_waits_for_its_reader() {
    let queue = Queue::new("probe", SinkClass::Durable, 1);
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
    let queue = Queue::new("probe", SinkClass::Durable, 1);
    queue.send(batch(1));

    queue.abandon("broken".into());
    assert_eq!(queue.tally().dropped, 2);
    queue.send(batch(2));

    assert_eq!(queue.tally().dropped, 4);
    assert_eq!(queue.len(), 0);
}
