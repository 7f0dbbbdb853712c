use super::*;

#[test]
fn every_old_name_has_one_present_name_and_no_name_is_both() {
    let lines: Vec<_> = include_str!("../renamed.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();

    assert_eq!(lines.len(), TABLE.len(), "each line is `old = new`, no name twice");
    let mut news: Vec<_> = TABLE.values().collect();
    news.sort_unstable();
    news.dedup();
    assert_eq!(news.len(), TABLE.len(), "no two old names have become one");
    for old in TABLE.keys() {
        assert!(!news.contains(&old), "{old} is an old and a present name");
    }
}

#[test]
fn whole_words_of_a_text_are_replaced_and_nothing_else() {
    assert_eq!(in_text("op_bias: (fossilize: 4.0)"), "op_bias: (commit: 4.0)");
    assert_eq!(
        in_text(r#"["op:FOSSILIZE", "fossilize_", "é fossilized"]"#),
        r#"["op:COMMIT", "fossilize_", "é committed"]"#
    );
    assert!(matches!(in_text("commit: 4.0"), Cow::Borrowed(_)));
}

#[test]
fn names_are_turned_back_to_what_they_were_at_first() {
    assert_eq!(as_first_written("r0c0.stage_committed"), "r0c0.stage_fossilized");
    assert_eq!(as_first_written("op:COMMIT\nop:PRUNE"), "op:FOSSILIZE\nop:PRUNE");
}
