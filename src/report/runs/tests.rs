use super::*;
use crate::record::ListedState;
use crate::telemetry::{Num, RunState};

const NOW: Timestamp = Timestamp::from_milliseconds(1_800_000_000_000);

fn run(run_id: &str, state: ListedState, tags: &[&str], age_s: i64) -> RunEntry {
    RunEntry {
        run_id: run_id.into(),
        directory: "runs".into(),
        state,
        scenario: Some("digits".into()),
        rounds: Some(12),
        n_rounds: Some(80),
        best_accuracy: Some(Num(67.25)),
        tags: tags.iter().map(ToString::to_string).collect(),
        created: Some(Timestamp::from_milliseconds(NOW.milliseconds() - age_s * 1000)),
        heartbeat: None,
        size_bytes: 1_500_000,
        error: None,
        problem: (state == ListedState::Unreadable).then(|| "it has no status.json".into()),
    }
}

#[test]
fn runs_fit_into_eighty_columns_and_show_more_where_there_is_room() {
    let running = ListedState::Known(RunState::Running);
    let runs = [
        run("20260131-120000-quickstart-ab12", running, &["first"], 42),
        run("20260130-120000-quickstart-cd34", ListedState::Unreadable, &[], 90_000),
    ];

    let [narrow, wide] = [80, 100].map(|width| runs_table(&runs, width, NOW));

    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    insta::assert_snapshot!(format!("{narrow}\n{wide}"));
}

#[test]
fn ages_are_shown_in_their_largest_unit() {
    let ages = [0, 59_000, 61_000, 7_200_000, 172_800_000].map(age);

    assert_eq!(ages, ["0s", "59s", "1m", "2h", "2d"]);
}
