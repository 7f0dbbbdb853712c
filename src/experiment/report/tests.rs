use super::*;
use crate::experiment::fixtures::{design, record};

fn report(replicates: usize) -> Report {
    let fields = r#"arms: [(id: "shaped"), (id: "sparse"), (id: "off")], replicates: 5, control: "off""#;
    let shaped = [61.0, 62.5, 60.0, 63.0, 64.5];
    let sparse = [50.0, 52.0, 55.0, 49.0, 51.0];
    let off = [50.5, 51.0, 52.5, 49.5, 53.0];
    let values = [shaped, sparse, off];
    let values: Vec<&[f64]> = values.iter().map(|values| &values[..replicates]).collect();
    Report::from(record(design(fields), &values))
}

#[test]
fn the_report_of_a_finished_experiment() {
    let text = report(5).to_text();

    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_report_of_an_experiment_that_goes_on_has_no_verdict() {
    let report = report(3);

    let remarks = ["interim: 3 of 5 replicates have ended; no verdict before all have"];
    assert_eq!(report.remarks(), remarks);
    assert!(!report.is_whole());
}

#[test]
fn tables_of_arms_with_long_names_fit_into_80_columns() {
    let fields = r#"arms: [(id: "a-name-as-long-as-it"), (id: "another-name-just-as")], replicates: 5"#;
    let values = [100.0; 5];

    let text = Report::from(record(design(fields), &[&values, &values])).to_text();

    let is_row = |line: &&str| line.starts_with("  ");
    assert!(
        text.lines().filter(is_row).all(|line| line.chars().count() <= 80),
        "{text}"
    );
}
