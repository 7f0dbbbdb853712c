use super::*;

fn table() -> Table {
    let row = ["20260101-100000", "quickstart", "12345"].map(String::from);
    Table::of(&["run", "scenario"], &["size"], [row.into()])
}

#[test]
fn a_table_gives_up_columns_then_parts_of_texts_to_fit() {
    let scenario: &[&str] = &["scenario"];
    let full = "run              scenario     size";
    for (width, droppable, head, row) in [
        (40, scenario, full, "20260101-100000  quickstart  12345"),
        (30, scenario, "run               size", "20260101-100000  12345"),
        (30, &[], "run        scenario     size", "20260101…  quickstart  12345"),
        (20, scenario, "run           size", "20260101-1…  12345"),
    ] {
        let text = table().render_within(width, droppable);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!([lines[0], lines[2]], [format!("  {head}"), format!("  {row}")]);
    }
}
