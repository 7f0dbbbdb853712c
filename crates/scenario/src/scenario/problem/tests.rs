use super::*;

#[test]
fn the_nearest_name_is_a_plausible_slip_or_nothing() {
    let tasks = ["digits_baseline", "digits_impaired", "synth_scale"];
    assert_eq!(nearest("digits_impared", tasks), Some("digits_impaired"));
    assert_eq!(nearest("Digits-Baseline", tasks), Some("digits_baseline"));
    assert_eq!(nearest("imagenet", tasks), None);
}

#[test]
fn columns_count_characters_not_bytes_nor_a_mark_of_their_order() {
    let mut cursor = Cursor::new("(\n  näme: 3)");
    assert_eq!(cursor.position(10), (2, 8));
    assert_eq!(cursor.position(2), (2, 1), "a step back");
    assert_eq!(cursor.position(99), (2, 11), "after the end");
    assert_eq!(Cursor::new("\u{feff}(a)").position(4), (1, 2));
}

fn report(text: &str, spans: &[(usize, usize)]) -> Report {
    let problem = |&(start, end): &(usize, usize)| Problem::error(Span { source: 0, start, end }, "a.b", "wrong");
    let source = Source::new("x.ron", text, SourceKind::File);
    Report::new(vec![source], spans.iter().map(problem).collect())
}

#[test]
fn of_a_long_line_the_part_around_the_problem_is_shown_and_one_that_fits_as_a_whole() {
    let text = format!("{}wrong{}", "<".repeat(1000), ">".repeat(1000));

    let printed = report(&text, &[(1000, 1005)]).to_string();

    let expected = format!(
        "x.ron:1:1001: a.b: wrong\n    1 | …{}wrong{}…\n      | {}^^^^^\n\n1 problem",
        "<".repeat(60),
        ">".repeat(55),
        " ".repeat(61)
    );
    assert_eq!(printed, expected);

    let text = format!("{}wrong", "<".repeat(115));
    let printed = report(&text, &[(115, 120)]).to_string();
    assert!(printed.contains(&format!("    1 | {text}\n")), "{printed}");
}

#[test]
fn many_problems_are_counted_and_the_first_are_shown() {
    let text = "x\n".repeat(1000);
    let spans: Vec<_> = (0..1000).map(|line| (2 * line, 2 * line + 1)).collect();
    let report = report(&text, &spans);
    let printed = report.to_string();

    assert_eq!(printed.matches("a.b: wrong").count(), 50);
    assert!(printed.contains("x.ron:50:1: "));
    assert!(printed.ends_with("and 950 more\n\n1000 problems"), "{printed}");
    assert_eq!(report.rows()[999].line, Some(1000), "programs get them all");
}

/// Reading the text again for each problem would take hours.
#[test]
fn many_problems_on_one_long_line_are_placed_in_one_pass() {
    let text = "x".repeat(1 << 21);
    let spans: Vec<_> = (0..1 << 20).map(|place| (2 * place, 2 * place + 1)).collect();

    let rows = report(&text, &spans).rows();

    assert_eq!(rows[(1 << 20) - 1].column, Some((1 << 21) - 1));
}

#[test]
fn what_a_terminal_would_obey_is_printed_as_an_escape() {
    let mut report = report("(name: \"\u{1b}[2J\u{202e}\")", &[(7, 12)]);
    report.problems[0].message = "unknown \"\u{1b}]0;mine\u{7}\"".into();

    let printed = report.to_string();

    let expected = r#"x.ron:1:8: a.b: unknown "\u{1b}]0;mine\u{7}"
    1 | (name: "\u{1b}[2J\u{202e}")
      |        ^^^^^^^^^^

1 problem"#;
    assert_eq!(printed, expected);
}

#[test]
fn only_line_breaks_and_kept_sequences_of_a_printed_text_reach_the_terminal() {
    let hostile = "a\u{1b}[31mb\u{1b}[1;31mc\u{9b}2J\u{7f}\u{202e}\u{61c}\r\n\td";

    assert_eq!(
        printable(hostile, &COLOURS.codes()),
        "a\\u{1b}[31mb\u{1b}[1;31mc\\u{9b}2J\\u{7f}\\u{202e}\\u{61c}\\u{d}\n\td"
    );
    assert!(!printable(hostile, &[]).contains('\u{1b}'));
}
