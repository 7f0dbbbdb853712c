//! The rows of a `grow`: the settings and the length of each, so that all take the same compute.

use std::collections::BTreeMap;

use super::Order;
use super::budget::{Size, plantings};
use super::play::{Attempt, Effort, Entry, GrowError, Variant, Way};
use super::shelf::{self, Ordered};
use crate::checkpoint::scenario_fields;
use crate::controller::WEIGHTS_FILE;
use crate::data::TaskData;
use crate::engine::Prepared;
use crate::eval::{PlayEvent, Report, equal_steps, wider};
use crate::growth::SlotId;
use crate::hash::{sha256, sha256_of};
use crate::host::{HostPlan, OpCost};
use crate::scenario::{Loaded, OptimizerConfig, ron_text};
use crate::torch::PlainTensor;
use crate::validation::macs_of_training;

/// All layers, in the form of `task.freeze`.
const ALL: &str = "[\"all\"]";
/// The largest share of the grown network's compute by which a row may miss it without a note: steps are whole.
const WHOLE_STEPS: f64 = 0.05;

/// A planting by its name, and its result.
type Planted = (String, Entry);

/// All inputs of the trainings, by name. Different values mean different trainings.
pub fn ordered<'w>(
    prepared: &Prepared,
    data: &TaskData,
    weights: impl Iterator<Item = (&'w String, &'w PlainTensor)>,
    others: &[(&str, String)],
) -> Ordered {
    let weights = sha256_of(weights.flat_map(|(name, values)| [name.as_bytes(), values.bytes()]));
    let fields = scenario_fields(&prepared.loaded.scenario).into_iter();
    let mut ordered: Ordered = fields.map(|(path, value)| (path, value.to_string())).collect();
    let own = [
        ("the engine", env!("CARGO_PKG_VERSION").into()),
        ("the weights (hash)", weights),
        ("the data (hash)", data.hash().into()),
    ];
    let all = own.into_iter().chain(others.iter().cloned());
    ordered.extend(all.map(|(name, value)| (name.to_owned(), value)));
    ordered
}

impl Order<'_> {
    /// The inputs of the attempts besides the scenario, by name.
    pub(super) fn own_fields(&self, ways: &[Way]) -> [(&'static str, String); 5] {
        let policy = self.policy.as_ref();
        let policy = policy.and_then(|policy| policy.file(WEIGHTS_FILE).ok()).map(sha256);
        [
            ("--budget", self.budget.to_string()),
            ("--weights", self.is_given.to_string()),
            ("--rates", format!("{:?}", self.rates)),
            ("the policy (hash)", policy.unwrap_or_default()),
            // Different names of classes leave a row out.
            ("the rows", format!("{ways:?}")),
        ]
    }

    /// Settings of each planting, or of the policy.
    pub(super) fn growing(&self, prepared: &Prepared, plan: &HostPlan) -> Vec<(String, Variant)> {
        if let Some(policy) = &self.policy {
            let variant = Variant {
                controller: Some("actor_critic"),
                policy: Some(policy.clone()),
                ..Variant::default()
            };
            return vec![("what the policy grows".into(), variant)];
        }
        let (slots, blueprints) = (&prepared.loaded.slots, &self.names.blueprints);
        let plantings = plantings(plan, slots, blueprints, self.budget, self.is_given).into_iter();
        let variants = plantings.map(|planting| {
            let (slots, blueprints): (Vec<&str>, Vec<&str>) = planting
                .iter()
                .map(|(slot, blueprint)| (slot.as_str(), *blueprint))
                .unzip();
            let sets = vec![
                ("lifecycle.slots", ron_text(&slots)),
                ("policy.controller", "\"periodic\"".into()),
                ("policy.periodic.period", "1".into()),
                ("policy.periodic.blueprints", ron_text(&blueprints)),
                ("policy.periodic.max_growths", planting.len().to_string()),
            ];
            let seeds = planting.iter().map(|(slot, blueprint)| format!("{slot} {blueprint}"));
            let seeds: Vec<String> = seeds.collect();
            let variant = Variant {
                sets,
                controller: Some("periodic"),
                ..Variant::default()
            };
            (format!("growing {}", seeds.join(", ")), variant)
        });
        variants.collect()
    }
}

