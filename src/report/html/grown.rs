//! The page of a `grow`: is the grown network better than the other uses of the compute, and which one was written?
//! Its tables are those of the text.

use maud::{Markup, html};

use super::network::network;
use super::page::{Page, shown, tile};
use super::pictures::{Point, Spread, forest, scatter};
use crate::compare::{Estimate, Interval};
use crate::grow::{Growth, Row};
use crate::report::grown::{capitalised, growth_tables};

/// The whole page.
pub fn growth_page(growth: &Growth) -> String {
    let mut page = Page::new(format!("the network {}: simic-engine", growth.choice.name));
    let chosen = growth.rows.iter().find(|row| row.way == growth.choice.way);
    page.head = Some(html! {
        p.name { (growth.scenario.name) }
        h1 { (capitalised(&growth.choice.why)) }
        @for note in &growth.notes { p.note { "note: " (note) } }
        @if let Some(row) = chosen {
            div.tiles {
                (tile(&row.name, "what is written"))
                (tile(&format!("{:.2} %", row.test.mean), "of the test part"))
                (tile(&row.parameters.to_string(), "parameters"))
                (tile(&row.seeds.len().to_string(), "seeds"))
            }
        }
    });
    let spreads = growth.rows.iter().filter_map(|row| {
        let ahead = row.grown_ahead?;
        let (value, low, high) = (ahead.mean, ahead.low, ahead.high);
        let interval = Some(Interval { low, high });
        let name = format!("grown - {}", row.name);
        let estimate = Estimate { value, interval };
        Some(Spread { name, estimate })
    });
    let about = "On the same samples of the test part, with 95 % intervals over them.";
    let body = html! {
        (forest("How far the grown network is ahead.", about, "points of the test part", spreads))
        (tables(&growth.rows))
    };
    page.section("better", "Is it better?", body);
    page.section("network", "What is written?", network(&growth.network));
    let names: Vec<&str> = growth.rows.iter().map(|row| row.name.as_str()).collect();
    let points = growth.rows.iter().map(|row| Point {
        group: &row.name,
        name: row.name.clone(),
        cost: row.parameters as f64,
        accuracy: row.test.mean,
    });
    let body = scatter("parameters", "On the test part.", &names, points);
    page.section("size", "Is it worth its size?", body);
    if !growth.tried.is_empty() {
        page.section("tried", "What was grown?", tables(&growth.tried));
    }
    page.section(
        "taken",
        "How do you use it?",
        html! {
            p { code { "python -c 'import network; print(network.load())'" } " in this folder, which needs nothing but torch; "
                code { "simic-engine run scenario.ron" } " plays the chosen training again." }
        },
    );
    page.render(None)
}

fn tables(rows: &[Row]) -> Markup {
    html! { @for table in growth_tables(rows) { (shown(table)) } }
}
