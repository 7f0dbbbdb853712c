//! A page: one file that needs nothing else. Style and script are in it; the script adds to its pictures and tables, and draws none.

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use serde_json::{Value, json};

use super::svg::is_direction;
use crate::report::table::Table;

const STYLE: &str = include_str!("../../../assets/report/report.css");
const SCRIPT: &str = include_str!("../../../assets/report/report.js");

/// A part of a page with a heading.
pub struct Section {
    /// Anchor of its address within the page.
    pub id: &'static str,
    /// Its heading: the question that it answers.
    pub title: &'static str,
    /// Its content.
    pub body: Markup,
}

/// A page that is put together.
pub struct Page {
    title: String,
    /// Content above all sections.
    pub head: Option<Markup>,
    sections: Vec<Section>,
    episodes: Vec<Value>,
}

impl Page {
    /// A page without sections. `title` is the browser's.
    pub fn new(title: String) -> Self {
        Self {
            title,
            head: None,
            sections: Vec::new(),
            episodes: Vec::new(),
        }
    }

    /// Adds an episode that can be replayed.
    pub fn episode(&mut self, episode: Value) {
        self.episodes.push(episode);
    }

    /// Adds a section.
    pub fn section(&mut self, id: &'static str, title: &'static str, body: Markup) {
        self.sections.push(Section { id, title, body });
    }

    /// The whole page. `version` is that of a served page, which asks for newer content.
    pub fn render(self, version: Option<u64>) -> String {
        let data = json!({ "episodes": self.episodes, "live": version });
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'";
                    title { (self.title) }
                    link rel="icon" href="data:,";
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    nav {
                        @for section in &self.sections {
                            a href={ "#" (section.id) } { (section.title) }
                        }
                    }
                    main {
                        @if let Some(head) = self.head { header { (head) } }
                        @for section in self.sections {
                            section id=(section.id) { h2 { (section.title) } (section.body) }
                        }
                    }
                    script type="application/json" id="data" { (PreEscaped(in_script(&data))) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        directed(&page.into_string(), |mark| format!("\\u{{{:x}}}", u32::from(mark)))
    }
}

/// JSON in which no text can end the script element.
fn in_script(data: &Value) -> String {
    let data = data.to_string();
    let data = data
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    directed(&data, |mark| format!("\\u{:04x}", u32::from(mark)))
}

/// `text` in which characters that would turn the direction of the following text are written by their number.
fn directed(text: &str, written: impl Fn(char) -> String) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match is_direction(character) {
            true => safe += &written(character),
            false => safe.push(character),
        }
    }
    safe
}

/// A table: columns of texts, then of numbers.
pub fn table<C: Render>(texts: &[&str], numbers: &[&str], rows: impl IntoIterator<Item = Vec<C>>) -> Markup {
    let class = |column: usize| (column < texts.len()).then_some("text");
    html! {
        div.scroll {
            table {
                thead { tr { @for (column, name) in texts.iter().chain(numbers).enumerate() { th class=[class(column)] { (name) } } } }
                tbody {
                    @for row in rows {
                        tr { @for (column, cell) in row.iter().enumerate() { td class=[class(column)] { (cell) } } }
                    }
                }
            }
        }
    }
}

/// A text's table as a page shows it.
pub fn shown(table: Table) -> Markup {
    let (head, texts, rows) = table.parts();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let (texts, numbers) = head.split_at(texts);
    self::table(texts, numbers, rows)
}

/// A picture with its title in a few words and an explanation in a sentence, above it.
pub fn figure(title: &str, about: &str, picture: &Markup) -> Markup {
    html! { figure.chart { figcaption { b { (title) } " " (about) } (picture) } }
}

/// A number that stands out, and its name.
pub fn tile(value: &str, meaning: &str) -> Markup {
    html! { div.tile { b { (value) } span { (meaning) } } }
}

#[cfg(test)]
mod tests;
