//! Grows a network within a budget, and says whether growing was worth it: beside it, at equal compute, stand the given
//! network, the same trained without growth, a wider host, and the grown form from fresh weights.
//!
//! All of them are the same loop over the same data, so a row is a scenario with a few fields set (`play`). What is
//! planted follows from the budget (`budget`); networks are chosen by the validation part, and compared on the test part,
//! which is read once, at the end (`table`).

mod budget;
mod play;
mod table;

pub use budget::{Amount, Budget, Planting, Size, plantings};
pub use play::{Attempt, Base, GrowError, Variant};
pub use table::{Bounded, Choice, Row, Way};

use std::path::Path;

use serde::Serialize;

use crate::controller::SavedFolder;
use crate::data::TaskData;
use crate::engine::Names;
use crate::eval::wider;
use crate::growth::SlotId;
use crate::host::HostPlan;
use crate::keep::TestPart;
use crate::network::{GivenWeights, GrownNetwork, NetworkError};
use crate::scenario::{HostChoice, OptimizerConfig, Scenario, TaskSpec, ron_text};
use table::{Tested, choose};

/// What is to be grown.
pub struct Order<'a> {
    /// The scenario of all rows.
    pub base: Base<'a>,
    /// What the application knows by name.
    pub names: &'a Names,
    /// The most that it may have.
    pub budget: Budget,
    /// The host begins with weights that somebody has trained.
    pub is_given: bool,
    /// They stay as they are.
    pub is_frozen: bool,
    /// Learning rates that are tried for every row; the task's own if empty.
    pub rates: Vec<f64>,
    /// A policy that decides what is planted, in place of blind schedules.
    pub policy: Option<SavedFolder>,
    /// What a given network was trained on: what is still read of it is measured as well.
    pub old: Option<TaskData>,
}

/// What was grown, and what stands beside it.
#[derive(Serialize)]
pub struct Growth {
    /// Which row is the result, and why.
    pub choice: Choice,
    /// In the order of [`Way`].
    pub rows: Vec<Row>,
    /// Each planting at its best learning rate; the best of them by validation is the grown row.
    pub tried: Vec<Row>,
    /// What could not be compared, and why.
    pub notes: Vec<String>,
    /// The result.
    #[serde(skip)]
    pub network: GrownNetwork,
    /// What it was made by.
    #[serde(skip)]
    pub scenario: Scenario,
}

/// What happens while it is grown.
pub enum GrowEvent<'a> {
    /// The first of `of` steps of envs.
    Begins {
        /// What is tried.
        name: &'a str,
        /// Steps of all envs.
        steps: u64,
    },
    /// All envs have played a step.
    Step,
    /// It has been tried.
    Ends {
        /// Percent of the validation part; `None` if nothing was committed.
        validation: Option<f64>,
    },
}

/// Hears what happens.
type Report<'r> = dyn FnMut(GrowEvent) + 'r;

/// Plays all rows, and chooses.
///
/// # Errors
/// [`GrowError`].
pub fn grow(order: &Order, report: &mut Report) -> Result<Growth, GrowError> {
    let prepared = order.base.prepare(&Variant::default())?;
    let task = &prepared.loaded.task;
    let folder = prepared.file.folder.as_deref();
    let data = TaskData::load(task, folder, &order.names.data)?;
    let test = TestPart::of(&data)?.ok_or(GrowError::NoTestPart)?;
    let plan = order.names.hosts.of(&task.host, folder)?.plan(task.classes);
    let given = match &task.weights {
        Some(weights) => GivenWeights::read(&weights.path, folder, &plan)?,
        None => GivenWeights::default(),
    };
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    let plantings = order.grow((&plan, &prepared.loaded.slots, &given), task, report)?;
    let grown = Attempt::best(plantings.iter().map(|(_, attempt)| attempt));
    let host = (&plan, &given, folder);
    let mut others = order.others(host, task, (grown.as_ref(), &data), (&mut notes, report))?;
    others.extend(grown.map(|attempt| (Way::Grown, attempt)));
    others.sort_by_key(|(way, _)| *way as u8);
    let old = order.old.as_ref().map(TestPart::of).transpose()?.flatten();
    let tested = |attempt: &Attempt| -> Result<Tested, NetworkError> {
        Ok(Tested {
            new: test.right(&attempt.network)?,
            old: old.as_ref().map(|old| old.right(&attempt.network)).transpose()?,
        })
    };
    let results = others
        .iter()
        .map(|(_, attempt)| tested(attempt))
        .collect::<Result<Vec<_>, _>>()?;
    let of_growth = others
        .iter()
        .position(|(way, _)| *way == Way::Grown)
        .map(|place| &results[place]);
    for ((way, attempt), result) in others.iter().zip(&results) {
        let reference = of_growth.filter(|_| *way != Way::Grown);
        rows.push(Row::new(*way, order.is_given, attempt, result, reference));
    }
    let choice = choose(&rows, order.is_frozen).ok_or(GrowError::Stopped)?;
    let tried = plantings.iter().map(|(name, attempt)| {
        let row = Row::new(Way::Grown, order.is_given, attempt, &tested(attempt)?, of_growth);
        Ok(Row {
            name: name.clone(),
            ..row
        })
    });
    let tried = tried.collect::<Result<_, NetworkError>>()?;
    let chosen = others.into_iter().find(|(way, _)| *way == choice.way);
    let (_, Attempt { network, scenario, .. }) = chosen.ok_or(GrowError::Stopped)?;
    Ok(Growth {
        choice,
        rows,
        tried,
        notes,
        network,
        scenario,
    })
}