/// The rows while they are played.
pub struct Playing<'a, 'r> {
    pub order: &'a Order<'a>,
    pub prepared: &'a Prepared,
    pub data: &'a TaskData,
    pub plan: &'a HostPlan,
    /// Names and variants of the plantings.
    pub growing: Vec<(String, Variant)>,
    /// Rows to compare with the grown one.
    pub ways: Vec<Way>,
    pub report: &'a mut Report<'r>,
    /// Attempts that have begun.
    pub number: usize,
    /// Effort of the current row.
    pub effort: Effort,
    pub notes: Vec<String>,
    /// Networks whose training diverged, and all, by learning rate.
    pub diverged: BTreeMap<String, [usize; 2]>,
}

impl Playing<'_, '_> {
    /// Reports a note about the following rows.
    pub fn note(&mut self, note: String) {
        (self.report)(PlayEvent::Note(&note));
        self.notes.push(note);
    }

    /// Reports the rates at which trainings diverged.
    pub fn note_diverged(&mut self) {
        for (rate, [diverged, tried]) in std::mem::take(&mut self.diverged) {
            if diverged > 0 {
                self.note(format!(
                    "at rate {rate} {diverged} of {tried} networks diverged and were rolled back"
                ));
            }
        }
    }

    /// The effort of the row that has been played.
    fn spent(&mut self) -> Effort {
        std::mem::take(&mut self.effort)
    }

    /// Total number of attempts, and of the networks that they train.
    fn all(&self) -> (usize, u64) {
        let (plantings, rates) = (self.growing.len(), self.order.rates.len().max(1));
        let trained = self.ways.iter().filter(|way| **way != Way::Given).count();
        let untrained = self.ways.len() - trained;
        let tries = self.prepared.loaded.scenario.run.n_envs;
        let networks = plantings * rates * tries * (1 + trained) + untrained;
        (rates * (plantings + trained) + untrained, networks as u64)
    }

    /// Results of each planting, or of the policy, that has grown within the budget, and their best with the effort of all.
    pub fn grow(&mut self) -> Result<(Vec<Planted>, Option<Entry>), GrowError> {
        let (host, budget) = (Size::of(self.plan), self.order.budget);
        let is_grown = |attempt: &Attempt| {
            let measures = &attempt.network.measures;
            let size = Size {
                parameters: measures.parameters,
                macs: measures.macs,
            };
            !attempt.network.growth.is_empty() && budget.allows(host, size)
        };
        let entry = |attempt, effort| Entry {
            way: Way::Grown,
            attempt,
            effort,
            note: None,
        };
        let (mut plantings, mut best, mut all) = (Vec::new(), None, Effort::default());
        for (name, variant) in self.growing.clone() {
            let attempt = self.best_rate(&name, &variant, &is_grown)?;
            let effort = self.spent();
            all += effort;
            if let Some(attempt) = attempt {
                best = Some(attempt.clone().or(best.take()));
                plantings.push((name, entry(attempt, effort)));
            }
        }
        Ok((plantings, best.map(|best| entry(best, all))))
    }

