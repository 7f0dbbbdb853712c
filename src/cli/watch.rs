//! `watch`: a run in the terminal, live or as a replay, from its record; and the same view for a run that this process plays.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::prelude::CrosstermBackend;

use super::console::Console;
use super::named::{Named, held_run};
use super::options::ProgressStyle;
use super::rejection::Rejection;
use super::terminal::Terminal as Lines;
use super::{Context, Input, Outcome, Output, WatchOptions};
use crate::engine::Engine;
use crate::record::{ListedState, RunEntry};
use crate::report::{Feed, Panel, View, draw};
use crate::run::{Command, StopRequest, StopSignal, send_command};
use crate::telemetry::{Event, RunFinished, RunInfo, RunState, Sink, SinkError, Sinks};
use crate::torch::is_catching;

/// In raw mode it is a character like others.
const CTRL_C: char = '\x03';
/// Sequences that terminals send for keys without a character, and the characters that stand for them here.
const KEYS: [(&str, &str); 3] = [("\x1b[A", "↑"), ("\x1b[B", "↓"), ("\x1b[Z", "↹")];
/// Wait for a key before the record is read again.
const TICK: Duration = Duration::from_millis(100);
/// The interval at which the state of the run is checked.
const ASK: Duration = Duration::from_secs(2);
/// Two digits within this time are one number.
const DIGITS: Duration = Duration::from_millis(500);
/// Events that are read before the screen is drawn again.
const MOST: usize = 20_000;
/// Events of a replay between two looks.
const SPEEDS: [usize; 6] = [1, 4, 16, 64, 256, 1024];

/// Shows a run until the reader leaves.
pub fn watch(options: &WatchOptions, context: &Context) -> Result<Outcome, Rejection> {
    let place = match Named::find(&options.run, options.out.as_deref())? {
        Named::Sweep(..) => {
            return Err("a sweep has no single run to watch: name one of its trials".into());
        }
        Named::Run(place) => held_run(place)?,
    };
    if !has_terminal(context) {
        let name = options.run.display();
        return Err(format!("watch needs a terminal; simic-engine show {name} prints the state of the run").into());
    }
    let stop = context.heeded_stop()?;
    let watcher = Watcher::new(&place, context.printer.is_coloured(), None);
    let (err, input) = (&context.surroundings.err, context.surroundings.input.clone());
    play(watcher, err, input, || stop.is_requested()).map_err(Rejection::failed)?;
    Ok(Outcome::Done)
}

/// Returns whether there is a terminal to draw on and to read keys from.
fn has_terminal(context: &Context) -> bool {
    context.surroundings.err.terminal().is_some() && context.surroundings.input.is_terminal()
}

/// Shows the run that `engine` plays, in the way that is asked for.
pub fn show_while_playing(engine: &mut Engine, progress: ProgressStyle, context: &Context) {
    let world = engine.world_mut();
    let stop = world.get_resource::<StopSignal>().cloned().unwrap_or_default();
    let Some(mut sinks) = world.get_resource_mut::<Sinks>() else {
        return;
    };
    match progress {
        _ if context.global.quiet => {}
        ProgressStyle::None => {}
        ProgressStyle::Tui if has_terminal(context) => sinks.add(OwnView {
            stop,
            is_coloured: context.printer.is_coloured(),
            lines: context.terminal.clone(),
            input: context.surroundings.input.clone(),
            is_over: Arc::default(),
            drawing: None,
        }),
        style => sinks.add(Console::new(style, context.global.verbose > 0, &context.terminal)),
    }
}

/// Draws on a thread of its own from the record, like any other watcher.
struct OwnView {
    stop: StopSignal,
    is_coloured: bool,
    /// Lines of the log, which would tear the screen.
    lines: Lines,
    input: Input,
    is_over: Arc<AtomicBool>,
    drawing: Option<JoinHandle<io::Result<()>>>,
}

impl Sink for OwnView {
    fn name(&self) -> &str {
        "view"
    }

    fn start(&mut self, run: &RunInfo) -> Result<(), SinkError> {
        let watcher = Watcher::new(&run.directory, self.is_coloured, Some(self.stop.clone()));
        let (is_over, err, input) = (self.is_over.clone(), self.lines.stream().clone(), self.input.clone());
        self.lines.hold();
        let drawing = std::thread::Builder::new().name("view".into());
        self.drawing = Some(drawing.spawn(move || play(watcher, &err, input, || is_over.load(Ordering::Relaxed)))?);
        Ok(())
    }

