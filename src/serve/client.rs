//! The program at the other end of the pipe.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use serde::Serialize;

use super::frame::{self, Arrays, FrameError, Request};
use crate::scenario::visible;

type Received = Result<(Request, Vec<u8>), FrameError>;

/// Requests of a client, and the way back to it. Clones are the same client.
#[derive(Clone)]
pub struct Client {
    requests: Arc<Mutex<Receiver<Received>>>,
    output: Arc<Mutex<dyn Write + Send>>,
    /// `true` once the process ends by itself.
    is_over: Arc<AtomicBool>,
}

/// The reason why a client cannot be served any more.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    Frame(FrameError),
    #[error("the program at the other end of the pipe has stopped reading: {0}")]
    Unread(#[from] io::Error),
    #[error("the program at the other end of the pipe is gone")]
    Gone,
    #[error("{0}")]
    Refused(String),
}

/// Longest refusal in characters. It may quote the client's data, which is not sent back whole.
const LONGEST: usize = 600;

/// The reason why a request was refused. After a `fatal` one nothing more is done.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "error")]
struct Refusal {
    message: String,
    fatal: bool,
}

impl Client {
    /// Reads requests on a thread of its own, which calls `ended` when the other end is closed, whether or not the engine is
    /// at work.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn new(
        mut input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        ended: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, requests) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let given_up = is_over.clone();
        let listen = move || {
            loop {
                let read = frame::read(&mut input);
                let is_end = matches!(&read, Err(error) if error.is_end());
                let is_last = match &read {
                    Ok((request, _)) => *request == Request::Close,
                    Err(error) => error.is_fatal(),
                };
                if is_end && !given_up.load(Ordering::SeqCst) {
                    return ended();
                }
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("requests".into()).spawn(listen)?;
        Ok(Self {
            requests: Arc::new(Mutex::new(requests)),
            output: Arc::new(Mutex::new(output)),
            is_over,
        })
    }

    /// Waits for the next request. One that cannot be understood is refused.
    ///
    /// # Errors
    /// No further request can come.
    pub fn receive(&self) -> Result<(Request, Vec<u8>), ClientError> {
        loop {
            let received = self.requests.lock().map_err(|_| ClientError::Gone)?.recv();
            match received.map_err(|_| ClientError::Gone)? {
                Ok(request) => return Ok(request),
                Err(error) if error.is_fatal() => return Err(ClientError::Frame(error)),
                Err(error) => self.refuse(&error.to_string())?,
            }
        }
    }

    /// Answers a request.
    ///
    /// # Errors
    /// The other end was closed.
    pub fn send(&self, header: &impl Serialize, arrays: &Arrays) -> Result<(), ClientError> {
        let mut output = self.output.lock().map_err(|_| ClientError::Gone)?;
        Ok(frame::write(&mut *output, header, arrays)?)
    }

    /// Reports why a request was refused. Another one may follow.
    ///
    /// # Errors
    /// The other end was closed.
    pub fn refuse(&self, message: &str) -> Result<(), ClientError> {
        self.say(message, false)
    }

    fn say(&self, message: &str, fatal: bool) -> Result<(), ClientError> {
        let message = visible(&message.replace('\n', " "), LONGEST);
        self.send(&Refusal { message, fatal }, &Arrays::default())
    }

    /// Reports why nothing more will be done, if the client still reads.
    pub fn give_up(&self, message: &str) {
        self.is_over.store(true, Ordering::SeqCst);
        // The process ends with the same message.
        let _ = self.say(message, true);
    }
}
