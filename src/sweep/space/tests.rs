use proptest::prelude::*;

use super::*;
use crate::engine::built_in_names;
use crate::scenario::read_declared;

fn read(text: &str) -> Declared<SweepFile> {
    read_declared("s.ron", text, &built_in_names()).unwrap_or_else(|report| panic!("{report}"))
}

fn values(points: &[Point]) -> Vec<Vec<&str>> {
    points
        .iter()
        .map(|point| point.settings.iter().map(|setting| setting.value.0.as_str()).collect())
        .collect()
}

#[test]
fn a_grid_tries_all_combinations_the_last_axis_fastest() {
    let file = read(
        r#"(axes: [
            (path: "policy.controller", values: list(["wait", "random"])),
            (path: "run.rounds", values: list([1, 2, 3])),
        ])"#,
    );

    let points = points(&file).unwrap();

    assert_eq!(
        values(&points),
        [
            ["\"wait\"", "1"],
            ["\"wait\"", "2"],
            ["\"wait\"", "3"],
            ["\"random\"", "1"],
            ["\"random\"", "2"],
            ["\"random\"", "3"],
        ]
    );
    assert_eq!(points[0].places, ["s.ron:2:49", "s.ron:3:42"]);
}

#[test]
fn listed_points_are_tried_with_every_combination_of_the_axes() {
    let file = read(
        r#"(
            points: [
                (name: "one", set: [(path: "run.rounds", value: 1)]),
                (name: "two", set: [(path: "run.rounds", value: 2), (path: "name", value: "b")]),
            ],
            axes: [(path: "policy.controller", values: list(["wait", "random"]))],
        )"#,
    );

    assert_eq!(
        values(&points(&file).unwrap()),
        [
            vec!["1", "\"wait\""],
            vec!["1", "\"random\""],
            vec!["2", "\"b\"", "\"wait\""],
            vec!["2", "\"b\"", "\"random\""],
        ]
    );
}

#[test]
fn without_axes_there_is_one_point() {
    assert_eq!(values(&points(&read("()")).unwrap()), [Vec::<&str>::new()]);
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
    let refused = |text: &str| {
        let file = read(text);
        file.report(points(&file).unwrap_err()).to_string()
    };

    let range_in_grid = refused(r#"(axes: [(path: "learner.lr", values: uniform(low: 0.1, high: 1.0))])"#);
    assert!(
        range_in_grid.starts_with("s.ron:1:38: axes[0].values: a grid tries all values"),
        "{range_in_grid}"
    );
    let upside_down =
        refused(r#"(draw: random(points: 2, seed: 1), axes: [(path: "a", values: uniform(low: 2.0, high: 1.0))])"#);
    assert!(upside_down.contains("low 2 is not less than high 1"), "{upside_down}");
    let empty = refused(r#"(axes: [(path: "run.rounds", values: list([]))])"#);
    assert!(empty.contains("a list without values"), "{empty}");
    let too_many =
        refused(r#"(points: [(name: "a", set: []), (name: "b", set: [])], draw: random(points: 999999, seed: 1))"#);
    assert!(too_many.contains("a sweep has at most 1000000"), "{too_many}");
    let too_often = refused(r#"(draw: random(points: 1000, seed: 1), replicates: 1001)"#);
    assert!(
        too_often.contains("1 x 1000 points, each trained 1001 times"),
        "{too_often}"
    );
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
