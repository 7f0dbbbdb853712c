//! An application, with something of its own in every place where the engine takes it: a controller, a host, a blueprint, a
//! term of the reward, a data set, and a component of every env, which it tells of.

use std::convert::Infallible;
use std::path::Path;

use serde::{Deserialize, Serialize};
use simic_engine::internals::controller::SavedFolder;
use simic_engine::internals::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, Tempo};
use simic_engine::internals::host::{Conv, ResidualBlock};
use simic_engine::internals::prior_art::PriorArtPlugin;
use simic_engine::internals::random::{ContentRng, mix};
use simic_engine::internals::telemetry::{Event, Num, TelemetryOutbox, UserEvent, UserValue};
use simic_engine::prelude::*;

use super::laws::LawsPlugin;
use crate::custom_data::shades;
use crate::custom_names::ChannelScale;

/// Adds all of it, and the systems that look whether the laws of growth hold.
pub fn register(app: &mut App) {
    app.add_plugins((PriorArtPlugin, LawsPlugin));
    let world = app.world_mut();
    let mut controllers = world.resource_mut::<ControllerRegistry>();
    controllers.register(
        "alternating",
        "plants every other time",
        Arc::new(|context| {
            let blueprint = context.blueprint("policy.controller", "channel_scale")?;
            Ok(Box::new(Alternating { asked: 0, blueprint }))
        }),
    );
    controllers.register(
        "unruly",
        "orders what is not legal, too",
        Arc::new(|context| {
            let (seed, blueprints) = (context.scenario.run.seed, context.blueprints.len());
            Ok(Box::new(Unruly { seed, blueprints }))
        }),
    );
    world
        .resource_mut::<BlueprintRegistry>()
        .register(Arc::new(ChannelScale::Sound));
    world
        .resource_mut::<HostRegistry>()
        .register("short", "a stem and a residual block", Arc::new(short));
    world
        .resource_mut::<RewardTerms>()
        .register("thrift", "a price on every seed", Arc::new(thrift));
    world.resource_mut::<DataRegistry>().register(
        "shades",
        "ten shades of gray",
        Arc::new(|_: &DataRequest| Ok::<_, Infallible>(shades(0))),
    );
    app.add_systems(StepEnd, count_rises.before(EngineSet::Record));
    app.keep_in_rounds::<Rises>("rises");
}

fn short(classes: i64) -> HostPlan {
    let stem = HostPlan::new(1, 8).layer("stem", Conv::new(4, 3)).slot(0, 0);
    stem.layer("block", ResidualBlock::new(8, 2)).slot(0, 1).head(classes)
}

fn thrift(inputs: &RewardInputs) -> f64 {
    -0.05 * inputs.slots.iter().filter(|slot| slot.after.is_some()).count() as f64
}

/// The number of times that the accuracy of an env has risen in its episode.
#[derive(Component, Clone, Debug, Default, Serialize, Deserialize)]
struct Rises {
    last: f64,
    count: u32,
}

fn count_rises(
    mut envs: Query<(&EnvId, &ValMetrics, &mut Rises)>,
    (clock, experiment): (Res<RunClock>, Res<Experiment>),
    mut outbox: ResMut<TelemetryOutbox>,
) {
    for (id, val, mut rises) in &mut envs {
        if clock.step() == 1 {
            *rises = Rises::default();
        }
        rises.count += u32::from(val.accuracy_percent > rises.last);
        rises.last = val.accuracy_percent;
        let count = UserValue::Number(Num(f64::from(rises.count)));
        let (name, fields) = ("rises".into(), [("count".into(), count)].into_iter().collect());
        let event = UserEvent { name, fields };
        outbox.push(Event::env(experiment.context(id, &clock), event));
    }
}

/// Remembers across rounds how often it was asked, and plants every other time.
struct Alternating {
    asked: u32,
    blueprint: usize,
}

impl Controller for Alternating {
    fn name(&self) -> &str {
        "alternating"
    }

    fn decide(&mut self, _: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let mut decide = |masks: &MaskSet| {
            self.asked += 1;
            let slot = masks.slots_for(LifecycleOp::Germinate).iter().next();
            let plant = slot.map(|slot| LifecycleCommand::Germinate {
                slot,
                blueprint: self.blueprint,
                style: GerminationStyle::SigmoidAdd,
                tempo: Tempo::Fast,
                target: AlphaTarget::Full,
            });
            let command = plant.filter(|command| self.asked % 2 == 1 && masks.allows(command));
            Decision::new(command.unwrap_or(LifecycleCommand::Wait), masks, self.asked.to_string())
        };
        Ok(masks.iter().map(&mut decide).collect())
    }

    fn save(&self, folder: &Path) -> Result<(), PolicyError> {
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join("asked"), self.asked.to_string()).expect("a file");
        Ok(())
    }

    fn load(&mut self, saved: &SavedFolder) -> Result<(), PolicyError> {
        let text = std::str::from_utf8(saved.file("asked")?).expect("a number");
        self.asked = text.parse().expect("a number");
        Ok(())
    }
}

/// Draws its orders, legal or not, for slots and blueprints that do not exist, too.
struct Unruly {
    seed: u64,
    blueprints: usize,
}

impl Unruly {
    fn draw(&self, rng: &mut ContentRng, slots: usize) -> LifecycleCommand {
        fn one_of<T: Copy>(rng: &mut ContentRng, items: &[T]) -> T {
            items[rng.below(items.len() as u64) as usize]
        }
        let slot = rng.below(slots as u64) as usize;
        let blueprint = rng.below(self.blueprints as u64 + 1) as usize;
        let style = one_of(rng, &GerminationStyle::ALL);
        let tempo = one_of(rng, &Tempo::ALL);
        let target = one_of(rng, &AlphaTarget::ALL);
        let speed = one_of(rng, &AlphaSpeed::ALL);
        let curve = one_of(rng, &AlphaCurveAction::ALL);
        match one_of(rng, &LifecycleOp::ALL) {
            LifecycleOp::Wait => LifecycleCommand::Wait,
            LifecycleOp::Germinate => LifecycleCommand::Germinate {
                slot,
                blueprint,
                style,
                tempo,
                target,
            },
            LifecycleOp::SetAlphaTarget => LifecycleCommand::SetAlphaTarget {
                slot,
                style,
                target,
                speed,
                curve,
            },
            LifecycleOp::Prune => LifecycleCommand::Prune { slot, speed, curve },
            LifecycleOp::Commit => LifecycleCommand::Commit { slot },
            LifecycleOp::Advance => LifecycleCommand::Advance { slot },
        }
    }
}

impl Controller for Unruly {
    fn name(&self) -> &str {
        "unruly"
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let decisions = view.envs.iter().zip(masks).map(|(env, masks)| {
            let moment = (env.row.episode << 32) | u64::from(view.step);
            let mut rng = ContentRng::from_seed(mix(mix(self.seed) ^ moment));
            let mut command = self.draw(&mut rng, masks.slots() + 1);
            // Of three commands two are legal as likely as not.
            if rng.below(3) > 0 && !masks.allows(&command) {
                command = self.draw(&mut rng, masks.slots());
            }
            Decision::new(command, masks, "drawn")
        });
        Ok(decisions.collect())
    }
}
