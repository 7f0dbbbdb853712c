//! The page of an `adapt`: the row that reads the new images best, and its price in addition to the given network.

use maud::html;

use super::network::network;
use super::page::{Page, shown, tile};
use super::pictures::{Point, scatter};
use crate::adapt::Adapted;
use crate::report::adapted::adaptation_table;
use crate::report::grown::capitalised;

/// The page, whole.
pub fn adaptation_page(adapted: &Adapted) -> String {
    let mut page = Page::new(format!("the domain {}: simic-engine", adapted.domain));
    let written = adapted.rows.iter().find(|row| row.name == adapted.written);
    page.head = Some(html! {
        p.name { "adapt" }
        h1 { (capitalised(&adapted.why).replace('`', "")) }
        @for better in &adapted.better { p.note { (better.replace('`', "")) } }
        @if let Some(row) = written {
            div.tiles {
                (tile(&row.name, "what learns"))
                (tile(&format!("{:.1} %", row.test.unwrap_or(row.cross_validated).mean), "of the new images"))
                (tile(&format!("{:.2}x", row.added_share), "of the given network is added"))
            }
        }
    });
    let groups = ["the given network is inside", "a copy, fine-tuned", "written"];
    let points = adapted.rows.iter().map(|row| Point {
        group: match row.keeps {
            _ if row.name == adapted.written => groups[2],
            true => groups[0],
            false => groups[1],
        },
        name: row.name.clone(),
        cost: row.added_share,
        accuracy: row.test.unwrap_or(row.cross_validated).mean,
    });
    let about = "On the new images. A fine-tuned copy is one more network, as the given one is kept as well.";
    let body = html! {
        (scatter("what is added, in sizes of the given network", about, &groups, points))
        (shown(adaptation_table(&adapted.rows)))
    };
    page.section("better", "What is it worth, and what does it cost?", body);
    if let Some(domain) = adapted.network.domains.get(&adapted.domain) {
        page.section("network", "What is written?", network(domain));
    }
    let domain = format!("network.load()(x, domain={:?})", adapted.domain);
    let body = html! {
        p { code { (domain) } " in this folder, which needs nothing but torch; " code { "network.load()(x)" } " is the given network; "
            code { "python network.py --certificate" } " proves that it is unchanged." }
    };
    page.section("taken", "How do you use it?", body);
    page.render(None)
}
