//! Parts of panels: frames, short numbers, bars and curves of one line.

use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::Block;

use super::View;
use crate::growth::SeedStage;
use crate::report::words;
use crate::scenario::printable;
use crate::telemetry::Severity;

const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A frame with a title.
pub fn framed(title: &str) -> Block<'static> {
    Block::bordered().title(format!(" {title} "))
}

/// A number, or that there is none.
pub fn number(value: Option<f64>, decimals: usize) -> String {
    words::number(value.filter(|value| value.is_finite()), decimals)
}

/// A name of somebody else's, in at most `width` characters.
pub fn cut(name: &str, width: usize) -> String {
    let name = printable(name, &[]).replace('\n', " ");
    match name.chars().count() > width {
        true => name.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => name,
    }
}

/// The newest `width` values as a curve of one line, from the least to the largest; a blank where a value is missing.
pub fn curve(values: &[f64], width: usize) -> String {
    let shown = &values[values.len().saturating_sub(width)..];
    let finite = || shown.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (
        finite().fold(f64::INFINITY, f64::min),
        finite().fold(f64::NEG_INFINITY, f64::max),
    );
    let height = |value: &f64| match () {
        () if !value.is_finite() => ' ',
        () if high - low < 1e-12 => HEIGHTS[3],
        () => HEIGHTS[((value - low) / (high - low) * 7.0).round() as usize],
    };
    shown.iter().map(height).collect()
}

/// A share, 0 to 1, as a bar of `width` characters.
pub fn bar(share: f64, width: usize) -> String {
    let full = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    "█".repeat(full) + &"░".repeat(width - full)
}

/// The letter of a stage.
pub const fn letter(stage: SeedStage) -> char {
    match stage {
        SeedStage::Germinated => 'G',
        SeedStage::Training => 'T',
        SeedStage::Blending => 'B',
        SeedStage::Holding => 'H',
        SeedStage::Committed => 'C',
        _ => '·',
    }
}

/// The colour of a stage, where there are colours.
pub fn of_stage(view: &View, stage: SeedStage) -> Style {
    let colour = match stage {
        SeedStage::Germinated | SeedStage::Training => Color::LightBlue,
        SeedStage::Blending => Color::Yellow,
        SeedStage::Holding => Color::Magenta,
        SeedStage::Committed => Color::Green,
        _ => return Style::new(),
    };
    coloured(view, colour)
}

/// A colour, where there are colours.
pub fn coloured(view: &View, colour: Color) -> Style {
    match view.is_coloured {
        true => Style::new().fg(colour),
        false => Style::new(),
    }
}

/// The style of an event by its severity.
pub fn of_severity(view: &View, severity: Severity) -> Style {
    match severity {
        Severity::Debug | Severity::Info => Style::new(),
        Severity::Warning => coloured(view, Color::Yellow),
        Severity::Error | Severity::Critical => coloured(view, Color::LightRed).add_modifier(Modifier::BOLD),
    }
}