    fn write(&mut self, _: &[Arc<Event>]) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self, _: &RunFinished) -> Result<(), SinkError> {
        self.is_over.store(true, Ordering::Relaxed);
        let drawn = self.drawing.take().map(JoinHandle::join);
        self.lines.release();
        match drawn {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error.into()),
            Some(Err(_)) => Err(io::Error::other("the view panicked").into()),
        }
    }
}

/// The terminal while it shows a view; it is left as it was.
struct Screen(Terminal<CrosstermBackend<Output>>);

impl Screen {
    fn open(err: &Output) -> io::Result<Self> {
        restore_before_panics(err.clone());
        enable_raw_mode()?;
        execute!(err.clone(), EnterAlternateScreen).inspect_err(|_| restore(err.clone()))?;
        Terminal::new(CrosstermBackend::new(err.clone()))
            .map(Self)
            .inspect_err(|_| restore(err.clone()))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(self.0.backend_mut());
    }
}

/// A closed terminal isn't a reason to fail.
fn restore(mut err: impl Write) {
    let _ = disable_raw_mode();
    let _ = execute!(err, LeaveAlternateScreen, Show);
}

/// Keeps the message of a panic on the screen that stays. The terminal ignores those that the engine catches.
fn restore_before_panics(err: Output) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !is_catching() {
            restore(err.clone());
        }
        usual(panic);
    }));
}

/// Until the reader leaves, `is_over` or the terminal is gone.
fn play(mut watcher: Watcher, err: &Output, input: Input, mut is_over: impl FnMut() -> bool) -> io::Result<()> {
    let mut screen = Screen::open(err)?;
    let keys = keys(input)?;
    let (mut is_stale, mut size) = (true, None);
    while !is_over() {
        is_stale |= watcher.look();
        let before = std::mem::replace(&mut size, screen.0.size().ok());
        if std::mem::take(&mut is_stale) || before != size {
            screen.0.draw(|frame| draw(&watcher.view(), frame))?;
        }
        match keys.recv_timeout(TICK) {
            Ok(key) if !watcher.press(key) => is_stale = true,
            Err(RecvTimeoutError::Timeout) => {}
            _ => break,
        }
    }
    Ok(())
}

/// Keys as they are typed. The stream ends with the terminal, which crossterm's own reader would ask forever.
fn keys(mut input: Input) -> io::Result<Receiver<char>> {
    let (typed, keys) = channel();
    let read = move || {
        let mut bytes = [0; 256];
        while let Ok(count @ 1..) = input.read(&mut bytes) {
            let keys = keys_of(&String::from_utf8_lossy(&bytes[..count]));
            // No one looks any more.
            let Ok(()) = keys.chars().try_for_each(|key| typed.send(key)) else {
                break;
            };
        }
    };
    std::thread::Builder::new().name("keys".into()).spawn(read)?;
    Ok(keys)
}

/// Keys in the bytes from a terminal in raw mode: sequences that are keys of the view become characters, others are dropped.
fn keys_of(sent: &str) -> String {
    let keys = KEYS
        .iter()
        .fold(sent.to_owned(), |sent, (sequence, key)| sent.replace(sequence, key));
    keys.split("\x1b[").next().unwrap_or_default().into()
}

/// A replay of a record.
struct Replay {
    /// Index into `SPEEDS`.
    speed: usize,
    is_held: bool,
}

/// The viewer of a run, and its view.
struct Watcher {
    feed: Feed,
    name: String,
    standing: String,
    asked: Option<Instant>,
    is_paused: bool,
    /// The signal that stops the run, if this process plays it.
    own: Option<StopSignal>,
    replay: Option<Replay>,
    message: Option<String>,
    panel: Panel,
    env: u32,
    typed: Option<Instant>,
    scroll: usize,
    is_filtered: bool,
    is_coloured: bool,
}

impl Watcher {
    fn new(place: &Path, is_coloured: bool, own: Option<StopSignal>) -> Self {
        let named: PathBuf = place.canonicalize().unwrap_or_else(|_| place.into());
        Self {
            feed: Feed::new(place),
            name: crate::files::name_of(&named),
            standing: String::new(),
            asked: None,
            is_paused: false,
            own,
            replay: None,
            message: None,
            panel: Panel::default(),
            env: 0,
            typed: None,
            scroll: 0,
            is_filtered: false,
            is_coloured,
        }
    }