    /// Plays every other use of the compute of `grown`: as many networks of each, for as many
    /// multiply-accumulates each as the grown one took, or the host in the task's steps where nothing has grown.
    pub fn others(&mut self, grown: Option<&Entry>) -> Result<Vec<Entry>, GrowError> {
        let equal = match grown {
            Some(grown) => grown.attempt.macs,
            None => u64::from(self.prepared.loaded.task.max_steps) * self.step_macs(self.prepared, None)?,
        };
        let mut entries = Vec::new();
        for way in self.ways.clone() {
            let Some(mut variant) = self.variant(way, grown)? else {
                continue;
            };
            let name = way.name(self.order.is_given);
            let attempt = if way == Way::Given {
                self.attempt(name, None, &variant)?
            } else {
                let prepared = self.order.base.prepare(&variant)?;
                let step = self.step_macs(&prepared, grown.filter(|_| way == Way::FromScratch))?;
                let steps = equal_steps(equal as f64, step as f64);
                variant.sets.push(("run.max_steps", steps.to_string()));
                self.best_rate(name, &variant, &|_| true)?
            };
            let Some(attempt) = attempt else {
                self.note(format!("no row `{name}`: none of its networks was measured"));
                self.spent();
                continue;
            };
            let share = attempt.macs as f64 / equal.max(1) as f64;
            let note = match way {
                Way::Given => Some("not trained".into()),
                _ => ((share - 1.0).abs() > WHOLE_STEPS).then(|| format!("{share:.2} times")),
            };
            entries.push(Entry {
                effort: self.spent(),
                way,
                attempt,
                note,
            });
        }
        Ok(entries)
    }

    /// Settings of a row, without its steps. `None` if the row doesn't exist.
    fn variant(&mut self, way: Way, grown: Option<&Entry>) -> Result<Option<Variant>, GrowError> {
        let task = &self.prepared.loaded.task;
        let rounds = ("run.rounds", self.growing.len().to_string());
        let fresh = [("task.weights", "None".into()), ("task.freeze", "None".into())];
        let mut sets: Vec<(&'static str, String)> = match way {
            Way::Given => vec![("task.freeze", ALL.into()), ("run.max_steps", "1".into())],
            Way::Head => vec![("task.freeze", body(self.plan)), rounds],
            Way::Trained => vec![rounds],
            Way::Widened | Way::FromScratch => fresh.into_iter().chain([rounds]).collect(),
            Way::Grown => return Ok(None),
        };
        match (way, grown) {
            (Way::Widened | Way::FromScratch, None) => return Ok(None),
            (Way::Widened, Some(grown)) => {
                let size = grown.attempt.network.measures.parameters as f64;
                let (hosts, folder) = (&self.order.names.hosts, self.prepared.file.folder.as_deref());
                match wider(&task.host, task.classes, size, hosts, folder) {
                    Ok(host) => sets.push(("task.host", ron_text(&host))),
                    Err(error) => {
                        self.note(format!("no wider host: {error}"));
                        return Ok(None);
                    }
                }
            }
            (Way::FromScratch, Some(grown)) => {
                let growth = &grown.attempt.network.growth;
                let slots: Vec<SlotId> = growth.iter().map(|seed| seed.slot).collect();
                sets.push(("lifecycle.slots", ron_text(&slots)));
                sets.push(("initial_topology", ron_text(&grown.attempt.topology())));
            }
            _ => {}
        }
        Ok(Some(Variant {
            sets,
            is_single: way == Way::Given,
            ..Variant::default()
        }))
    }

    /// Multiply-accumulates of a step of the prepared host, or of the form that has `grown`, by the same rule as the count of
    /// those that were taken.
    fn step_macs(&self, prepared: &Prepared, grown: Option<&Entry>) -> Result<u64, GrowError> {
        let Loaded { scenario, task, .. } = &prepared.loaded;
        let costs = match grown {
            Some(grown) => vec![OpCost {
                macs: grown.attempt.network.measures.macs,
                positions: 0,
                is_frozen: false,
            }],
            None => {
                let design = self.order.names.hosts.of(&task.host, prepared.file.folder.as_deref())?;
                let frozen = task.freeze.as_deref().unwrap_or_default();
                design.plan(task.classes).frozen(frozen).op_costs()
            }
        };
        let training = macs_of_training(&costs, &[]);
        let validation: u64 = costs.iter().map(|cost| cost.macs).sum();
        let feed = self.data.arithmetic(task, scenario.run.n_envs)?;
        Ok(training * feed.train_samples() as u64 + validation * feed.val_samples() as u64)
    }

