use super::*;

#[test]
fn the_nearest_name_is_a_plausible_slip_or_nothing() {
    let tasks = ["digits_baseline", "digits_impaired", "synth_scale"];
    assert_eq!(nearest("digits_impared", tasks), Some("digits_impaired"));
    assert_eq!(nearest("Digits-Baseline", tasks), Some("digits_baseline"));
    assert_eq!(nearest("imagenet", tasks), None);
}

#[test]
fn columns_count_characters_not_bytes() {
    let source = Source {
        label: "x.ron".into(),
        text: "(\n  näme: 3)".into(),
        kind: SourceKind::File,
    };
    assert_eq!(source.line_column(10), (2, 8));
}
