//! `watch` and `run --progress tui` in a terminal, as a person sees them.

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, ExitStatus, PtySize, native_pty_system};
use vt100::Parser;

use crate::program::{HEEDED, PROGRAM, copy_of, engine_at, folder, played, refused, succeeds, tiny, write};

const RUN: &str = "rounds: 2, n_envs: 2, max_steps: 8, seed: 7, keep: none";

/// Content of a screen.
struct Screen {
    parser: Parser,
    was_alternate: bool,
}

/// A program in a terminal of 80 columns and 24 lines.
struct Watched {
    screen: Arc<Mutex<Screen>>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
}

impl Watched {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        const ROWS: NonZero<u16> = NonZero::new(24).expect("it is not 0");
        const COLUMNS: NonZero<u16> = NonZero::new(80).expect("it is not 0");
        let size = PtySize {
            rows: ROWS.get(),
            cols: COLUMNS.get(),
            ..PtySize::default()
        };
        let pty = native_pty_system().openpty(size).expect("a terminal");
        let mut program = CommandBuilder::new(PROGRAM);
        program.args(arguments);
        program.cwd(folder);
        program.env("TERM", "xterm-256color");
        HEEDED.iter().for_each(|variable| program.env_remove(variable));
        let child = pty.slave.spawn_command(program).expect("the engine starts");
        drop(pty.slave);
        let screen = Arc::new(Mutex::new(Screen {
            parser: Parser::new(ROWS, COLUMNS, 1000),
            was_alternate: false,
        }));
        let mut output = pty.master.try_clone_reader().expect("a reader");
        let keys = pty.master.take_writer().expect("a writer");
        let seen = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The other end is closed when the program has ended.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                let mut screen = seen.lock().expect("no panic");
                screen.parser.process(&bytes[..read]);
                screen.was_alternate |= screen.parser.screen().alternate_screen();
            }
            // Kept open until then.
            drop(pty.master);
        });
        Self { screen, keys, child }
    }

    fn text(&self) -> String {
        self.screen.lock().expect("no panic").parser.screen().contents()
    }

    /// Until the screen shows `text`. No frame of the view scrolls: its first line is that with the name of the run.
    fn wait_for(&self, text: &str) {
        let begun = Instant::now();
        while !self.text().contains(text) {
            let is_late = begun.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "no {text:?} in:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
        let screen = self.screen.lock().expect("no panic");
        let screen = screen.parser.screen();
        let first = screen.rows(0, 80).next().unwrap_or_default();
        assert!(!screen.alternate_screen() || first.contains("tiny"), "{first}");
    }

    fn press(&mut self, keys: &str) {
        let written = self.keys.write_all(keys.as_bytes());
        written.and_then(|()| self.keys.flush()).expect("it reads keys");
    }

    fn ended(&mut self) -> ExitStatus {
        let status = self.child.wait().expect("it ends");
        std::thread::sleep(Duration::from_millis(200));
        status
    }

    /// Asserts that the terminal is restored.
    fn assert_left_well(&self) {
        let screen = self.screen.lock().expect("no panic");
        assert!(screen.was_alternate);
        let screen = screen.parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
    }
}

/// A folder with a run that has ended.
fn played_run() -> tempfile::TempDir {
    static PLAYED: LazyLock<Vec<u8>> = LazyLock::new(|| {
        played(|folder| {
            write(&folder.join("tiny.ron"), tiny(RUN));
            succeeds(&engine_at(folder, "run tiny.ron --progress none"));
        })
    });
    copy_of(&PLAYED)
}

#[test]
#[ignore = "long tier"]
fn a_run_is_shown_while_it_plays_and_the_summary_follows_on_the_screen_that_stays() {
    let folder = folder();
    write(&folder.path().join("tiny.ron"), tiny(RUN));
    let mut run = Watched::start(folder.path(), &["run", "tiny.ron", "--progress", "tui"]);

    run.wait_for("contributes: validation accuracy lost");
    assert_eq!(run.ended().exit_code(), 0);

    run.assert_left_well();
}

#[test]
#[ignore = "long tier"]
fn a_run_that_has_ended_is_watched_and_replayed() {
    let folder = played_run();
    let mut watch = Watched::start(folder.path(), &["watch"]);

    watch.wait_for("completed");
    watch.wait_for("round 2/2");
    watch.wait_for(">0");
    for (key, shown) in [
        ("1", ">1"),
        ("\t", "2 updates"),
        ("?", "replay from the beginning"),
        ("r", "replay, 16 events a tick"),
        ("e", "completed"),
        ("p", "no process plays this run"),
    ] {
        watch.press(key);
        watch.wait_for(shown);
    }
    watch.press("q");

    assert_eq!(watch.ended().exit_code(), 0);
    watch.assert_left_well();
}

#[test]
fn without_a_terminal_it_is_said_what_prints_the_same() {
    let folder = played_run();

    let said = refused(&engine_at(folder.path(), "watch"));

    assert_eq!(
        said,
        "error: watch needs a terminal; simic-engine show latest prints the state of the run\n"
    );
}
