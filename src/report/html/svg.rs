//! Pictures of numbers: a frame with axes, and its drawing.

use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

/// Width of a picture, in its own units. It is shown as wide as its column.
pub const WIDTH: f64 = 720.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 34.0;
/// Marks on an axis, about.
const TICKS: f64 = 6.0;

/// Range from the smallest to the largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Smallest value.
    pub low: f64,
    /// Largest value, above `low`.
    pub high: f64,
}

impl Range {
    /// The range of all finite values, a little wider where they are all equal; from 0 to 1 without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        match () {
            () if low > high => Self { low: 0.0, high: 1.0 },
            () if high - low > 1e-12 * high.abs().max(1.0) => Self { low, high },
            () => {
                let around = 0.5 * low.abs().max(1.0);
                Self {
                    low: low - around,
                    high: high + around,
                }
            }
        }
    }

    /// The range with room above and below, for marks at its ends.
    pub fn padded(self, share: f64) -> Self {
        let room = share * (self.high - self.low);
        Self {
            low: self.low - room,
            high: self.high + room,
        }
    }

    /// Round values inside, few enough to be read.
    pub fn ticks(self) -> Vec<f64> {
        let rough = (self.high - self.low) / TICKS;
        let power = 10_f64.powf(rough.log10().floor());
        let mut steps = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power);
        let step = steps.find(|step| *step >= rough).unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last.min(first.saturating_add(20)))
            .map(|tick| tick as f64 * step)
            .collect()
    }
}

