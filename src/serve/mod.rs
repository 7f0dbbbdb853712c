//! The envs of an engine for a program at the other end of a pipe, which decides in place of a controller: rounds are episodes,
//! and the answer to a step is the observation for the next decision. `docs/reference/serve_envs.md` has the frames.
//!
//! The engine runs as always, with controller `external`: a system before the decision sends the observations and waits for
//! commands (`exchange`).

mod frame;
mod client;
mod actions;
mod exchange;
mod session;

pub use client::Client;
pub use exchange::ServeError;
pub use session::serve;
