//! Curves over one axis: a picture and a table. The picture carries its numbers, so that the page's script can show those under
//! a pointer.

use maud::{Markup, html};
use serde_json::{Value, json};

use super::page::table;
use super::svg::{Frame, Range, tick_label};

/// Height of the picture.
const HEIGHT: f64 = 260.0;
/// Rows of the table. Longer curves have this many evenly spread ones.
const ROWS: usize = 60;
/// The number of colours that a page distinguishes.
pub const COLOURS: usize = 8;

/// The form in which a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// As a line.
    Line,
    /// As the area up to its `high`.
    Band,
    /// On top of those before it.
    Stacked,
}

/// A series of numbers, one for each x. NaN where there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    name: String,
    drawn: Drawn,
    /// Index among the page's colours, from 0.
    colour: usize,
    values: Vec<f64>,
    /// Upper ends of a band.
    high: Vec<f64>,
}

/// Curves over one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    id: String,
    title: String,
    /// Its subject, in a sentence.
    about: String,
    labels: (String, String),
    x: Vec<f64>,
    series: Vec<Series>,
    /// Levels to compare with, and their names.
    levels: Vec<(f64, String)>,
}

impl Chart {
    /// A chart without curves. `id` is unique on the page. `labels` are those of both axes.
    pub fn new(id: &str, labels: (&str, &str), x: Vec<f64>) -> Self {
        Self {
            id: id.into(),
            title: String::new(),
            about: String::new(),
            labels: (labels.0.into(), labels.1.into()),
            x,
            series: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// Sets its title, in a few words, and its subject, in a sentence.
    pub fn titled(mut self, title: &str, about: &str) -> Self {
        (self.title, self.about) = (title.into(), about.into());
        self
    }

    /// Adds a curve, in the next colour.
    pub fn line(self, name: &str, values: Vec<f64>) -> Self {
        self.with(name, Drawn::Line, values, Vec::new())
    }

    /// Adds an area between two curves, in the colour of the next curve.
    pub fn band(self, name: &str, low: Vec<f64>, high: Vec<f64>) -> Self {
        self.with(name, Drawn::Band, low, high)
    }

    /// Adds an area on top of the last one; negative values grow downwards.
    pub fn stacked(self, name: &str, values: Vec<f64>) -> Self {
        self.with(name, Drawn::Stacked, values, Vec::new())
    }

    fn with(mut self, name: &str, drawn: Drawn, values: Vec<f64>, high: Vec<f64>) -> Self {
        let colour = self.series.iter().filter(|series| series.drawn != Drawn::Band).count() % COLOURS;
        let name = name.into();
        self.series.push(Series {
            name,
            drawn,
            colour,
            values,
            high,
        });
        self
    }

    /// Adds a level to compare with.
    pub fn level(mut self, value: Option<f64>, name: &str) -> Self {
        self.levels.extend(value.map(|value| (value, name.to_owned())));
        self
    }

    /// Returns whether it has nothing to show.
    pub fn is_empty(&self) -> bool {
        let mut values = self.series.iter().flat_map(|series| &series.values);
        self.x.is_empty() || !values.any(|value| value.is_finite())
    }

    /// The picture, its explanation, and its table; nothing where it is empty.
    pub fn figure(&self) -> Markup {
        html! {
            @if !self.is_empty() {
                figure.chart data-chart=(self.id) {
                    figcaption { b { (self.title) } " " (self.about) }
                    ul.legend {
                        @for series in &self.series {
                            li { i class={ "swatch c" (series.colour) @if series.drawn == Drawn::Band { " of-band" } } {} (series.name) }
                        }
                    }
                    (self.picture())
                    (self.table())
                }
            }
        }
    }

    fn picture(&self) -> Markup {
        let stacks = self.stacks();
        let drawn = self.series.iter();
        let drawn = drawn.flat_map(|series| series.values.iter().chain(&series.high));
        let unstacked = self.series.iter().all(|series| series.drawn != Drawn::Stacked);
        let levels = self.levels.iter().map(|(level, _)| *level);
        let y = match unstacked {
            true => Range::of(drawn.copied().chain(levels)),
            false => Range::of(stacks.iter().flatten().flat_map(|&(from, to)| [from, to]).chain(levels)),
        };
        let step = self.step();
        let around = if unstacked { 0.0 } else { step / 2.0 };
        let x = Range::of(self.x.iter().flat_map(|x| [x - around, x + around]));
        let mut frame = Frame::new(x, y.padded(0.04), HEIGHT, (&self.labels.0, &self.labels.1));
        for (level, name) in &self.levels {
            frame.level(*level, name);
        }
        frame.places(&self.labels.0, &shortened(&self.x));
        for (series, stack) in self.series.iter().zip(&stacks) {
            let class = format!("c{}", series.colour);
            frame.begin_series(&shortened(&series.values), &shortened(&series.high));
            match series.drawn {
                Drawn::Band => {
                    let ends = self.x.iter().zip(series.values.iter().zip(&series.high));
                    frame.band(ends.map(|(&x, (&low, &high))| (x, low, high)), &class);
                }
                Drawn::Line => {
                    frame.line(self.x.iter().copied().zip(series.values.iter().copied()), &class);
                    if self.x.len() == 1 {
                        frame.point((self.x[0], series.values[0]), &class, &series.name);
                    }
                }
                Drawn::Stacked => {
                    for ((&x, &ends), value) in self.x.iter().zip(stack).zip(&series.values) {
                        let title = format!("{}: {}", series.name, tick_label(*value));
                        frame.bar(x, 0.9 * step, ends, &class, &title);
                    }
                }
            }
            frame.end_series();
        }
        frame.finish(&self.title)
    }

    /// The usual distance of two x.
    fn step(&self) -> f64 {
        let distances = self.x.windows(2).map(|pair| pair[1] - pair[0]);
        let risen = distances.filter(|distance| *distance > 0.0);
        let least = risen.fold(f64::INFINITY, f64::min);
        if least.is_finite() { least } else { 1.0 }
    }

    /// The ends of the bars of stacked series, by series and x.
    fn stacks(&self) -> Vec<Vec<(f64, f64)>> {
        let mut ends = vec![(0.0, 0.0); self.x.len()];
        let stacks = self.series.iter().map(|series| {
            if series.drawn != Drawn::Stacked {
                return Vec::new();
            }
            let bars = ends.iter_mut().zip(&series.values).map(|((below, above), &value)| {
                let value = if value.is_finite() { value } else { 0.0 };
                let end = if value < 0.0 { below } else { above };
                let from = *end;
                *end += value;
                (from, *end)
            });
            bars.collect()
        });
        stacks.collect()
    }

    fn table(&self) -> Markup {
        let rows = ROWS.min(self.x.len());
        let places = (0..rows).map(|row| row * (self.x.len() - 1) / (rows - 1).max(1));
        let names = self.series.iter().map(|series| series.name.as_str());
        let columns: Vec<&str> = std::iter::once(self.labels.0.as_str()).chain(names).collect();
        let cells = places.map(|place| -> Vec<String> {
            let entries = self.series.iter().map(|series| entry(series, place));
            std::iter::once(tick_label(self.x[place])).chain(entries).collect()
        });
        html! {
            details {
                summary { "numbers" }
                (table(&[], &columns, cells))
                @if rows < self.x.len() { p.note { (rows) " of " (self.x.len()) " rows" } }
            }
        }
    }
}

fn entry(series: &Series, place: usize) -> String {
    let show = |values: &[f64]| match values.get(place) {
        Some(value) if value.is_finite() => tick_label(*value),
        _ => "—".into(),
    };
    match series.drawn {
        Drawn::Band => format!("{} to {}", show(&series.values), show(&series.high)),
        Drawn::Line | Drawn::Stacked => show(&series.values),
    }
}

/// The values for the script: with as many digits as a picture can show, `null` where there is none.
pub fn shortened(values: &[f64]) -> Value {
    let short = |value: &f64| match *value as f32 {
        finite if finite.is_finite() => format!("{finite:.5e}")
            .parse::<f64>()
            .map_or(Value::Null, |value| json!(value)),
        _ => Value::Null,
    };
    values.iter().map(short).collect()
}

#[cfg(test)]
mod tests;
