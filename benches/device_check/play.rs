//! Engines at work: their results and their speed.

use std::error::Error;
use std::time::{Duration, Instant};

use serde_json::json;
use simic_engine::extend::EngineBuilder;
use simic_engine::internals::env::SelfTest;
use simic_engine::internals::health::RunHealth;
use simic_engine::internals::torch::{device_of, free_bytes};
use simic_engine::internals::training::StepResult;
use simic_engine::prelude::*;

use crate::rows::Played;
use crate::{grown, step};

/// A scenario, where and how it is played.
#[derive(Clone, Debug)]
pub struct Play {
    pub scenario: String,
    pub devices: Vec<String>,
    pub threads: usize,
    /// Further fields of the scenario.
    pub set: Vec<(&'static str, String)>,
    /// Live seeds of each env.
    pub seeds: (&'static str, usize),
}

impl Play {
    pub fn on(device: &str, scenario: &str) -> Self {
        Self {
            scenario: scenario.into(),
            devices: vec![device.into()],
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            set: Vec::new(),
            seeds: ("", 0),
        }
    }

    pub fn with(mut self, field: &'static str, value: impl ToString) -> Self {
        self.set.retain(|(other, _)| *other != field);
        self.set.push((field, value.to_string()));
        self
    }

    pub fn seeded(self, blueprint: &'static str, seeds: usize) -> Self {
        let seeds = (blueprint, seeds);
        Self { seeds, ..self }
    }

    pub fn threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    pub fn builder(&self) -> EngineBuilder {
        let devices = format!("{:?}", self.devices);
        let builder = Engine::builder().threads(self.threads).set("run.devices", devices);
        let fields = self.set.iter();
        fields.fold(builder, |builder, (field, value)| builder.set(field, value))
    }

    /// The engine in its first episode, with its seeds.
    fn begun(&self) -> Result<Engine, Box<dyn Error>> {
        let engine = self.builder().from_ron(&self.scenario)?;
        let engine = grown::begun(engine, self.seeds.0, self.seeds.1);
        health(&engine)?;
        Ok(engine)
    }
}

fn health(engine: &Engine) -> Result<(), Box<dyn Error>> {
    let failure = &engine.world().resource::<RunHealth>().failure;
    failure
        .as_ref()
        .map_or(Ok(()), |failure| Err(failure.to_string().into()))
}

fn step(engine: &mut Engine) -> Result<(), Box<dyn Error>> {
    step::step(engine.world_mut());
    health(engine)
}

/// State of the envs after some steps, in the order of the envs.
#[derive(Debug, Default)]
pub struct State {
    /// Losses: of training, then of every configuration in validation.
    pub losses: Vec<f64>,
    pub weights: Vec<f64>,
    /// Batches that could not be recorded as graphs.
    pub refused: u32,
}

pub fn state_after(play: &Play, steps: usize) -> Result<State, Box<dyn Error>> {
    let mut engine = play.begun()?;
    for _ in 0..steps {
        step(&mut engine)?;
    }
    let mut state = State::default();
    let world = engine.world_mut();
    let mut envs = world.query::<(&EnvId, &StepResult, &EpisodeStats, &mut HostModel)>();
    let mut envs: Vec<_> = envs.iter_mut(world).collect();
    envs.sort_unstable_by_key(|(id, ..)| **id);
    for (_, result, stats, mut host) in envs {
        state.refused += stats.fallbacks.graph;
        let numbers = result.0.as_ref().ok_or("an env has no result")?;
        state.losses.push(numbers.train_loss());
        let validated = numbers.configs.iter().map(|config| config.loss_sum);
        state.losses.extend(validated);
        for param in host.0.get().params().all() {
            let values = param.tensor.f_to_kind(tch::Kind::Double)?.f_flatten(0, -1)?;
            state.weights.extend(Vec::<f64>::try_from(values)?);
        }
    }
    Ok(state)
}

/// The largest difference of two numbers at one place, against the larger of them.
pub fn largest_difference(one: &[f64], other: &[f64]) -> f64 {
    let differ = |(one, other): (&f64, &f64)| (one - other).abs() / one.abs().max(other.abs()).max(1e-12);
    let largest = one.iter().zip(other).map(differ).fold(0.0, f64::max);
    let are_finite = one.iter().chain(other).all(|value| value.is_finite());
    if one.len() == other.len() && are_finite {
        largest
    } else {
        f64::NAN
    }
}

/// The L2 norm of the difference against that of `one`.
pub fn norm_difference(one: &[f64], other: &[f64]) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let whole = norm(&mut one.iter().copied());
    norm(&mut one.iter().zip(other).map(|(one, other)| one - other)) / whole.max(1e-12)
}

/// Steps of all envs a second, in the steady state: after some that load, choose and settle.
pub fn speed(play: &Play, is_quick: bool) -> Played {
    let (warm_up, least, time) = match is_quick {
        true => (1, 1, Duration::ZERO),
        false => (3, 4, Duration::from_millis(2500)),
    };
    let device = play.devices[0].parse().map(device_of).ok();
    let before = device.and_then(free_bytes);
    let starting = Instant::now();
    let mut engine = play.begun()?;
    let started = starting.elapsed().as_secs_f64();
    for _ in 0..warm_up {
        step(&mut engine)?;
    }
    let warmed = starting.elapsed().as_secs_f64() - started;
    let began = Instant::now();
    let mut steps = 0;
    while steps < least || began.elapsed() < time {
        step(&mut engine)?;
        steps += 1;
    }
    let seconds = began.elapsed().as_secs_f64();
    let world = engine.world();
    let experiment = world.resource::<Experiment>();
    let (train, _) = world.resource::<RunClock>().batches_per_step();
    let env_steps = (steps * experiment.envs.len()) as f64 / seconds;
    let samples = env_steps * (train * experiment.task.batch_size) as f64;
    let mut figures = json!({"start s": started, "warm-up s": warmed, "env-steps/s": env_steps, "samples/s": samples});
    if let (Some(before), Some(after)) = (before, device.and_then(free_bytes)) {
        figures["device MiB"] = (before.saturating_sub(after) >> 20).into();
    }
    let mut envs = world.try_query::<&EpisodeStats>().ok_or("there are no envs")?;
    let refused: u32 = envs.iter(world).map(|stats| stats.fallbacks.graph).sum();
    if refused > 0 {
        figures["batches that could not be recorded"] = refused.into();
    }
    let fallbacks = &world.resource::<SelfTest>().fallbacks;
    if !fallbacks.is_empty() {
        figures["fallbacks"] = fallbacks.join("; ").into();
    }
    Ok(figures)
}
