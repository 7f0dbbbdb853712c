//! The envs of an engine for a program at the other end of a pipe, which decides in place of a controller: rounds are episodes,
//! and a step is answered with what the next decision is taken on. `docs/reference/serve_envs.md` has the frames.
//!
//! The engine runs as always, with controller `external`: a system before the decision sends what the envs show and waits for
//! commands (`exchange`).

mod frame;
mod client;
mod actions;
mod exchange;
mod session;

pub use client::Client;
pub use exchange::ServeError;
pub use session::serve;