    /// The best attempt over the learning rates, of those that are `wanted`.
    fn best_rate(
        &mut self,
        name: &str,
        variant: &Variant,
        wanted: &dyn Fn(&Attempt) -> bool,
    ) -> Result<Option<Attempt>, GrowError> {
        let (rates, task) = (&self.order.rates, &self.prepared.loaded.task);
        if rates.is_empty() {
            return Ok(self.attempt(name, None, variant)?.filter(wanted));
        }
        let mut best: Option<Attempt> = None;
        for &rate in rates {
            let mut variant = variant.clone();
            let opts = [("task.host_opt", task.host_opt), ("task.seed_opt", task.seed_opt)];
            let opts = opts.map(|(path, opt)| (path, ron_text(&at_rate(opt, rate))));
            variant.sets.extend(opts);
            let attempt = self.attempt(name, Some(rate), &variant)?;
            if let Some(attempt) = attempt.filter(wanted) {
                best = Some(attempt.or(best.take()));
            }
        }
        Ok(best)
    }

    /// Plays it, unless it was played before; the best network that was measured.
    fn attempt(&mut self, row: &str, rate: Option<f64>, variant: &Variant) -> Result<Option<Attempt>, GrowError> {
        let (order, data) = (self.order, self.data);
        let prepared = order.base.prepare(variant)?;
        let run = &prepared.loaded.scenario.run;
        let (attempts, all) = self.all();
        self.number += 1;
        let at_rate = rate.map_or_else(String::new, |rate| format!(", rate {rate}"));
        let networks = match variant.is_single {
            true => 1,
            false => u64::from(run.rounds) * run.n_envs as u64,
        };
        (self.report)(PlayEvent::Begins {
            name: &format!("{}/{attempts} {row}{at_rate}", self.number),
            share: networks as f64 / all as f64,
            steps: u64::from(run.rounds) * u64::from(prepared.loaded.task.max_steps),
        });
        let kept = shelf::read(&order.place, self.number);
        let is_kept = kept.is_some();
        let played = match kept {
            Some(played) => Some(played).filter(|_| !order.base.stop.is_requested()),
            None => {
                let report = &mut *self.report;
                order.base.play(&prepared, variant, data, |_| report(PlayEvent::Step))?
            }
        };
        let played = played.ok_or_else(|| GrowError::Stopped(order.place.clone()))?;
        if !is_kept {
            shelf::put(&order.place, self.number, &played)?;
        }
        self.effort += played.effort;
        let (diverged, tried) = (played.diverged, played.effort.tried);
        let rate = prepared.loaded.task.host_opt.lr();
        let best = played.network.zip(played.macs).map(|(network, macs)| Attempt {
            network,
            macs,
            loaded: prepared.loaded,
        });
        let accuracy = best.as_ref().map(Attempt::validation);
        (self.report)(PlayEvent::Ends { accuracy, is_kept });
        if !variant.is_single {
            let at_rate = self.diverged.entry(rate.to_string()).or_default();
            at_rate[0] += diverged;
            at_rate[1] += tried;
        }
        Ok(best)
    }
}

/// All layers with parameters except the last, the head, in the form of `task.freeze`.
fn body(plan: &HostPlan) -> String {
    let mut layers = plan.outline().layers;
    layers.pop();
    ron_text(&layers)
}

/// The same optimizer at another rate.
fn at_rate(mut config: OptimizerConfig, rate: f64) -> OptimizerConfig {
    match &mut config {
        OptimizerConfig::Sgd { lr, .. } | OptimizerConfig::Adamw { lr, .. } => *lr = rate,
    }
    config
}
