//! The terminal view: a [`ViewState`] as a person watches it. Pure drawing; who watches reads keys and records.
//!
//! Letters and signs carry everything: colours only repeat it.

mod parts;
mod envs;
mod policy;
mod texts;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::widgets::{Paragraph, Wrap};

use super::state::ViewState;
use parts::framed;

/// Smallest terminal that it is drawn in.
pub const SMALLEST: (u16, u16) = (80, 24);
/// Smallest terminal in which panels are next to each other.
const WIDE: (u16, u16) = (120, 40);

/// Panel that fills the screen where there is no room for everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panel {
    /// All envs, and the slots of the chosen one.
    #[default]
    Envs,
    /// The policy, and its last decision.
    Policy,
    /// Rewards.
    Rewards,
    /// Events.
    Log,
    /// Facts about the run.
    Info,
    /// Keys.
    Help,
}

impl Panel {
    /// In the order of Tab.
    pub const ALL: [Self; 6] = [
        Self::Envs,
        Self::Policy,
        Self::Rewards,
        Self::Log,
        Self::Info,
        Self::Help,
    ];

    /// The panel `by` places further, around.
    pub fn turned(self, by: isize) -> Self {
        let place = Self::ALL.iter().position(|panel| *panel == self).unwrap_or_default();
        let count = Self::ALL.len() as isize;
        Self::ALL[(place as isize + by).rem_euclid(count) as usize]
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Envs => "envs",
            Self::Policy => "policy",
            Self::Rewards => "rewards",
            Self::Log => "log",
            Self::Info => "run",
            Self::Help => "help",
        }
    }
}

/// The run on display, and how it is shown.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The run so far.
    pub state: &'a ViewState,
    /// Its folder's name.
    pub name: &'a str,
    /// Its state, in a few words.
    pub standing: &'a str,
    /// Message to the viewer: an error, or the effect of a key.
    pub message: Option<&'a str>,
    /// The panel that is shown where there is no room for all.
    pub panel: Panel,
    /// Index of the chosen env.
    pub env: u32,
    /// Lines of the log that are scrolled back.
    pub scroll: usize,
    /// `true` if the log is of the chosen env alone.
    pub is_filtered: bool,
    /// `true` to use colours.
    pub is_coloured: bool,
}

/// Draws the view into the whole terminal.
pub fn draw(view: &View, frame: &mut Frame) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let (width, height) = SMALLEST;
        let text = format!("{}x{} is too small: {width}x{height} or more", area.width, area.height);
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let rows = [
        Constraint::Length(3),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ];
    let [head, strip, body, foot] = Layout::vertical(rows).areas(area);
    texts::head(view, frame, head);
    texts::strip(view, frame, strip);
    texts::foot(view, frame, foot);
    let is_wide = area.width >= WIDE.0 && area.height >= WIDE.1;
    match view.panel {
        Panel::Info | Panel::Help => panel(view, view.panel, frame, body),
        _ if is_wide => all(view, frame, body),
        chosen => panel(view, chosen, frame, body),
    }
}

fn all(view: &View, frame: &mut Frame, area: Rect) {
    let [upper, lower] = Layout::vertical([Constraint::Percentage(60), Constraint::Percentage(40)]).areas(area);
    let [left, middle, right] = Layout::horizontal([
        Constraint::Percentage(38),
        Constraint::Percentage(27),
        Constraint::Percentage(35),
    ])
    .areas(lower);
    panel(view, Panel::Envs, frame, upper);
    panel(view, Panel::Policy, frame, left);
    panel(view, Panel::Rewards, frame, middle);
    panel(view, Panel::Log, frame, right);
}

fn panel(view: &View, panel: Panel, frame: &mut Frame, area: Rect) {
    let (title, lines) = match panel {
        Panel::Envs => return envs::draw(view, frame, area),
        Panel::Policy => ("policy".into(), policy::policy(view, area)),
        Panel::Rewards => ("reward".into(), policy::rewards(view, area)),
        Panel::Log if view.is_filtered => (format!("log of env {}", view.env), texts::log(view, area)),
        Panel::Log => ("log".into(), texts::log(view, area)),
        Panel::Info => ("run".into(), texts::info(view)),
        Panel::Help => ("keys".into(), texts::help()),
    };
    let mut text = Paragraph::new(lines).block(framed(&title));
    if matches!(panel, Panel::Info | Panel::Help) {
        text = text.wrap(Wrap { trim: false });
    }
    frame.render_widget(text, area);
}

#[cfg(test)]
mod tests;
