use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use super::*;

/// Serves an empty folder of runs while `visit` is at its address.
fn served(visit: impl FnOnce(SocketAddr)) {
    let root = tempfile::tempdir().expect("a folder");
    let is_over = Arc::new(AtomicBool::new(false));
    let (opened, address) = mpsc::channel();
    let ends = is_over.clone();
    let all = Served::All(root.path().into());
    let server = std::thread::spawn(move || {
        serve(
            ([127, 0, 0, 1], 0).into(),
            all,
            |address| opened.send(address).expect("somebody waits"),
            || ends.load(Ordering::Relaxed),
        )
    });
    visit(address.recv().expect("it opens"));
    is_over.store(true, Ordering::Relaxed);
    server.join().expect("no panic").expect("it served");
}

fn ask(address: SocketAddr, method: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn runs_are_listed_to_this_machine_and_nothing_can_be_changed() {
    served(|address| {
        let host = address.to_string();

        let list = ask(address, "GET", "/", &host);
        let outside = ask(address, "GET", "/runs/..%2f..%2fetc/", &host);
        let change = ask(address, "POST", "/", &host);

        assert!(list.starts_with("HTTP/1.1 200") && list.contains("0 runs"), "{list}");
        assert!(outside.starts_with("HTTP/1.1 404"), "{outside}");
        assert!(change.starts_with("HTTP/1.1 405"), "{change}");
    });
}

#[test]
fn a_name_of_another_site_is_refused() {
    served(|address| {
        let answer = ask(address, "GET", "/", "example.org");

        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    });
}

#[test]
fn an_address_that_others_could_reach_is_refused() {
    let all = Served::All("runs".into());

    let refused = serve(([0, 0, 0, 0], 7860).into(), all, |_| {}, || true);

    assert!(
        refused
            .unwrap_err()
            .to_string()
            .starts_with("0.0.0.0:7860 is not an address of this machine alone")
    );
}

#[test]
fn a_port_in_use_is_named() {
    served(|address| {
        let refused = serve(address, Served::All("runs".into()), |_| {}, || true);

        let message = refused.unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("nothing can be served at {address}: ")),
            "{message}"
        );
        assert!(message.contains("127.0.0.1:0"), "{message}");
    });
}
