use super::*;

fn recorded(rewards: &[f64]) -> (Segment, Vec<f64>) {
    (Segment::default(), rewards.to_vec())
}

#[test]
fn the_share_with_the_largest_returns_is_kept_in_order() {
    let config = RecordingsConfig {
        best: 0.5,
        ..RecordingsConfig::default()
    };
    let mut segments = [[0.0, 1.0], [5.0, -4.0], [2.0, 2.0], [3.0, 0.0]]
        .map(|rewards| recorded(&rewards))
        .to_vec();

    // Returns 0.5, 3, 3, 3: more than half are as good as the best.
    keep_best(&mut segments, &config, 0.5);

    let kept: Vec<f64> = segments.iter().map(|(_, rewards)| rewards[0]).collect();
    assert_eq!(kept, [5.0, 2.0, 3.0]);
}
