//! Pages over HTTP, for this machine alone: the page of one run or the list of all, kept up to date by server-sent events.
//! Nothing can be changed through it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::IntoFuture;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path as PathOf, Request, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use futures_util::stream;

use super::html::{list_page, run_page};
use super::state::RunSource;
use crate::files::name_of;
use crate::record::{RunDirectory, list_runs};

/// The interval at which the server looks at a record for an open page.
const LOOK: Duration = Duration::from_secs(1);
/// Runs whose state is kept. The one with the oldest request is dropped first.
const KEPT: usize = 8;

/// The reason why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It would be open to other machines.
    #[error("{0} is open to other machines: give 127.0.0.1 with a port, such as 127.0.0.1:7860")]
    Remote(SocketAddr),
    /// The port is taken, or may not be used.
    #[error("nothing can be served at {address}: {error}; give another port, or 127.0.0.1:0 for any free one")]
    Address {
        /// Requested address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// A thread or socket that isn't available.
    #[error("pages cannot be served: {0}")]
    Io(#[from] io::Error),
}

/// The runs that have pages.
#[derive(Clone, Debug)]
pub enum Served {
    /// The run in this folder.
    Run(PathBuf),
    /// All runs below this one.
    All(PathBuf),
}

/// A run whose pages are asked for.
type Source = Arc<Mutex<RunSource>>;

#[derive(Clone)]
struct Shelf {
    served: Arc<Served>,
    sources: Arc<Mutex<VecDeque<(String, Source)>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic left there is only shown.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shelf {
    /// The run of that name. `None` if there is none, or none that may be shown.
    fn source(&self, name: &str) -> Option<Source> {
        let folder = match &*self.served {
            Served::Run(folder) => (name_of(folder) == name).then(|| folder.clone())?,
            Served::All(root) => {
                let is_plain = Path::new(name).components().count() == 1 && !name.starts_with('.');
                is_plain
                    .then(|| root.join(name))
                    .filter(|folder| RunDirectory::is_at(folder))?
            }
        };
        let mut sources = locked(&self.sources);
        if let Some((_, source)) = sources.iter().find(|(of, _)| of == name) {
            return Some(source.clone());
        }
        let source = Arc::new(Mutex::new(RunSource::new(&folder)));
        if sources.len() == KEPT {
            sources.pop_front();
        }
        sources.push_back((name.to_owned(), source.clone()));
        Some(source)
    }
}

/// Serves at `address` until `is_over`, and passes the address to `announce` once it is open.
///
/// # Errors
/// An address that isn't limited to this machine, or that cannot be listened at.
pub fn serve(
    address: SocketAddr,
    served: Served,
    announce: impl FnOnce(SocketAddr),
    mut is_over: impl FnMut() -> bool,
) -> Result<(), ServeError> {
    if !address.ip().is_loopback() {
        return Err(ServeError::Remote(address));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener = listener.map_err(|error| ServeError::Address { address, error })?;
        announce(listener.local_addr()?);
        let server = tokio::spawn(axum::serve(listener, router(served)).into_future());
        while !is_over() && !server.is_finished() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    });
    // Pages that are still open would wait for ever.
    runtime.shutdown_background();
    served
}

fn router(served: Served) -> Router {
    let shelf = Shelf {
        served: Arc::new(served),
        sources: Arc::default(),
    };
    Router::new()
        .route("/", get(front))
        .route("/runs/{name}/", get(page))
        .route("/runs/{name}/events", get(events))
        .layer(from_fn(for_this_machine))
        .with_state(shelf)
}

/// A page of another site could be made to stand for this one by its name; it cannot be by its address.
async fn for_this_machine(request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let mut response = match host.is_some_and(is_here) && hosts.next().is_none() {
        true => next.run(request).await,
        false => {
            let refusal = "this server answers to 127.0.0.1, [::1] and localhost\n";
            (StatusCode::FORBIDDEN, refusal).into_response()
        }
    };
    // What a run calls itself is shown as a text, and no browser is to take it for something else.
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// Returns whether a host, with a port or without, is an address of this machine alone.
fn is_here(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    // The brackets mark its colons, which would read as that of a port.
    let address = name.strip_prefix('[').map_or(Some(name), |six| six.strip_suffix(']'));
    let address = address.and_then(|address| address.parse::<IpAddr>().ok());
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

async fn front(State(shelf): State<Shelf>) -> Response {
    let root = match &*shelf.served {
        Served::Run(folder) => return Redirect::temporary(&format!("/runs/{}/", name_of(folder))).into_response(),
        Served::All(root) => root.clone(),
    };
    let listed = tokio::task::spawn_blocking(move || list_runs(&root).map(|runs| list_page(&runs))).await;
    match listed {
        Ok(Ok(page)) => Html(page).into_response(),
        Ok(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn no_run(name: &str) -> Response {
    (StatusCode::NOT_FOUND, format!("there is no run {name} here\n")).into_response()
}

async fn page(State(shelf): State<Shelf>, PathOf(name): PathOf<String>) -> Response {
    let Some(source) = shelf.source(&name) else {
        return no_run(&name);
    };
    let page = tokio::task::spawn_blocking(move || {
        let mut source = locked(&source);
        source.poll();
        run_page(&source, true)
    });
    match page.await {
        Ok(page) => ([(header::CACHE_CONTROL, "no-store")], Html(page)).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Sends `page` whenever there is more to see. A slow reader misses some of them and sees the newest.
async fn events(State(shelf): State<Shelf>, PathOf(name): PathOf<String>, asked: Uri) -> Response {
    let Some(source) = shelf.source(&name) else {
        return no_run(&name);
    };
    // Of the page that asks: what has come since it was made is news at once.
    let after = asked.query().and_then(|query| query.strip_prefix("after="));
    let seen = after.and_then(|version| version.parse().ok());
    let seen = seen.unwrap_or_else(|| locked(&source).version);
    let news = stream::unfold((source, seen), |(source, seen)| async move {
        loop {
            let looked = source.clone();
            let version = tokio::task::spawn_blocking(move || {
                let mut source = locked(&looked);
                source.poll();
                source.version
            });
            let version = version.await.ok()?;
            if version != seen {
                let news = Event::default().event("page").data(version.to_string());
                return Some((Ok::<_, Infallible>(news), (source, version)));
            }
            tokio::time::sleep(LOOK).await;
        }
    });
    Sse::new(news).keep_alive(KeepAlive::default()).into_response()
}

#[cfg(test)]
mod tests;