    fn view(&self) -> View<'_> {
        View {
            state: &self.feed.state,
            name: &self.name,
            standing: &self.standing,
            message: self.message.as_deref(),
            panel: self.panel,
            env: self.env,
            scroll: self.scroll,
            is_filtered: self.is_filtered,
            is_coloured: self.is_coloured,
        }
    }

    /// Reads new events; returns whether there is anything to draw.
    fn look(&mut self) -> bool {
        let most = match &self.replay {
            Some(replay) if replay.is_held => 0,
            Some(replay) => SPEEDS[replay.speed],
            None => MOST,
        };
        let is_new = match self.feed.poll_some(most) {
            Ok(is_new) => is_new,
            Err(error) => {
                let message = error.to_string();
                let is_new = self.message.as_ref() != Some(&message);
                self.message = Some(message);
                is_new
            }
        };
        is_new | self.ask()
    }

    /// The state of the run, from time to time.
    fn ask(&mut self) -> bool {
        if self.asked.is_some_and(|asked| asked.elapsed() < ASK) {
            return false;
        }
        self.asked = Some(Instant::now());
        let state = RunEntry::read(self.feed.folder()).state;
        self.is_paused = state == ListedState::Known(RunState::Paused);
        let standing = match &self.replay {
            Some(replay) => format!("replay, {} events a tick", SPEEDS[replay.speed]),
            None => state.name().into(),
        };
        std::mem::replace(&mut self.standing, standing) != self.standing
    }

    /// Acts on a key; returns whether to leave.
    fn press(&mut self, key: char) -> bool {
        self.message = None;
        match key {
            'q' | CTRL_C => return self.leave(),
            '\t' => self.panel = self.panel.turned(1),
            '↹' => self.panel = self.panel.turned(-1),
            '?' => self.panel = Panel::Help,
            'i' => self.panel = Panel::Info,
            '\x1b' => self.panel = Panel::Envs,
            '/' => (self.is_filtered, self.scroll) = (!self.is_filtered, 0),
            '↑' | '↓' => self.step(key == '↑'),
            '0'..='9' => self.type_digit(key),
            'r' => self.replay_from_the_beginning(),
            'e' => (self.replay, self.asked) = (None, None),
            ' ' => {
                if let Some(replay) = &mut self.replay {
                    replay.is_held = !replay.is_held;
                }
            }
            '+' | '-' => {
                if let Some(replay) = &mut self.replay {
                    let faster = (replay.speed + 1).min(SPEEDS.len() - 1);
                    let slower = replay.speed.saturating_sub(1);
                    replay.speed = if key == '+' { faster } else { slower };
                    self.asked = None;
                }
            }
            'p' if self.is_paused => self.send(Command::Continue),
            'p' => self.send(Command::Pause),
            'c' => self.send(Command::Checkpoint),
            _ => {}
        }
        false
    }

    /// Returns whether to leave the view. A run that this process plays is asked to stop first.
    fn leave(&mut self) -> bool {
        let Some(stop) = self.own.as_ref().filter(|stop| !stop.is_requested()) else {
            return true;
        };
        stop.request(StopRequest::Interrupt);
        self.message = Some("the run stops at the end of this step; q again leaves the view".into());
        false
    }

    fn step(&mut self, is_up: bool) {
        if self.panel == Panel::Log {
            self.scroll = if is_up {
                self.scroll + 1
            } else {
                self.scroll.saturating_sub(1)
            };
            return;
        }
        let current = self.feed.state.episodes.current();
        let envs: Vec<u32> = current.iter().map(|trace| trace.at.env).collect();
        let place = envs.iter().position(|env| *env == self.env).unwrap_or_default();
        let next = if is_up { place.saturating_sub(1) } else { place + 1 };
        self.env = envs.get(next).copied().unwrap_or(self.env);
    }

    fn type_digit(&mut self, digit: char) {
        let digit = digit.to_digit(10).unwrap_or_default();
        let is_second = self.typed.is_some_and(|typed| typed.elapsed() < DIGITS) && self.env < 100;
        self.env = if is_second { 10 * self.env + digit } else { digit };
        self.typed = Some(Instant::now());
    }

    fn replay_from_the_beginning(&mut self) {
        self.feed = Feed::new(self.feed.folder());
        let (speed, is_held) = (2, false);
        (self.replay, self.asked) = (Some(Replay { speed, is_held }), None);
    }

    fn send(&mut self, command: Command) {
        let is_played = RunEntry::read(self.feed.folder()).state.is_played();
        let sent = is_played.then(|| send_command(self.feed.folder(), command));
        self.message = Some(match sent {
            None => format!(
                "no process plays this run, so it can't be asked for: {}",
                command.word()
            ),
            Some(Ok(())) => format!("asked the run for: {}", command.word()),
            Some(Err(error)) => error.to_string(),
        });
        self.asked = None;
    }
}

#[cfg(test)]
mod tests;
