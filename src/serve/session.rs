//! A client from its hello to its end, with an engine for each seed that it asks for.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::actions::Spaces;
use super::client::{Client, ClientError};
use super::exchange::{ServeError, Served, add_exchange};
use super::frame::{Arrays, Request, VERSION};
use crate::controller::ExternalCommands;
use crate::engine::{Engine, RunReport, SetupError};
use crate::env::Experiment;

/// An engine with controller `external` for a seed, or for the scenario's own.
pub type Build<'a> = dyn Fn(Option<u64>) -> Result<Engine, SetupError> + 'a;

/// Serves a client until it closes, and reports to it why the service ends.
///
/// # Errors
/// An engine that cannot be built or fails; a client that speaks another version, or sends nothing.
pub fn serve(client: &Client, build: &Build) -> Result<(), ServeError> {
    let served = converse(client, build);
    if let Err(error) = &served {
        client.give_up(&error.to_string());
    }
    served
}

fn converse(client: &Client, build: &Build) -> Result<(), ServeError> {
    let Some(is_factored) = greeted(client)? else {
        return Ok(());
    };
    let engine = start(build, None)?;
    let spaces = Spaces::of(engine.world(), is_factored)?;
    client.send(&spaces, &Arrays::default())?;
    let actions = Arc::new(spaces.actions);
    let mut fresh = Some(engine);
    let mut request = first_request(client)?;
    while let Request::Reset { seed } = request {
        let mut engine = match fresh.take().filter(|_| seed.is_none()) {
            Some(engine) => engine,
            None => start(build, seed)?,
        };
        engine.world_mut().insert_resource(Served::new(client, &actions));
        request = play(&mut engine)?;
    }
    Ok(())
}

/// Returns whether the client wants factored actions, or `None` if it closes instead.
fn greeted(client: &Client) -> Result<Option<bool>, ClientError> {
    loop {
        let why = match client.receive()? {
            (Request::Hello { version, .. }, _) if version != VERSION => {
                let program = env!("CARGO_PKG_VERSION");
                return Err(ClientError::Refused(format!(
                    "the client speaks version {version} of serve-envs, simic-engine {program} speaks version {VERSION}; \
                     install a client and a program of the same release"
                )));
            }
            (Request::Hello { actions, .. }, _) => match actions.as_deref() {
                None | Some("flat") => return Ok(Some(false)),
                Some("factored") => return Ok(Some(true)),
                Some(other) => format!("there are no {other} actions; ask for flat or factored"),
            },
            (Request::Close, _) => return Ok(None),
            (Request::Reset { .. } | Request::Step { .. }, _) => {
                "the first frame has to be a hello; nothing was done".into()
            }
        };
        client.refuse(&why)?;
    }
}

/// An engine that has started, and plays round after round.
fn start(build: &Build, seed: Option<u64>) -> Result<Engine, ServeError> {
    let mut engine = build(seed)?;
    engine.world_mut().resource_mut::<Experiment>().rounds.end = u32::MAX;
    engine.world_mut().init_resource::<ExternalCommands>();
    add_exchange(engine.app_mut());
    match engine.advance() {
        ControlFlow::Continue(_) => Ok(engine),
        ControlFlow::Break(report) => Err(ended(report)),
    }
}

/// The first request. Before the first reset there is nothing to step.
fn first_request(client: &Client) -> Result<Request, ClientError> {
    loop {
        match client.receive()? {
            (request @ (Request::Reset { .. } | Request::Close), _) => return Ok(request),
            _ => client.refuse("reset comes before the first step; nothing was done")?,
        }
    }
}

/// Plays until the client requests something other than a step.
fn play(engine: &mut Engine) -> Result<Request, ServeError> {
    loop {
        let moved = engine.advance();
        if let Some(next) = engine.world_mut().resource_mut::<Served>().next.take() {
            return next;
        }
        if let ControlFlow::Break(report) = moved {
            return Err(ended(report));
        }
    }
}

fn ended(report: RunReport) -> ServeError {
    report.into_result().err().map_or(ServeError::Stopped, Into::into)
}
