use proptest::prelude::*;

use super::*;
use crate::engine::built_in_names;
use crate::scenario::read_declared;

fn read(text: &str) -> Declared<SweepFile> {
    read_declared("s.ron", text, &built_in_names()).unwrap_or_else(|report| panic!("{report}"))
}

/// The values of every point, in the order of its settings.
fn values(text: &str) -> Vec<String> {
    let point = |point: &Point| {
        let settings = point.settings.iter().map(|setting| setting.value.0.as_str());
        settings.collect::<Vec<_>>().join(" ")
    };
    points(&read(text)).unwrap().iter().map(point).collect()
}

#[test]
fn a_grid_tries_all_combinations_the_last_axis_fastest() {
    let text = r#"(axes: [
        (path: "run.n_envs", values: list([4, 8])),
        (path: "run.rounds", values: list([1, 2, 3])),
    ])"#;

    assert_eq!(values(text), ["4 1", "4 2", "4 3", "8 1", "8 2", "8 3"]);
    assert_eq!(points(&read(text)).unwrap()[0].places, ["s.ron:2:38", "s.ron:3:38"]);
}

#[test]
fn listed_points_are_tried_with_every_combination_of_the_axes_and_without_both_there_is_one_point() {
    let text = r#"(
        points: [
            (name: "one", set: [(path: "run.rounds", value: 1)]),
            (name: "two", set: [(path: "run.rounds", value: 2), (path: "name", value: "b")]),
        ],
        axes: [(path: "policy.controller", values: list(["wait", "random"]))],
    )"#;

    let expected = [r#"1 "wait""#, r#"1 "random""#, r#"2 "b" "wait""#, r#"2 "b" "random""#];
    assert_eq!(values(text), expected);
    assert_eq!(values("()"), [""]);
}

#[test]
fn draws_are_the_same_every_time_and_never_twice_the_same_point() {
    let text = r#"(
        draw: random(points: 50, seed: 1),
        axes: [(path: "policy.controller", values: list(["wait", "random"])), (path: "run.rounds", values: list([1, 2]))],
    )"#;

    let drawn = points(&read(text)).unwrap();

    assert_eq!(drawn, points(&read(text)).unwrap());
    assert_eq!(drawn.len(), 4);
}

#[test]
fn what_no_sweep_can_try_is_named_with_its_place() {
    // More points than 128 bits count.
    let axes = r#"(path: "a", values: list([1, 2])),"#.repeat(128);
    let grid = format!("(axes: [{axes}])");
    for (text, expected) in [
        (
            r#"(axes: [(path: "learner.lr", values: uniform(low: 0.1, high: 1.0))])"#,
            "s.ron:1:38: axes[0].values: a grid tries all values",
        ),
        (
            r#"(draw: random(points: 2, seed: 1), axes: [(path: "a", values: uniform(low: 2.0, high: 1.0))])"#,
            "low 2 is not less than high 1",
        ),
        (
            r#"(axes: [(path: "run.rounds", values: list([]))])"#,
            "a list without values",
        ),
        (
            r#"(points: [(name: "a", set: []), (name: "b", set: [])], draw: random(points: 999999, seed: 1))"#,
            "a sweep has at most 1000000",
        ),
        (
            r#"(draw: random(points: 1000, seed: 1), replicates: 1001)"#,
            "1 x 1000 points, each trained 1001 times",
        ),
        (grid.as_str(), "a sweep has at most 1000000"),
    ] {
        let file = read(text);
        let refused = file.report(points(&file).unwrap_err()).to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}

proptest! {
    #[test]
    fn a_value_lies_within_its_range(share in 0.0..1.0_f64, low in 1e-6..1.0_f64, width in 1e-3..1e3_f64) {
        let high = low + width;
        for values in [AxisValues::Uniform { low, high }, AxisValues::LogUniform { low, high }] {
            let value: f64 = value_at(&values, share).0.parse().unwrap();
            prop_assert!(low <= value && value <= high, "{value}");
        }
        let (low, high) = (-3, 4);
        let value: i64 = value_at(&AxisValues::Integer { low, high }, share).0.parse().unwrap();
        prop_assert!((low..=high).contains(&value));
    }
}
