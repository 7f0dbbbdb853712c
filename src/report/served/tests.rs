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
        let tell = |address| opened.send(address).expect("somebody waits");
        serve(([127, 0, 0, 1], 0).into(), all, tell, || ends.load(Ordering::Relaxed))
    });
    visit(address.recv().expect("it opens"));
    is_over.store(true, Ordering::Relaxed);
    server.join().expect("no panic").expect("it served");
}

fn ask(address: SocketAddr, method: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn runs_are_listed_to_this_machine_alone_and_nothing_can_be_changed() {
    served(|address| {
        let own = address.to_string();
        for (method, path, host, begins, has) in [
            ("GET", "/", own.as_str(), "HTTP/1.1 200", "0 runs"),
            ("GET", "/runs/..%2f..%2fetc/", own.as_str(), "HTTP/1.1 404", ""),
            ("POST", "/", own.as_str(), "HTTP/1.1 405", ""),
            ("GET", "/", "LocalHost", "HTTP/1.1 200", ": nosniff\r\n"),
            ("GET", "/", "[::1]", "HTTP/1.1 200", ""),
            ("GET", "/", "example.org", "HTTP/1.1 403", ""),
            ("GET", "/", "127.0.0.1\r\nHost: example.org", "HTTP/1.1 403", ""),
        ] {
            let answer = ask(address, method, path, host);
            assert!(
                answer.starts_with(begins) && answer.contains(has),
                "{host}{path}: {answer}"
            );
        }
    });
}

#[test]
fn an_address_that_others_could_reach_is_refused() {
    let all = Served::All("runs".into());

    let refused = serve(([0, 0, 0, 0], 7860).into(), all, |_| {}, || true);

    let said = refused.unwrap_err().to_string();
    let expected = "0.0.0.0:7860 is open to other machines";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn a_port_in_use_is_named() {
    served(|address| {
        let refused = serve(address, Served::All("runs".into()), |_| {}, || true);

        let said = refused.unwrap_err().to_string();
        let expected = format!("nothing can be served at {address}: ");
        assert!(said.starts_with(&expected), "{said}");
        assert!(said.contains("127.0.0.1:0"), "{said}");
    });
}
