use super::*;

#[test]
fn ticks_are_round_and_lie_inside() {
    let ticks = |low, high| Range { low, high }.ticks();

    assert_eq!(ticks(0.0, 100.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    assert_eq!(ticks(1.0, 4.1), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(ticks(-0.3, 0.3), [-2.0, -1.0, 0.0, 1.0, 2.0].map(|tick| tick * 0.1));
}

#[test]
fn a_range_of_any_values_has_a_width() {
    assert_eq!(Range::of([]), Range { low: 0.0, high: 1.0 });
    assert_eq!(Range::of([f64::NAN, f64::INFINITY]), Range { low: 0.0, high: 1.0 });
    assert_eq!(Range::of([3.0, 3.0]), Range { low: 1.5, high: 4.5 });
    assert_eq!(Range::of([2.0, f64::NAN, -1.0]), Range { low: -1.0, high: 2.0 });
}

#[test]
fn axes_show_numbers_in_few_characters() {
    let shown = [0.0, 0.25, -3.5, 12_000.0, 2_500_000.0, 0.000_02].map(tick_label);

    assert_eq!(shown, ["0", "0.25", "-3.5", "12k", "2.500M", "2e-5"]);
}

#[test]
fn names_stay_text_in_a_picture() {
    let hostile = "</svg><script>alert(1)</script>\"'\u{202e}\u{1b}[2J";
    let safe = "&lt;/svg&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;\\u{202e}\\u{1b}[2J";

    assert_eq!(escaped(hostile), safe);
}

#[test]
fn a_line_has_a_gap_where_a_value_is_missing() {
    let [x, y] = [3.0, 1.0].map(|high| Range { low: 0.0, high });
    let mut frame = Frame::new(x, y, 100.0, ("x", "y"));

    frame.line([(0.0, 0.0), (1.0, f64::NAN), (2.0, 1.0), (3.0, 1.0)].into_iter(), "c0");

    let drawn = frame.finish("a line").into_string();
    let path = "class=\"line c0\" d=\"M52.0 66.0M490.7 8.0L710.0 8.0\"";
    assert!(drawn.contains(path), "{drawn}");
}
