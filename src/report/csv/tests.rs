use super::*;

#[test]
fn fields_with_commas_quotes_and_line_ends_are_quoted() {
    let mut csv = Csv::new(&["a", "b"]);
    csv.push(&["x,y".into(), "he said \"no\"\nand left".into()]);

    assert_eq!(csv.0, "a,b\n\"x,y\",\"he said \"\"no\"\"\nand left\"\n");
}
