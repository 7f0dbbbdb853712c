use super::*;

fn chart() -> Chart {
    Chart::new("c", ("round", "%"), vec![1.0, 2.0]).titled("A chart.", "It shows.")
}

#[test]
fn a_chart_without_a_finite_number_is_empty() {
    assert!(chart().is_empty());
    assert!(chart().line("none", vec![f64::NAN, f64::NAN]).is_empty());
    assert!(!chart().line("one", vec![f64::NAN, 0.0]).is_empty());
}

#[test]
fn its_table_has_every_number_that_its_picture_shows() {
    let chart = chart()
        .band("half", vec![1.0, 2.0], vec![3.0, f64::NAN])
        .line("mean", vec![2.5, f64::NAN]);

    let table = chart.table().into_string();

    let cells = table.split("<td>").skip(1).filter_map(|rest| rest.split('<').next());
    assert_eq!(cells.collect::<Vec<_>>(), ["1", "1 to 3", "2.5", "2", "2 to —", "—"]);
}

#[test]
fn what_is_stacked_begins_where_the_last_ended_and_costs_grow_downwards() {
    let chart = chart().stacked("a", vec![1.0, -1.0]).stacked("b", vec![2.0, -2.0]);
    let ends = chart.stacked("c", vec![-4.0, 3.0]).stacks();

    assert_eq!(ends[0], [(0.0, 1.0), (0.0, -1.0)]);
    assert_eq!(ends[1], [(1.0, 3.0), (-1.0, -3.0)]);
    assert_eq!(ends[2], [(0.0, -4.0), (0.0, 3.0)]);
}

#[test]
fn its_picture_carries_its_numbers_and_null_for_what_is_missing() {
    let chart = chart()
        .line("mean", vec![f64::NAN, 1.0 / 3.0])
        .band("half", vec![0.0, 1.0], vec![2.0, 3.0]);
    let drawn = chart.level(Some(2.0), "never grew").figure().into_string();

    assert!(
        drawn.contains(r#"data-label="round" data-x="[1.0,2.0]" data-low="1" data-high="2""#),
        "{drawn}"
    );
    assert!(drawn.contains(r#"<g class="series" data-values="[null,0.333333]" data-high="[]">"#));
    assert!(drawn.contains(r#"<g class="series" data-values="[0.0,1.0]" data-high="[2.0,3.0]">"#));
    assert!(drawn.contains("never grew"));
}
