//! Pictures that several pages have: intervals below each other, and accuracy against cost.

use maud::{Markup, html};

use super::chart::COLOURS;
use super::page::figure;
use super::svg::{Frame, Range};
use crate::compare::{Estimate, Interval};

/// Height of a row with an interval.
const ROW: f64 = 34.0;

/// A difference, and its interval.
pub struct Spread {
    /// The name of the difference, and its verdict.
    pub name: String,
    /// The difference, with its interval.
    pub estimate: Estimate,
}

/// Differences as intervals around 0, in the order of `spreads`. Empty without any.
pub fn forest(title: &str, about: &str, label: &str, spreads: impl IntoIterator<Item = Spread>) -> Markup {
    let spreads: Vec<Spread> = spreads.into_iter().collect();
    if spreads.is_empty() {
        return html! {};
    }
    let estimates = spreads.iter().map(|spread| spread.estimate);
    let ends = estimates.clone().filter_map(|estimate| estimate.interval);
    let ends = ends.flat_map(|interval| [interval.low, interval.high]);
    let x = Range::of(ends.chain(estimates.map(|estimate| estimate.value)).chain([0.0])).padded(0.05);
    let count = spreads.len() as f64;
    let y = Range {
        low: 0.5,
        high: count + 0.5,
    };
    let mut frame = Frame::new(x, y, 50.0 + ROW * count, (label, ""));
    frame.line([(0.0, 0.5), (0.0, count + 0.5)].into_iter(), "faint");
    for (place, Spread { name, estimate }) in spreads.iter().enumerate() {
        let row = count - place as f64 - 0.2;
        let value = estimate.value;
        if let Some(Interval { low, high }) = estimate.interval {
            frame.line([(low, row), (high, row)].into_iter(), "c0");
        }
        frame.point((value, row), "c0", &format!("{name}: {value:+.2}"));
        frame.row_name(row, name);
    }
    let about = format!("{about} An interval that touches 0 may be luck.");
    figure(title, &about, &frame.finish(title))
}

/// Something that reached an accuracy at a cost.
pub struct Point<'a> {
    /// Group, which determines the colour.
    pub group: &'a str,
    /// Its name.
    pub name: String,
    /// Cost in the unit of the label.
    pub cost: f64,
    /// Accuracy in percent.
    pub accuracy: f64,
}

/// Accuracy against cost, coloured by group in the order of `groups`, with the front. Empty without points.
pub fn scatter<'a>(label: &str, about: &str, groups: &[&str], points: impl IntoIterator<Item = Point<'a>>) -> Markup {
    let points: Vec<Point> = points.into_iter().collect();
    if points.is_empty() {
        return html! {};
    }
    let dots = points.iter().map(|point| {
        let colour = groups.iter().position(|known| *known == point.group);
        Dot {
            at: (point.cost, point.accuracy),
            class: format!("c{}", colour.unwrap_or_default() % COLOURS),
            title: format!("{}: {:.1} % at {:.2}", point.name, point.accuracy, point.cost),
        }
    });
    let best = front(points.iter().map(|point| (point.cost, point.accuracy)).collect());
    let picture = html! {
        ul.legend { @for (place, group) in groups.iter().enumerate() { li { i class={ "swatch c" (place % COLOURS) } {} (group) } } }
        (scattered((label, "accuracy, %"), &dots.collect::<Vec<_>>(), &best))
    };
    let about = format!("{about} Line: those that no other beats in both.");
    figure(&format!("Accuracy against {label}."), &about, &picture)
}

/// A dot of a picture.
pub struct Dot {
    /// Place of the dot.
    pub at: (f64, f64),
    /// Form in which it is drawn.
    pub class: String,
    /// Text under the pointer.
    pub title: String,
}

/// Dots, and a line through some places.
pub fn scattered(labels: (&str, &str), dots: &[Dot], line: &[(f64, f64)]) -> Markup {
    let places = || dots.iter().map(|dot| dot.at).chain(line.iter().copied());
    let x = Range::of(places().map(|place| place.0)).padded(0.05);
    let y = Range::of(places().map(|place| place.1)).padded(0.08);
    let mut frame = Frame::new(x, y, 260.0, labels);
    frame.line(line.iter().copied(), "faint");
    for Dot { at, class, title } in dots {
        frame.point(*at, class, title);
    }
    frame.finish(&format!("{} against {}", labels.1, labels.0))
}

/// The points that no other beats in both, by rising cost.
fn front(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let mut best = f64::NEG_INFINITY;
    points.retain(|&(_, accuracy)| {
        let is_ahead = accuracy > best;
        best = best.max(accuracy);
        is_ahead
    });
    points
}

#[cfg(test)]
mod tests;
