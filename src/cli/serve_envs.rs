//! `simic-engine serve-envs`: the envs of a scenario for a program at the other end of standard input and output.

use std::path::Path;

use super::options::{RunOptions, ServeOptions};
use super::prepare::prepare;
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::run::{StopRequest, end_at_once};
use crate::serve::{Client, ServeError, serve};

/// Serves the program at the other end until it closes; once it is gone, this one ends at once.
///
/// # Errors
/// A scenario with problems; an engine that cannot be made; a program that does not speak the language.
pub fn serve_envs(options: &ServeOptions, context: &Context) -> Result<Outcome, Rejection> {
    if options.scenario.as_deref() == Some(Path::new("-")) {
        return Err("requests come from standard input; give the scenario as a file".into());
    }
    let mut sets = options.sets.clone();
    sets.push("policy.controller=external".into());
    let prepared = prepare(
        &RunOptions {
            scenario: options.scenario.clone(),
            seed: options.seed.clone(),
            sets,
            ..RunOptions::default()
        },
        context,
    )?;
    let surroundings = context.surroundings.clone();
    let ended = move || {
        if surroundings.owns_process {
            end_at_once(StopRequest::Terminate);
        }
    };
    let client = Client::new(surroundings.input, surroundings.out, ended)
        .map_err(|error| format!("a thread cannot be started: {error}"))?;
    let build = |seed: Option<u64>| {
        let mut prepared = prepared.clone();
        let run = &mut prepared.loaded.scenario.run;
        run.seed = seed.unwrap_or(run.seed);
        context.engine().build(&prepared)
    };
    match serve(&client, &build) {
        Ok(()) => Ok(Outcome::Done),
        Err(ServeError::Setup(error)) => Err(error.into()),
        Err(ServeError::Client(error)) => Err(error.to_string().into()),
        Err(error) => Err(Rejection::failed(error)),
    }
}
