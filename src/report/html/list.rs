//! The page that lists runs, each a link to its own.

use maud::html;

use super::page::{Page, table};
use crate::record::RunEntry;
use crate::report::words::number;

/// The runs, in the given order.
pub fn list_page(runs: &[RunEntry]) -> String {
    let mut page = Page::new("runs: simic-engine".into());
    page.head = Some(html! { h1 { (runs.len()) " runs" } });
    let rows = runs.iter().map(|run| {
        vec![
            html! { a href={ "/runs/" (run.run_id) "/" } { (run.run_id) } },
            html! { (run.scenario.as_deref().unwrap_or_default()) },
            html! { (run.state.name()) },
            html! { (run.tags.join(", ")) },
            html! { (run.rounds.unwrap_or_default()) @if let Some(planned) = run.n_rounds { " of " (planned) } },
            html! { (number(run.best_accuracy, 1)) },
        ]
    });
    let body = table(&["run", "scenario", "state", "tags"], &["rounds", "best, %"], rows);
    page.section("runs", "Runs", body);
    page.render(None)
}
