//! Survey of data on disk: images by part and class, or tokens.

use super::table::Table;
use crate::data::{PartSurvey, Survey, Surveyed, TextSurvey};
use crate::files::counted;
use crate::scenario::visible;

/// Classes that are listed one by one. With more classes, only the rarest and the commonest count is given.
const LISTED: usize = 20;

/// Sizes, scale and classes, in lines of at most `width` characters.
pub fn survey_text(surveyed: &Surveyed, width: usize) -> String {
    match surveyed {
        Surveyed::Images(survey) => described(survey, width),
        Surveyed::Text(survey) => described_text(survey),
    }
}

fn described_text(survey: &TextSurvey) -> String {
    let TextSurvey {
        format,
        tokens,
        distinct,
        largest,
        entropy,
    } = survey;
    let Some(largest) = largest else {
        return format!("{format}, empty\n");
    };
    format!(
        "{format}, {tokens} tokens, {distinct} different ones, the largest {largest}\n\n  by their frequencies \
         alone, {entropy:.3} nats a token (perplexity {:.1})\n",
        entropy.exp()
    )
}

fn described(survey: &Survey, width: usize) -> String {
    let Survey {
        format,
        height,
        width: columns,
        channels,
        scale,
        ..
    } = survey;
    let channels = counted(channels, "channel");
    let classes = survey.classes.len();
    let parts = parts(&survey.parts).render_within(width, &[]);
    let table = self::classes(survey).render_within(width, &["name"]);
    format!(
        "{format}, {columns}x{height} pixels of {channels}, {classes} classes, {scale} means 1.0\n\n{parts}\n{table}"
    )
}

fn parts(parts: &[PartSurvey]) -> Table {
    let list = |values: &[f64]| -> String {
        let values: Vec<String> = values.iter().map(|value| format!("{value:.4}")).collect();
        values.join(" ")
    };
    let row = |part: &PartSurvey| {
        let images = part.images.to_string();
        vec![part.part.into(), images, list(&part.mean), list(&part.std)]
    };
    Table::of(&["part"], &["images", "mean", "std"], parts.iter().map(row))
}

fn classes(survey: &Survey) -> Table {
    let parts: Vec<&str> = survey.parts.iter().map(|part| part.part).collect();
    let row = |label: String, name: &str, counts: Vec<usize>| -> Vec<String> {
        let counts = counts.iter().map(usize::to_string);
        [label, name.into()].into_iter().chain(counts).collect()
    };
    let rows: Vec<_> = if survey.classes.len() <= LISTED {
        let named = survey.classes.iter().map(|class| {
            let name = visible(class.name.as_deref().unwrap_or_default(), usize::MAX);
            row(class.label.to_string(), &name, class.images.clone())
        });
        named.collect()
    } else {
        let counts = |part: usize| survey.classes.iter().map(move |class| class.images[part]);
        let rarest = (0..parts.len()).filter_map(|part| counts(part).min());
        let commonest = (0..parts.len()).filter_map(|part| counts(part).max());
        vec![
            row("rarest".into(), "", rarest.collect()),
            row("commonest".into(), "", commonest.collect()),
        ]
    };
    let table = Table::of(&["class", "name"], &parts, rows);
    if survey.classes.iter().any(|class| class.name.is_some()) {
        table
    } else {
        table.without("name")
    }
}
