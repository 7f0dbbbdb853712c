//! Engines at work: what they come to, and how fast.

use std::time::{Duration, Instant};

use bevy_ecs::schedule::ScheduleLabel;
use simic_engine::internals::clock::RunClock;
use simic_engine::internals::env::SelfTest;
use simic_engine::internals::health::RunHealth;
use simic_engine::internals::torch::free_bytes;
use simic_engine::internals::training::StepResult;
use simic_engine::prelude::*;

use crate::grown;
use crate::rows::Figures;

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
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            scenario: scenario.into(),
            devices: vec![device.into()],
            threads,
            set: Vec::new(),
            seeds: ("", 0),
        }
    }

    pub fn with(mut self, field: &'static str, value: impl ToString) -> Self {
        self.set.retain(|(other, _)| *other != field);
        self.set.push((field, value.to_string()));
        self
    }

    pub fn seeded(mut self, blueprint: &'static str, seeds: usize) -> Self {
        self.seeds = (blueprint, seeds);
        self
    }

    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    pub fn builder(&self) -> simic_engine::extend::EngineBuilder {
        let devices: Vec<String> = self.devices.iter().map(|device| format!("{device:?}")).collect();
        let builder = Engine::builder()
            .threads(self.threads)
            .set("run.devices", format!("[{}]", devices.join(", ")));
        self.set
            .iter()
            .fold(builder, |builder, (field, value)| builder.set(field, value))
    }

    pub fn engine(&self) -> Result<Engine, String> {
        self.builder()
            .from_ron(&self.scenario)
            .map_err(|error| error.to_string())
    }

    /// The engine in its first episode, with its seeds.
    fn begun(&self) -> Result<Engine, String> {
        let engine = grown::begun(self.engine()?, self.seeds.0, self.seeds.1);
        health(&engine)?;
        Ok(engine)
    }
}

fn health(engine: &Engine) -> Result<(), String> {
    let failure = &engine.world().resource::<RunHealth>().failure;
    failure.as_ref().map_or(Ok(()), |failure| Err(failure.to_string()))
}

fn step(engine: &mut Engine) -> Result<(), String> {
    let world = engine.world_mut();
    world.resource_mut::<RunClock>().next_step();
    for schedule in [
        StepStart.intern(),
        Batches.intern(),
        StepSync.intern(),
        Assess.intern(),
        Decide.intern(),
        Act.intern(),
        StepEnd.intern(),
    ] {
        world.run_schedule(schedule);
    }
    health(engine)
}

/// What the envs have come to after some steps, in the order of the envs.
#[derive(Debug, Default)]
pub struct State {
    /// Losses: of training, then of every configuration in validation.
    pub losses: Vec<f64>,
    pub weights: Vec<f64>,
}

pub fn state_after(play: &Play, steps: usize) -> Result<State, String> {
    let mut engine = play.begun()?;
    for _ in 0..steps {
        step(&mut engine)?;
    }
    let mut state = State::default();
    let world = engine.world_mut();
    let mut envs = world.query::<(&EnvId, &StepResult, &mut HostModel)>();
    let mut envs: Vec<_> = envs.iter_mut(world).collect();
    envs.sort_unstable_by_key(|(id, ..)| **id);
    for (_, result, mut host) in envs {
        let numbers = result.0.as_ref().ok_or("an env has no result")?;
        state.losses.push(numbers.train_loss());
        state
            .losses
            .extend(numbers.configs.iter().map(|config| config.loss_sum));
        for param in host.0.get().params().all() {
            let values = param
                .tensor
                .f_to_kind(tch::Kind::Double)
                .and_then(|tensor| tensor.f_flatten(0, -1));
            let values = values.and_then(Vec::<f64>::try_from);
            state.weights.extend(values.map_err(|error| error.to_string())?);
        }
    }
    Ok(state)
}

/// The largest difference of two numbers at one place, against the larger of them.
pub fn largest_difference(one: &[f64], other: &[f64]) -> f64 {
    let differ = |(one, other): (&f64, &f64)| (one - other).abs() / one.abs().max(other.abs()).max(1e-12);
    let largest = one.iter().zip(other).map(differ).fold(0.0, f64::max);
    if one.len() == other.len() && one.iter().chain(other).all(|value| value.is_finite()) {
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
pub fn speed(play: &Play, is_quick: bool) -> Result<Figures, String> {
    let (warm_up, least, time) = match is_quick {
        true => (1, 1, Duration::ZERO),
        false => (3, 4, Duration::from_millis(2500)),
    };
    let device = play.devices[0].parse().map(simic_engine::internals::torch::device_of);
    let free = |device: &Result<tch::Device, _>| device.as_ref().ok().and_then(|device| free_bytes(*device));
    let before = free(&device);
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
    let envs = world.resource::<Experiment>().envs.len();
    let (train, _) = world.resource::<RunClock>().batches_per_step();
    let batch = world.resource::<Experiment>().task.batch_size;
    let env_steps = (steps * envs) as f64 / seconds;
    let mut figures = Figures::new();
    figures.insert("start s".into(), started.into());
    figures.insert("warm-up s".into(), warmed.into());
    figures.insert("env-steps/s".into(), env_steps.into());
    figures.insert("samples/s".into(), (env_steps * (train * batch) as f64).into());
    if let (Some(before), Some(after)) = (before, free(&device)) {
        figures.insert("device MiB".into(), (before.saturating_sub(after) >> 20).into());
    }
    let fallbacks = &world.resource::<SelfTest>().fallbacks;
    if !fallbacks.is_empty() {
        figures.insert("fallbacks".into(), fallbacks.join("; ").into());
    }
    Ok(figures)
}