/// All layers with parameters but the last, the head, as `task.freeze` has them.
fn body(plan: &HostPlan) -> String {
    let mut layers = plan.outline().layers;
    layers.pop();
    ron_text(&layers)
}

impl Order<'_> {
    /// What each planting, or the policy, comes to, if it has committed anything, within the budget.
    fn grow(
        &self,
        (plan, slots, given): (&HostPlan, &[SlotId], &GivenWeights),
        task: &TaskSpec,
        report: &mut Report,
    ) -> Result<Vec<(String, Attempt)>, GrowError> {
        // A head that is drawn learns; of other layers that are not given start-up says that they cannot stay.
        let frozen: String = match given.absent.is_empty() || !given.has_body(plan) {
            true => "[\"all\"]".into(),
            false => body(plan),
        };
        let freeze = || self.is_frozen.then(|| ("task.freeze", frozen.clone()));
        let mut variants: Vec<(String, Variant)> = Vec::new();
        if let Some(policy) = &self.policy {
            let variant = Variant {
                sets: freeze().into_iter().collect(),
                controller: "actor_critic",
                policy: Some(policy.clone()),
                ..Variant::default()
            };
            variants.push(("what the policy grows".into(), variant));
        } else {
            let within = (self.budget, self.is_given);
            for planting in plantings(plan, slots, &self.names.blueprints, within) {
                let (slots, blueprints): (Vec<&str>, Vec<&str>) = planting
                    .iter()
                    .map(|(slot, blueprint)| (slot.as_str(), *blueprint))
                    .unzip();
                let mut sets = vec![
                    ("lifecycle.slots", ron_text(&slots)),
                    ("policy.periodic.period", "1".into()),
                    ("policy.periodic.growth.blueprints", ron_text(&blueprints)),
                    ("policy.periodic.growth.max_growths", planting.len().to_string()),
                ];
                sets.extend(freeze());
                let seeds = planting.iter().map(|(slot, blueprint)| format!("{slot} {blueprint}"));
                let seeds: Vec<String> = seeds.collect();
                let variant = Variant {
                    sets,
                    controller: "periodic",
                    ..Variant::default()
                };
                variants.push((format!("growing {}", seeds.join(", ")), variant));
            }
        }
        if variants.is_empty() {
            return Err(GrowError::TooSmall(self.budget));
        }
        let (host, mut found) = (Size::of(plan), Vec::new());
        for (name, variant) in variants {
            let is_grown = |attempt: &Attempt| {
                let measures = &attempt.network.measures;
                let size = Size {
                    parameters: measures.parameters,
                    macs: measures.macs,
                };
                !attempt.network.growth.is_empty() && self.budget.allows(host, size)
            };
            let attempt = self.best_rate(&name, &variant, task, &is_grown, report)?;
            found.extend(attempt.map(|attempt| (name, attempt)));
        }
        Ok(found)
    }

    /// Everything else that the compute of `grown` could have been spent on.
    fn others(
        &self,
        (plan, given, folder): (&HostPlan, &GivenWeights, Option<&Path>),
        task: &TaskSpec,
        (grown, data): (Option<&Attempt>, &TaskData),
        (notes, report): (&mut Vec<String>, &mut Report),
    ) -> Result<Vec<(Way, Attempt)>, GrowError> {
        let fresh = |mut sets: Vec<(&'static str, String)>| {
            if self.is_given {
                sets.push(("task.weights", "None".into()));
            }
            sets
        };
        let equal = |macs: u64| ("run.max_steps", self.equal_steps(grown, macs, task, data).to_string());
        let host = Size::of(plan);
        let mut variants: Vec<(Way, Variant)> = Vec::new();
        let mut add = |way, sets, seeds| {
            let variant = Variant {
                sets,
                seeds,
                ..Variant::default()
            };
            variants.push((way, variant));
        };
        if self.is_given {
            if let Some(name) = given.absent.first() {
                notes.push(format!("no row `as given`: the weights have nothing for {name}"));
            } else {
                let as_it_is = vec![("task.freeze", "[\"all\"]".into()), ("run.max_steps", "1".into())];
                add(Way::Given, as_it_is, None);
            }
            if given.has_body(plan) {
                add(Way::Head, vec![("task.freeze", body(plan)), equal(host.macs)], None);
            }
        }
        add(Way::Trained, vec![equal(host.macs)], None);
        if let HostChoice::Grown(_) = task.host {
            notes.push(
                "a kept network has no wider form, and no fresh weights: name its host by --host for these rows".into(),
            );
        } else if let Some(grown) = grown {
            let measures = &grown.network.measures;
            match wider(
                &task.host,
                task.classes,
                (&self.names.hosts, folder),
                measures.parameters as f64,
            ) {
                Ok(host) => {
                    let macs = Size::of(&self.names.hosts.of(&host, None)?.plan(task.classes)).macs;
                    let sets = fresh(vec![("task.host", ron_text(&host)), equal(macs)]);
                    add(Way::Widened, sets, None);
                }
                Err(error) => notes.push(format!("no wider host: {error}")),
            }
            let seeds = Some(grown.committed.clone());
            let slots = ("lifecycle.slots", ron_text(&grown.slots));
            add(Way::FromScratch, fresh(vec![equal(measures.macs), slots]), seeds);
        }
        let mut played = Vec::new();
        for (way, variant) in variants {
            let name = way.name(self.is_given);
            let attempt = match way {
                Way::Given => self.attempt(name, &variant, report)?,
                _ => self.best_rate(name, &variant, task, &|_| true, report)?,
            };
            played.push((way, attempt.ok_or(GrowError::Stopped)?));
        }
        Ok(played)
    }

    /// Steps in which a network of `macs` takes what `grown` took; the task's where nothing was grown.
    fn equal_steps(&self, grown: Option<&Attempt>, macs: u64, task: &TaskSpec, data: &TaskData) -> u32 {
        let sizes = data.sizes();
        let trained =
            (task.train_batches(sizes.train, 1) * task.batch_size).min(sizes.train.max(task.batch_size)) as u64;
        // Backward takes twice what forward takes.
        let step = macs.saturating_mul(3 * trained + sizes.val as u64).max(1);
        grown.map_or(task.max_steps, |grown| {
            u32::try_from((grown.macs + step / 2) / step).unwrap_or(u32::MAX).max(1)
        })
    }

    /// The best attempt over the learning rates, of those that are `wanted`.
    fn best_rate(
        &self,
        name: &str,
        variant: &Variant,
        task: &TaskSpec,
        wanted: &dyn Fn(&Attempt) -> bool,
        report: &mut Report,
    ) -> Result<Option<Attempt>, GrowError> {
        if self.rates.is_empty() {
            return Ok(self.attempt(name, variant, report)?.filter(wanted));
        }
        let mut best: Option<Attempt> = None;
        for &rate in &self.rates {
            let mut variant = variant.clone();
            variant
                .sets
                .push(("task.host_opt", ron_text(&at_rate(task.host_opt, rate))));
            variant
                .sets
                .push(("task.seed_opt", ron_text(&at_rate(task.seed_opt, rate))));
            let attempt = self.attempt(&format!("{name}, rate {rate}"), &variant, report)?;
            if let Some(attempt) = attempt.filter(wanted) {
                best = Some(attempt.or(best.take()));
            }
        }
        Ok(best)
    }

    fn attempt(&self, name: &str, variant: &Variant, report: &mut Report) -> Result<Option<Attempt>, GrowError> {
        let prepared = self.base.prepare(variant)?;
        let steps = u64::from(prepared.loaded.task.max_steps);
        report(GrowEvent::Begins { name, steps });
        let attempt = self.base.play(variant, |_| report(GrowEvent::Step))?;
        if self.base.stop.is_requested() {
            return Err(GrowError::Stopped);
        }
        let validation = attempt.as_ref().map(Attempt::validation);
        report(GrowEvent::Ends { validation });
        Ok(attempt)
    }
}

/// The same optimizer at another rate.
fn at_rate(mut config: OptimizerConfig, rate: f64) -> OptimizerConfig {
    match &mut config {
        OptimizerConfig::Sgd { lr, .. } | OptimizerConfig::Adamw { lr, .. } => *lr = rate,
    }
    config
}
