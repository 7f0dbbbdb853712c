use super::*;

fn table() -> Table {
    let mut table = Table::new(&["run", "scenario"], &["size"]);
    table.push(vec!["20260101-100000".into(), "quickstart".into(), "12345".into()]);
    table
}

#[test]
fn a_table_gives_up_columns_then_parts_of_texts_to_fit() {
    let lines = |width, droppable: &[&str]| -> Vec<String> {
        let text = table().render_within(width, droppable);
        [0, 2].map(|line| text.lines().nth(line).unwrap().to_owned()).into()
    };

    assert_eq!(
        lines(40, &["scenario"]),
        [
            "  run              scenario     size",
            "  20260101-100000  quickstart  12345"
        ]
    );
    assert_eq!(
        lines(30, &["scenario"]),
        ["  run               size", "  20260101-100000  12345"]
    );
    assert_eq!(
        lines(30, &[]),
        ["  run        scenario     size", "  20260101…  quickstart  12345"]
    );
    assert_eq!(
        lines(20, &["scenario"]),
        ["  run           size", "  20260101-1…  12345"]
    );
}
