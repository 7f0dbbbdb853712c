//! Numbers that plugins measure at the end of every round: they are recorded with the round, and drawn where its other
//! numbers are.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;

use super::encoding::Num;
use crate::schema::{Registry, registry};

/// Measures the round that has just been played ([`Work::MeasureRound`](crate::schedule::Work)); its envs, hosts and seeds are
/// still there. NaN: nothing to record.
pub type Measure = dyn Fn(&mut World) -> f64 + Send + Sync;

registry! {
    /// The metrics that plugins add, by name. A summary names the measured quantity, and its unit.
    ///
    /// ```
    /// # extern crate simic_core as simic_engine;
    /// use simic_engine::prelude::*;
    ///
    /// fn register(app: &mut App) {
    ///     let mut metrics = app.world_mut().resource_mut::<Metrics>();
    ///     metrics.register("envs", "envs of the run", Arc::new(|world: &mut World| {
    ///         world.query::<&EnvId>().iter(world).count() as f64
    ///     }));
    /// }
    /// ```
    pub struct Metrics(Measure);
}

impl Default for Metrics {
    fn default() -> Self {
        Self(Registry::new("metric"))
    }
}

/// The round's measurements, by the names of metrics.
#[derive(Resource, Default)]
pub(crate) struct MeasuredRound(pub BTreeMap<String, Num>);

/// Measures the round by all metrics.
pub(crate) fn measure_round(world: &mut World) {
    let metrics = world.resource::<Metrics>().clone();
    let measured = metrics
        .parts()
        .map(|(name, measure)| (name.to_owned(), Num(measure(world))))
        .filter(|(_, value)| !value.0.is_nan());
    let measured = measured.collect();
    world.insert_resource(MeasuredRound(measured));
}
