use super::*;

const TEXT: &str = "(
format: 2,
slots: [
    \"r0c0: a\",
    \"r0c1\",
],
best: Some((
    next_round: 3,
)),
rows: [
    (mean: 0.5, count: 4),
],
by_name: {
    \"x.y\": 1,
},
none: [],
)";

fn shown(field: &Field) -> String {
    format!("{} = {}", field.path, field.value)
}

#[test]
fn every_line_with_a_value_is_a_field_by_its_path() {
    let fields = outline(TEXT);

    let data: Vec<String> = fields.iter().map(shown).collect();
    assert_eq!(
        data,
        [
            "format = 2",
            "slots.0 = \"r0c0: a\"",
            "slots.1 = \"r0c1\"",
            "best.next_round = 3",
            "rows.0 = (mean: 0.5, count: 4)",
            "by_name.x.y = 1",
            "none = []",
        ]
    );
    assert_eq!(fields[3].line, 8);
}

#[test]
fn texts_differ_in_values_and_in_fields_of_one_alone() {
    let other = TEXT.replace("format: 2", "format: 3").replace("none: []", "more: 1");

    let pairs = differing(TEXT, &other);

    let shown = |field: &Option<Field>| field.as_ref().map_or("-".into(), shown);
    let data: Vec<[String; 2]> = pairs.iter().map(|(_, fields)| fields.each_ref().map(shown)).collect();
    assert_eq!(
        data,
        [["format = 2", "format = 3"], ["none = []", "-"], ["-", "more = 1"]]
    );
}
