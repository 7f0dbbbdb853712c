use super::*;

fn shown(text: &str) -> String {
    match read(text, 0) {
        Ok(document) => document.root.to_string(),
        Err(error) => format!("{}: {}", error.span.start, error.message),
    }
}

#[test]
fn every_shape_of_a_scenario_is_read() {
    let text = "#![enable(implicit_some)]\n( // comment\n a: Some(1_000), b: [-2, 0xff,], /* x /* y */ */ c: count(3),\
                d: (1.5, 2e-3), e: sgd(lr: .5), f: off, g: r#\"a\"b\"#, h: \"\\u{41}\\n\", i: None, j: true, k: ())";
    assert_eq!(
        shown(text),
        r#"(a: 1000, b: [-2, 255], c: count(3), d: (1.5, 0.002), e: sgd(lr: 0.5), f: off, g: "a\"b", h: "A\n", i: None, j: true, k: ())"#
    );
}

#[test]
fn a_syntax_error_says_where_and_what() {
    assert_eq!(shown("(a: 1 b: 2)"), "6: expected `,` or `)`, but found `b`");
    assert_eq!(shown("(a: [1, 2)"), "9: expected `,` or `]`, but found `)`");
    assert_eq!(shown("(a: "), "4: expected a value, but the text ends");
    assert_eq!(shown("(a: 1.2.3)"), "4: `1.2.3` isn't a number");
    assert_eq!(shown("(a: \"x)"), "4: this text is not closed with `\"`");
    assert_eq!(shown("(a: 1) 2"), "7: expected the end of the text, but found `2`");
    assert_eq!(shown("/* x"), "0: this comment is not closed with `*/`");
}

#[test]
fn a_key_given_twice_is_noted_with_its_position() {
    let document = read("(a: 1, a: 2)", 0).expect("reads");
    assert_eq!(document.noted[0].message, "`a` is given twice");
    assert_eq!(document.noted[0].span.start, 7);
}

#[test]
fn deep_nesting_is_refused_instead_of_overflowing_the_stack() {
    assert_eq!(shown(&"[".repeat(100_000)), "65: nested deeper than 64 levels");
}

#[test]
fn a_mark_of_the_byte_order_at_the_beginning_is_skipped() {
    assert_eq!(shown("\u{feff}(a: 1)"), "(a: 1)");
    assert_eq!(shown("(\u{feff}a: 1)"), "1: expected a value, but found `\u{feff}`");
}
