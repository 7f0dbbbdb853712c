//! All envs in a table, and below it the slots of the chosen one with the course of its seeds.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

use super::View;
use super::parts::{bar, curve, cut, framed, letter, number, of_stage};
use crate::growth::{SeedStage, SlotId};
use crate::report::state::EpisodeTrace;

/// Smallest width of a slot's cell, and of its content next to the name.
const SLOT: u16 = 14;
const AFTER_NAME: u16 = 8;
const COURSE: u16 = 9;

pub(super) fn draw(view: &View, frame: &mut Frame, area: Rect) {
    let slots = view.state.live.started.as_ref().map_or(&[][..], |run| &run.slots);
    let traces = view.state.episodes.current();
    let below = (slots.len() as u16 + 3).min(area.height / 2);
    let [upper, lower] = Layout::vertical([Constraint::Min(3), Constraint::Length(below)]).areas(area);
    table(view, &traces, slots, frame, upper);
    if let Some(trace) = traces.iter().find(|trace| trace.at.env == view.env) {
        chosen(view, trace, slots, frame, lower);
    } else {
        frame.render_widget(framed(&format!("no env {}", view.env)), lower);
    }
}

fn table(view: &View, traces: &[&EpisodeTrace], slots: &[SlotId], frame: &mut Frame, area: Rect) {
    let host = view.state.live.started.as_ref().map_or(0, |run| run.host_params).max(1);
    // As many slots as there is room for, then as much of the names.
    let room = area.width.saturating_sub(46);
    let shown = &slots[..slots.len().min(usize::from(room / (SLOT + 1)))];
    let names = traces.iter().flat_map(|trace| &trace.seeds);
    let longest = names.map(|seed| seed.planted.blueprint.chars().count() as u16).max();
    let whole = longest.unwrap_or_default().saturating_add(AFTER_NAME);
    let most = (room / shown.len().max(1) as u16).saturating_sub(1);
    let slot_width = whole.min(most).max(SLOT);
    let rows = traces.iter().map(|trace| {
        let last = trace.steps.last();
        let accuracies: Vec<f64> = trace.steps.iter().map(|step| f64::from(step.accuracy)).collect();
        let is_chosen = trace.at.env == view.env;
        let mut cells = vec![
            Cell::from(format!("{}{}", if is_chosen { '>' } else { ' ' }, trace.at.env)),
            Cell::from(number(last.map(|step| f64::from(step.accuracy)), 1)),
            Cell::from(curve(&accuracies, COURSE.into())),
            Cell::from(number(last.map(|step| f64::from(step.loss)), 2)),
            Cell::from(number(last.map(|step| step.params as f64 / host as f64), 2) + "x"),
        ];
        cells.extend(shown.iter().map(|slot| slot_cell(view, trace, *slot, slot_width)));
        let decision = last.and_then(|step| step.decision.as_ref());
        cells.push(Cell::from(decision.map_or_else(String::new, |decision| {
            let refused = if decision.blocked.is_some() { "refused: " } else { "" };
            cut(&format!("{refused}{}", decision.words()), 60)
        })));
        let weight = if is_chosen { Modifier::BOLD } else { Modifier::empty() };
        Row::new(cells).style(Style::new().add_modifier(weight))
    });
    let mut widths = vec![4, 5, COURSE, 5, 6];
    widths.extend(shown.iter().map(|_| slot_width));
    let mut widths: Vec<Constraint> = widths.into_iter().map(Constraint::Length).collect();
    widths.push(Constraint::Min(8));
    let names = ["env", "acc %", "course", "loss", "size"].map(str::to_owned);
    let names = names.into_iter().chain(shown.iter().map(SlotId::to_string));
    let head =
        Row::new(names.chain(["last decision".to_owned()])).style(Style::new().add_modifier(Modifier::UNDERLINED));
    let hidden = match slots.len() - shown.len() {
        0 => String::new(),
        more => format!(", {more} more slots"),
    };
    let title = format!("envs{hidden}");
    let chosen = traces.iter().position(|trace| trace.at.env == view.env);
    let mut place = TableState::default().with_selected(chosen.or(Some(0)));
    let table = Table::new(rows, widths).header(head).block(framed(&title));
    frame.render_stateful_widget(table, area, &mut place);
}

/// `conv_light B  45%`
fn slot_cell(view: &View, trace: &EpisodeTrace, slot: SlotId, width: u16) -> Cell<'static> {
    let Some(seed) = trace.seed_in(slot) else {
        return Cell::from("·");
    };
    let last = trace.steps.last();
    let point = last.and_then(|step| step.seed_in(slot));
    let stage = point.map_or_else(|| seed.last_stage(), |point| point.stage);
    let alpha = point.map_or_else(String::new, |point| format!("{:>4.0}%", 100.0 * point.alpha));
    let sick = point.filter(|point| point.is_unhealthy).map_or("", |_| "!");
    let name = cut(&seed.planted.blueprint, (width - AFTER_NAME).into());
    let text = format!("{name} {}{alpha}{sick}", letter(stage));
    Cell::from(text).style(of_stage(view, stage))
}

fn chosen(view: &View, trace: &EpisodeTrace, slots: &[SlotId], frame: &mut Frame, area: Rect) {
    let last = trace.steps.last();
    let lane = usize::from(area.width).saturating_sub(58);
    let lines = slots.iter().map(|slot| {
        let mut spans = vec![Span::from(format!("{:<6}", slot.to_string()))];
        let point = last.and_then(|step| step.seed_in(*slot));
        match trace.seed_in(*slot) {
            None => spans.push(Span::from(format!("{:<49}", "empty"))),
            Some(seed) => {
                let stage = point.map_or_else(|| seed.last_stage(), |point| point.stage);
                let alpha = bar(point.map_or(0.0, |point| f64::from(point.alpha)), 5);
                let age = trace.at.step.saturating_sub(seed.at.step);
                let worth = seed.worth.contribution.map_or_else(String::new, |worth| {
                    format!("{:+.1} ± {}", worth.points, number(worth.standard_error, 1))
                });
                let name = cut(&seed.planted.blueprint, 13);
                let stage_name = stage.name().to_lowercase();
                spans.push(Span::from(format!("{name:<14}")));
                spans.push(Span::styled(format!("{stage_name:<11}"), of_stage(view, stage)));
                spans.push(Span::from(format!("{age:>3} {alpha} {worth:<13} ")));
            }
        }
        spans.extend(course(view, trace, *slot, lane));
        Line::from(spans)
    });
    let title = format!(
        "env {}: blueprint, stage, age in steps, amplitude, contribution in points, course to step {}",
        trace.at.env, trace.at.step
    );
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(framed(&title)), area);
}

/// The stages of a slot over the steps of the episode, a letter for each column.
fn course(view: &View, trace: &EpisodeTrace, slot: SlotId, width: usize) -> Vec<Span<'static>> {
    let steps = trace.steps.len();
    let columns = width.min(steps);
    let spans = (0..columns).map(|column| {
        let seed = trace.steps[column * steps / columns].seed_in(slot);
        let stage = seed.map_or(SeedStage::Dormant, |seed| seed.stage);
        Span::styled(letter(stage).to_string(), of_stage(view, stage))
    });
    spans.collect()
}
