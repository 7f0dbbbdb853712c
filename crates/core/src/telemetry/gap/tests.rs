use super::*;

#[test]
fn a_gap_says_what_is_gone_since_when_and_why() {
    let gap = |lost_events, round| RecordGap {
        part: "events.jsonl".into(),
        lost_events,
        round,
        why: "events.jsonl: No space left on device".into(),
    };

    let texts = [gap(1230, Some(4)), gap(1, None), gap(0, None)].map(|gap| gap.to_string());

    assert_eq!(
        texts,
        [
            "`events.jsonl` is missing 1230 events, from round 5 on: events.jsonl: No space left on device",
            "`events.jsonl` is missing an event: events.jsonl: No space left on device",
            "`events.jsonl` is incomplete: events.jsonl: No space left on device",
        ]
    );
}
