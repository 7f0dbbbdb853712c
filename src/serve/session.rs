//! A client from its hello to its end: an engine for each seed that it asks for.

use std::ops::ControlFlow;

use super::actions::Actions;
use super::client::{Client, ClientError};
use super::exchange::{Served, ServedError, add_exchange};
use super::frame::{Arrays, Request, VERSION};
use super::spaces::Spaces;
use crate::controller::ExternalCommands;
use crate::engine::{Engine, SetupError};
use crate::env::Experiment;
use crate::health::EngineError;

/// Why a client is not served to its end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Run(#[from] EngineError),
    #[error(transparent)]
    Served(#[from] ServedError),
    #[error("the engine has stopped by itself")]
    Stopped,
}

impl From<ClientError> for ServeError {
    fn from(error: ClientError) -> Self {
        Self::Served(error.into())
    }
}

/// An engine with controller `external` for a seed, or for the scenario's own.
pub type Build<'a> = dyn Fn(Option<u64>) -> Result<Engine, SetupError> + 'a;

/// Serves a client until it closes. It is told why it is not served any longer.
///
/// # Errors
/// An engine that cannot be built or fails; a client that speaks another version, or not at all.
pub fn serve(mut client: Client, build: &Build) -> Result<(), ServeError> {
    let (engine, actions) = match greet(&mut client, build) {
        Ok(greeted) => greeted,
        Err(error) => {
            client.give_up(&error.to_string());
            return Err(error);
        }
    };
    Session { build, client, actions }.serve(engine)
}

/// Starts the scenario's engine and says what its envs are like.
fn greet(client: &mut Client, build: &Build) -> Result<(Engine, Actions), ServeError> {
    let refused = |why: String| Err(ClientError::Refused(why).into());
    let form = match client.receive()? {
        (
            Request::Hello {
                version: VERSION,
                actions,
            },
            _,
        ) => actions.unwrap_or_else(|| "flat".into()),
        (Request::Hello { version, .. }, _) => {
            let program = env!("CARGO_PKG_VERSION");
            return refused(format!(
                "the client speaks version {version} of serve-envs, simic-engine {program} speaks version {VERSION}; \
                 install a client and a program of the same release"
            ));
        }
        (request, _) => return refused(format!("the first frame has to be a hello; this one is {request:?}")),
    };
    if !["flat", "factored"].contains(&form.as_str()) {
        return refused(format!("there are no {form} actions; ask for flat or factored"));
    }
    let engine = start(build, None)?;
    let spaces = Spaces::of(engine.world(), form == "factored").map_err(ServedError::from)?;
    client.send(&spaces, &Arrays::default())?;
    Ok((engine, spaces.actions))
}

/// An engine that has started, and ends with its client.
fn start(build: &Build, seed: Option<u64>) -> Result<Engine, ServeError> {
    let mut engine = build(seed)?;
    engine.world_mut().resource_mut::<Experiment>().rounds.end = u32::MAX;
    engine.world_mut().init_resource::<ExternalCommands>();
    add_exchange(engine.app_mut());
    match engine.advance() {
        ControlFlow::Continue(_) => Ok(engine),
        ControlFlow::Break(report) => Err(report.into_result().err().map_or(ServeError::Stopped, Into::into)),
    }
}

struct Session<'a> {
    build: &'a Build<'a>,
    client: Client,
    actions: Actions,
}

impl Session<'_> {
    fn serve(mut self, engine: Engine) -> Result<(), ServeError> {
        let mut fresh = Some(engine);
        let mut request = self.wait()?;
        while let Request::Reset { seed } = request {
            let engine = match fresh.take().filter(|_| seed.is_none()) {
                Some(engine) => Ok(engine),
                None => start(self.build, seed),
            };
            let mut engine = match engine {
                Ok(engine) => engine,
                Err(error) => {
                    self.client.give_up(&error.to_string());
                    return Err(error);
                }
            };
            (self, request) = self.play(&mut engine)?;
        }
        Ok(())
    }

    /// A request before the first reset.
    fn wait(&mut self) -> Result<Request, ServeError> {
        loop {
            match self.client.receive()? {
                (request @ (Request::Reset { .. } | Request::Close), _) => return Ok(request),
                _ => self
                    .client
                    .refuse("reset comes before the first step; nothing was done")?,
            }
        }
    }

    /// Plays until the client asks for something else than a step.
    fn play(self, engine: &mut Engine) -> Result<(Self, Request), ServeError> {
        let build = self.build;
        engine
            .world_mut()
            .insert_resource(Served::new(self.client, self.actions));
        let asked = loop {
            let moved = engine.advance();
            if let Some(next) = engine.world_mut().resource_mut::<Served>().next.take() {
                break next.map_err(ServeError::from);
            }
            if let ControlFlow::Break(report) = moved {
                break Err(report.into_result().err().map_or(ServeError::Stopped, Into::into));
            }
        };
        let served = engine.world_mut().remove_resource::<Served>();
        let Some((Some(mut client), actions)) = served.map(Served::into_parts) else {
            return Err(ClientError::Gone.into());
        };
        match asked {
            Ok(request) => Ok((Self { build, client, actions }, request)),
            Err(error) => {
                client.give_up(&error.to_string());
                Err(error)
            }
        }
    }
}
