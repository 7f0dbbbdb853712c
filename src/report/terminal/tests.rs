use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::*;
use crate::growth::SlotId;
use crate::telemetry::examples::{context_at, events, germinated, run_finished};
use crate::telemetry::{Anomaly, AnomalyState, Event, Num, Payload, Severity};

/// The examples, twice over: two rounds, the second still in play, with envs 1 and 2.
fn state() -> ViewState {
    let mut state = ViewState::default();
    let of_round = |round: u32, env: u32| {
        events().into_iter().map(move |mut event| {
            event.round = event.round.map(|_| round);
            if event.env.is_some() {
                event.env = Some(env);
                event.episode = Some(round * 4 + env);
                let episode = format!("e{}.", round * 4 + env);
                event.seed_id = event.seed_id.as_ref().map(|id| id.replace("e9.", &episode));
            }
            event
        })
    };
    let is_over = |event: &Event| matches!(event.payload, Payload::RunFinished(_));
    let is_end = |event: &Event| matches!(event.payload, Payload::RoundFinished(_) | Payload::EpisodeFinished(_));
    let mut history: Vec<Event> = of_round(0, 1).filter(|event| !is_over(event)).collect();
    history.extend(of_round(1, 1).filter(|event| event.env.is_some() && !is_end(event)));
    history.extend(of_round(1, 2).filter(|event| event.env.is_some() && !is_end(event)));
    let planted = Event::seed(context_at(1, 1, 6), SlotId::new(0, 1), "e5.r0c1.1", germinated());
    history.push(planted);
    let found = Anomaly {
        rule: "dead_host".into(),
        state: AnomalyState::Onset,
        value: Num(0.0),
        threshold: Num(0.0),
        head: None,
    };
    let found = Event::env(context_at(2, 1, 7), found).severity(Severity::Warning);
    history.push(found.message("the validation accuracy does not change at all: lower the learning rate"));
    for (seq, mut event) in history.into_iter().enumerate() {
        event.seq = seq as u64;
        state.apply(&event);
    }
    state
}

fn view(state: &ViewState) -> View<'_> {
    View {
        state,
        name: "20260131-1200-quickstart-9f7b",
        standing: "running",
        message: None,
        panel: Panel::Envs,
        env: 1,
        scroll: 0,
        is_filtered: false,
        is_coloured: false,
    }
}

fn drawn(view: &View, (width, height): (u16, u16)) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(view, frame)).expect("it is drawn");
    terminal.backend().clone()
}

#[test]
fn every_panel_fits_the_smallest_terminal() {
    let state = state();
    for panel in Panel::ALL {
        let view = View { panel, ..view(&state) };
        let name = format!("{panel:?}_80x24").to_lowercase();
        insta::assert_snapshot!(name, drawn(&view, (80, 24)));
    }
}

#[test]
fn panels_stand_next_to_each_other_where_there_is_room() {
    let state = state();
    for (width, height) in [(120, 40), (200, 60)] {
        let all = drawn(&view(&state), (width, height));
        insta::assert_snapshot!(format!("all_{width}x{height}"), all);
    }
}

#[test]
fn a_run_that_has_not_begun_or_is_over_and_a_terminal_that_is_too_small_are_said() {
    let mut over = self::state();
    over.apply(&Event::run(run_finished()));
    let state = ViewState::default();
    let text = |size| drawn(&view(&state), size).to_string();

    assert!(text((80, 24)).contains("all clear"));
    let over = drawn(&view(&over), (80, 24)).to_string();
    assert!(over.contains("no anomaly now; 1 before; sick gradients (!) in 1 env"));
    assert!(text((79, 24)).contains("79x24 is too small: 80x24 or more"));
    assert!(text((3, 1)).len() < 60);
}

#[test]
fn without_colours_none_is_used_and_with_them_the_text_is_the_same() {
    let state = state();
    let [plain, coloured] = [false, true].map(|is_coloured| {
        let view = View {
            is_coloured,
            ..view(&state)
        };
        drawn(&view, (200, 60))
    });

    let has_colours = |terminal: &TestBackend| {
        let mut cells = terminal.buffer().content.iter();
        cells.any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(!has_colours(&plain) && has_colours(&coloured));
    assert_eq!(plain.to_string(), coloured.to_string());
}

#[test]
fn names_cannot_steer_the_terminal() {
    let mut state = state();
    let run = state.live.started.as_mut().expect("it has begun");
    run.task = "\u{1b}[2Jtask\u{202e}".into();
    let view = View {
        panel: Panel::Info,
        name: "\u{1b}]0;name\u{7}",
        ..view(&state)
    };

    let text = drawn(&view, (120, 40)).to_string();

    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text}");
}

#[test]
fn the_log_can_be_of_the_chosen_env_alone() {
    let state = state();
    let text = |is_filtered| {
        let view = View {
            panel: Panel::Log,
            is_filtered,
            env: 2,
            ..view(&state)
        };
        drawn(&view, (100, 39)).to_string()
    };

    assert!(text(false).contains("env 1"));
    assert!(text(true).contains("log of env 2") && !text(true).contains("env 1 "));
}

#[test]
fn a_curve_shows_the_newest_values_from_the_least_to_the_largest() {
    assert_eq!(parts::curve(&[9.0, 0.0, f64::NAN, 7.0, 3.5], 4), "▁ █▅");
    assert_eq!(parts::curve(&[2.0, 2.0], 9), "▄▄");
    assert_eq!(parts::curve(&[], 3), "");
}
