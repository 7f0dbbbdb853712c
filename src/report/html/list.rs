//! The page that lists runs, each a link to its own.

use maud::html;

use super::page::Page;
use crate::record::RunEntry;
use crate::report::words::number;

/// The runs, in the given order.
pub fn list_page(runs: &[RunEntry]) -> String {
    let mut page = Page::new("runs: simic-engine".into());
    page.head = Some(html! { h1 { (runs.len()) " runs" } });
    let body = html! {
        div.scroll {
            table {
                thead { tr {
                    th.text { "run" } th.text { "scenario" } th.text { "state" } th.text { "tags" }
                    th { "rounds" } th { "best, %" }
                } }
                tbody {
                    @for run in runs {
                        tr {
                            td.text { a href={ "/runs/" (run.run_id) "/" } { (run.run_id) } }
                            td.text { (run.scenario.as_deref().unwrap_or_default()) }
                            td.text { (run.state.name()) }
                            td.text { (run.tags.join(", ")) }
                            td { (run.rounds.unwrap_or_default()) @if let Some(planned) = run.n_rounds { " of " (planned) } }
                            td { (number(run.best_accuracy, 1)) }
                        }
                    }
                }
            }
        }
    };
    page.section("runs", "Runs", body);
    page.render(None)
}