/// A number as an axis shows it.
pub fn tick_label(value: f64) -> String {
    let magnitude = value.abs();
    match () {
        () if value == 0.0 => "0".into(),
        () if magnitude >= 1e6 => format!("{:.3}M", value / 1e6).replace(".000", ""),
        () if magnitude >= 1e4 => format!("{}k", trimmed(value / 1e3)),
        () if magnitude < 1e-3 => format!("{value:.0e}"),
        () => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A picture under construction: coordinates are those of the data.
pub struct Frame {
    x: Range,
    y: Range,
    height: f64,
    body: String,
}

impl Frame {
    /// An empty picture with axes.
    pub fn new(x: Range, y: Range, height: f64, labels: (&str, &str)) -> Self {
        let body = String::new();
        let mut frame = Self { x, y, height, body };
        frame.axes(labels);
        frame
    }

    /// The place of `x`, in units of the picture.
    pub fn across(&self, x: f64) -> f64 {
        LEFT + (x - self.x.low) / (self.x.high - self.x.low) * (WIDTH - LEFT - RIGHT)
    }

    /// The place of `y`, in units of the picture.
    pub fn down(&self, y: f64) -> f64 {
        TOP + (self.y.high - y) / (self.y.high - self.y.low) * (self.height - TOP - BOTTOM)
    }

    fn axes(&mut self, (x_label, y_label): (&str, &str)) {
        let (left, right, top, bottom) = (LEFT, WIDTH - RIGHT, TOP, self.height - BOTTOM);
        // Without a label the places have their own names, or none.
        let ticks = |range: Range, label: &str| if label.is_empty() { Vec::new() } else { range.ticks() };
        for y in ticks(self.y, y_label) {
            let at = self.down(y);
            _ = write!(
                self.body,
                r#"<line class="grid" x1="{left}" x2="{right}" y1="{at:.1}" y2="{at:.1}"/>"#
            );
            text(&mut self.body, "tick", (left - 6.0, at + 4.0), "end", &tick_label(y));
        }
        let is_counted = ["round", "step"].contains(&x_label);
        let shown = ticks(self.x, x_label)
            .into_iter()
            .filter(|x| !is_counted || x.fract() == 0.0);
        for x in shown {
            let at = self.across(x);
            text(&mut self.body, "tick", (at, bottom + 15.0), "middle", &tick_label(x));
        }
        let middle = ((left + right) / 2.0, self.height - 4.0);
        text(&mut self.body, "label", middle, "middle", x_label);
        let middle = (top + bottom) / 2.0;
        _ = write!(
            self.body,
            r#"<path class="axis" d="M{left} {top}V{bottom}H{right}"/><text class="label" x="12" y="{middle:.1}" transform="rotate(-90 12 {middle:.1})" text-anchor="middle">{}</text>"#,
            escaped(y_label)
        );
    }

    /// The places of a series' values: the page's script reads them, and moves the line, which is hidden without it.
    pub fn places(&mut self, label: &str, x: &Value) {
        let Range { low, high } = self.x;
        let (width, bottom) = (WIDTH - LEFT - RIGHT, self.height - BOTTOM);
        _ = write!(
            self.body,
            r#"<line class="reading" x1="{LEFT}" x2="{LEFT}" y1="{TOP}" y2="{bottom}" data-label="{}" data-x="{x}" data-low="{low}" data-high="{high}" data-left="{LEFT}" data-width="{width}"/>"#,
            escaped(label)
        );
    }

    /// Begins a series, which carries its values and, of a band, their upper ends; everything drawn from here on is part of it.
    pub fn begin_series(&mut self, values: &Value, high: &Value) {
        _ = write!(
            self.body,
            r#"<g class="series" data-values="{values}" data-high="{high}">"#
        );
    }

    /// Ends the series.
    pub fn end_series(&mut self) {
        self.body.push_str("</g>");
    }

    /// A line through points; a gap where a value is missing.
    pub fn line(&mut self, points: impl Iterator<Item = (f64, f64)>, class: &str) {
        let mut path = String::new();
        let mut is_open = false;
        for (x, y) in points {
            if y.is_finite() {
                let command = if is_open { 'L' } else { 'M' };
                _ = write!(path, "{command}{:.1} {:.1}", self.across(x), self.down(y));
            }
            is_open = y.is_finite();
        }
        _ = write!(self.body, r#"<path class="line {class}" d="{path}"/>"#);
    }

    /// The area between two lines, where both are there.
    pub fn band(&mut self, points: impl Iterator<Item = (f64, f64, f64)>, class: &str) {
        let points: Vec<_> = points
            .filter(|(_, low, high)| low.is_finite() && high.is_finite())
            .collect();
        let upper = points.iter().map(|&(x, _, high)| (x, high));
        let lower = points.iter().rev().map(|&(x, low, _)| (x, low));
        let mut path = String::new();
        for (index, (x, y)) in upper.chain(lower).enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            _ = write!(path, "{command}{:.1} {:.1}", self.across(x), self.down(y));
        }
        _ = write!(self.body, r#"<path class="band {class}" d="{path}Z"/>"#);
    }

    /// A mark at a point, with a title that a pointer shows.
    pub fn point(&mut self, (x, y): (f64, f64), class: &str, title: &str) {
        if x.is_finite() && y.is_finite() {
            _ = write!(
                self.body,
                r#"<circle class="point {class}" cx="{:.1}" cy="{:.1}" r="3.5"><title>{}</title></circle>"#,
                self.across(x),
                self.down(y),
                escaped(title)
            );
        }
    }

    /// A bar between two heights, `width` wide in units of x, around `x`.
    pub fn bar(&mut self, x: f64, width: f64, (from, to): (f64, f64), class: &str, title: &str) {
        if !from.is_finite() || !to.is_finite() {
            return;
        }
        let (left, right) = (self.across(x - width / 2.0), self.across(x + width / 2.0));
        let (top, bottom) = (self.down(from.max(to)), self.down(from.min(to)));
        _ = write!(
            self.body,
            r#"<rect class="bar {class}" x="{left:.1}" y="{top:.1}" width="{:.1}" height="{:.1}"><title>{}</title></rect>"#,
            right - left,
            (bottom - top).max(0.5),
            escaped(title)
        );
    }

    /// Name of a bar, below the axis in a line for each word, and its value above the bar.
    pub fn bar_name(&mut self, x: f64, top: f64, name: &str, value: &str) {
        let (at, above, below) = (self.across(x), self.down(top) - 4.0, self.height - BOTTOM + 13.0);
        text(&mut self.body, "tick", (at, above), "middle", value);
        for (line, word) in name.split(' ').enumerate() {
            let place = (at, below + 15.0 * line as f64);
            text(&mut self.body, "tick strong", place, "middle", word);
        }
    }

    /// Name of a row, above it at the left end.
    pub fn row_name(&mut self, y: f64, name: &str) {
        let (left, above) = (LEFT + 6.0, self.down(y) - 8.0);
        text(&mut self.body, "tick", (left, above), "start", name);
    }

    /// A level with a name.
    pub fn level(&mut self, y: f64, name: &str) {
        if y.is_finite() && y >= self.y.low && y <= self.y.high {
            let at = self.down(y);
            let right = WIDTH - RIGHT;
            _ = write!(
                self.body,
                r#"<line class="level" x1="{LEFT}" x2="{right}" y1="{at:.1}" y2="{at:.1}"/>"#
            );
            text(&mut self.body, "tick", (right - 4.0, at - 4.0), "end", name);
        }
    }

    /// The picture; `title` is what a screen reader says.
    pub fn finish(self, title: &str) -> Markup {
        html! { div.plot { (picture(self.height, title, &self.body)) } }
    }
}

/// Adds a text whose `start`, `middle` or `end` is at a place.
pub fn text(body: &mut String, class: &str, (x, y): (f64, f64), anchor: &str, words: &str) {
    let words = escaped(words);
    _ = write!(
        body,
        r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{words}</text>"#
    );
}

/// A picture of the usual width from its content.
pub fn picture(height: f64, title: &str, body: &str) -> Markup {
    PreEscaped(format!(
        r#"<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{}">{body}</svg>"#,
        escaped(title)
    ))
}

/// A text that may stand in HTML, also in an attribute.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Characters that steer a terminal or turn the direction of the following text are shown as escapes.
            other if other.is_control() || is_direction(other) => {
                _ = write!(safe, "\\u{{{:x}}}", u32::from(other));
            }
            other => safe.push(other),
        }
    }
    safe
}

/// Returns whether it turns the direction of the following text.
pub const fn is_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests;
