use std::io::Seek;

use super::*;

/// Names in it are others': of a run's folder, of the layers of a network.
#[test]
fn a_line_of_the_log_steers_no_terminal_neither_at_once_nor_once_it_was_held() {
    let mut screen = tempfile::tempfile().unwrap();
    let mut terminal = Terminal::on(Output::to(screen.try_clone().unwrap()), false, false);

    terminal
        .write_all("WARN \u{1b}[2J\u{9b}31m\u{7}é\n".as_bytes())
        .unwrap();
    terminal.hold();
    terminal.write_all("WARN \u{202e}gnp\u{2066}\r\n".as_bytes()).unwrap();
    terminal.release();

    screen.rewind().unwrap();
    let written = io::read_to_string(screen).unwrap();
    let expected = "WARN \\u{1b}[2J\\u{9b}31m\\u{7}é\nWARN \\u{202e}gnp\\u{2066}\\u{d}\n";
    assert_eq!(written, expected);
}
