//! Adapts a trained network to other images, with the given network still inside, bit for bit: the running statistics of its norms,
//! their factors and offsets and the head get a second set of values, and small seeds grow in its slots, a *domain*.
//!
//! All rows are tuned alike: cross-validation over the few images chooses the learning rate and the size of the seeds
//! (`folds`, `tuning`), then one training learns from all of them (`play`). The table compares domains with fine-tuned copies,
//! which must be kept in addition to the given network (`methods`, `table`).

mod folds;
mod methods;
mod play;
mod table;
mod tuning;

pub use table::{Adapted, RECOGNISED, Row};

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::data::{Part, TaskData};
use crate::engine::{Names, Prepared};
use crate::eval::{PlayEvent, Report};
use crate::grow::{Base, GrowError, Ordered, Variant, open_place, ordered};
use crate::host::HostPlan;
use crate::keep::TestPart;
use crate::network::{DataCard, GivenWeights, GrownNetwork, Measures};
use folds::{Folds, spread};
use methods::{Method, Parts, Room};
use play::Trainer;
use table::table;
use tuning::{Tuned, refit, trainings_of, tune};

/// Updates of a training. They determine its passes over the data.
const UPDATES: usize = 200;
/// Samples of a batch, or a quarter of the images of a fold's network if that is less.
const BATCH: usize = 40;
/// Learning rates that are tried for every row.
pub const RATES: [f64; 3] = [0.03, 0.1, 0.3];

/// Fields that each row sets itself.
const OWN: &str = "task.freeze task.host_opt task.seed_opt training.host_lr training.seed_lr initial_topology";

/// A network and the data to adapt it to.
pub struct Order<'a> {
    /// The scenario of all trainings.
    pub base: Base<'a>,
    /// Names that the application registers.
    pub names: &'a Names,
    /// The file of the given network.
    pub given: PathBuf,
    /// Learning rates that are tried for every row.
    pub rates: Vec<f64>,
    /// The largest addition, in sizes of the given network.
    pub budget: f64,
    /// Data that the given network was trained on.
    pub old: Option<TaskData>,
    /// Name of the domain.
    pub domain: String,
    /// Folder of the result. It keeps finished trainings until then.
    pub place: PathBuf,
    /// `true` to remove everything in the folder and play again.
    pub is_forced: bool,
}

/// Adapts the network, and continues with the parts that weren't played before.
///
/// # Errors
/// [`GrowError`].
pub fn adapt(order: &Order, report: &mut Report) -> Result<Adapted, GrowError> {
    let refused = |why: String| Err(GrowError::Refused(why));
    let mut set = order.base.overrides.iter().map(|set| &set.path);
    if let Some(path) = set.find(|path| OWN.split(' ').any(|own| path.starts_with(own))) {
        return refused(format!("{path} can't be set: each row of the table has its own"));
    }
    let prepared = order.base.prepare(&Variant::default())?;
    let (task, folder) = (&prepared.loaded.task, prepared.file.folder.as_deref());
    let kept = GrownNetwork::load_any(&order.given)?.ok();
    GrownNetwork::check_domain(kept.as_ref(), &order.domain)?;
    let mut data = TaskData::load(task, folder, &order.names.data)?;
    check_reading(kept.as_ref(), &data)?;
    let known = order.names.hosts.classes(task, folder);
    let is_of_same = known.len() as i64 != task.classes || data.compare_classes(&known);
    let plan = order.names.hosts.of(&task.host, folder)?.plan(task.classes);
    let name = order.given.display().to_string();
    let given = GivenWeights::read(&name, None, &plan)?;
    if !given.has_body(&plan) || (!given.absent.is_empty() && given.other_classes.is_none()) {
        let absent = given.absent.join(", ");
        return refused(format!(
            "the weights don't contain {absent}; give those of a whole network"
        ));
    }
    let has_head = given.absent.is_empty() && is_of_same;
    let origins = &prepared.loaded.origins;
    let slots = match origins.keys().any(|path| path.starts_with("lifecycle.slots")) {
        true => prepared.loaded.slots.clone(),
        false => plan.slots_after_layers(),
    };
    let old_classes = given.other_classes.map_or(task.classes, |classes| classes as i64);
    let old_plan = order.names.hosts.of(&task.host, folder)?.plan(old_classes);
    let size = old_plan.outline().parameters as f64;
    let room = Room {
        slots: &slots,
        blueprints: &order.names.blueprints,
        budget: order.budget * size,
    };
    let (parts, folds) = (Parts::of(&plan, &room)?, Folds::new(&data)?);
    let least = parts.head_size as f64 / size;
    if !has_head && least > order.budget {
        let budget = order.budget;
        return refused(format!(
            "nothing fits into a budget of {budget}x: a head for these classes adds {least:.2}x"
        ));
    }
    let batch = BATCH.min((folds.least() / 4).max(1));
    let steps = UPDATES.div_ceil((folds.least() / batch).max(1));
    if let Some(old) = &order.old {
        let fits = old.check_host(plan.topology(), plan.input());
        fits.map_err(|error| GrowError::Refused(format!("--old: {error}")))?;
        if !has_head {
            report(PlayEvent::Note("--old isn't read: the new images have other classes"));
        }
    }
    // Otherwise it would learn from other answers.
    let of_same = order.old.as_ref().filter(|_| has_head);
    let replayed = of_same.map(|old| part_of(old, folds.len(), task.classes)).transpose()?;
    let mut trainer = Trainer {
        base: Base {
            sets: with_batches(&order.base, batch),
            threads: 1,
            ..order.base.clone()
        },
        order,
        parts,
        folds,
        replayed,
        steps: steps as u32,
        ordered: 0,
        planned: 0,
    };
    let ordered = what_was_ordered(order, &prepared, &data, &given);
    let _lock = open_place(&order.place, &ordered, order.is_forced)?;
    for note in data.notes() {
        report(PlayEvent::Note(note));
    }
    let methods = methods(&trainer, has_head);
    trainer.planned = trainings_of(&methods, &order.rates);
    let mut tuned: Vec<Tuned> = Vec::new();
    for method in methods {
        tuned.push(tune(&mut trainer, method, &tuned, report)?);
    }
    let outcomes = refit(&mut trainer, tuned, report)?;
    let given = match kept {
        // A given module doesn't say how it reads pixels.
        Some(kept) if kept.data.hash.is_empty() => GrownNetwork {
            data: card_like(&outcomes[0].network),
            ..kept
        },
        Some(kept) => kept,
        None => given_network(&old_plan, &name, &outcomes[0].network)?,
    };
    let old = of_same.map(TestPart::of).transpose()?.flatten();
    let wanted = (order.domain.as_str(), order.budget);
    table(wanted, given, outcomes, TestPart::of(&data)?.as_ref(), old.as_ref())
}

/// Refuses images that need other constants than the given network's: the file of a network has one set for all domains.
fn check_reading(kept: Option<&GrownNetwork>, data: &TaskData) -> Result<(), GrowError> {
    let (Some(kept), TaskData::Images(set)) = (kept.filter(|kept| !kept.data.hash.is_empty()), data) else {
        return Ok(());
    };
    let given = [kept.data.scale.as_slice(), &kept.data.offset].concat();
    let new = [set.a.as_slice(), &set.b].concat();
    let is_close = |(one, other): (&f32, &f32)| (one - other).abs() <= 1e-4 * one.abs().max(other.abs());
    if given.len() == new.len() && given.iter().zip(&new).all(is_close) {
        return Ok(());
    }
    let [was, is] = [&given, &new].map(|pair| format!("pixel * {:?} + {:?}", pair[0], pair[pair.len() / 2]));
    Err(GrowError::Refused(format!(
        "the given network reads {was}, and these images would be read as {is}; leave out --normalise, and give pixels of the same range"
    )))
}

/// Rows in the order in which they are played. A row comes after the one that it begins with. `has_head`: the given head is for
/// the same classes.
fn methods(trainer: &Trainer, has_head: bool) -> Vec<Method> {
    let mut methods = vec![Method::StatisticsAndHead, Method::Head, Method::Norms];
    if has_head {
        methods.extend([Method::Given, Method::Statistics]);
    }
    methods.extend(trainer.parts.widths().map(Method::Seeds));
    methods.extend([Method::CopyKept, Method::Copy]);
    methods.extend(trainer.replayed.as_ref().map(|_| Method::Replayed));
    methods
}

/// The fields of the base, and those that depend on the number of images, unless they are set.
fn with_batches(base: &Base, batch: usize) -> Vec<(&'static str, String)> {
    let own = [
        ("task.batch_size", batch.to_string()),
        ("task.batches_per_step", "full".into()),
    ];
    base.sets.iter().cloned().chain(own).collect()
}

/// As many old images as there are new ones.
fn part_of(old: &TaskData, count: usize, classes: i64) -> Result<Part, GrowError> {
    match old {
        TaskData::Images(set) if set.train.labels.iter().any(|&label| label >= classes) => Err(GrowError::Refused(
            format!("--old: its images have more than the {classes} classes of the network"),
        )),
        TaskData::Images(set) => Ok(spread(&set.train, count)?),
        TaskData::Tokens(_) => Err(GrowError::Refused("--old: it holds texts; give images".into())),
    }
}

/// All inputs of the trainings, by name.
fn what_was_ordered(order: &Order, prepared: &Prepared, data: &TaskData, given: &GivenWeights) -> Ordered {
    let old = order.old.as_ref().map_or("none", TaskData::hash);
    let own = [
        ("--rates", format!("{:?}", order.rates)),
        ("--budget", format!("{}x", order.budget)),
        ("--old (hash)", old.into()),
    ];
    ordered(prepared, data, given.tensors.iter(), &own)
}

/// The given network of a file of weights, with the head of the file.
fn given_network(plan: &HostPlan, path: &str, like: &GrownNetwork) -> Result<GrownNetwork, GrowError> {
    let tensors = GivenWeights::read(path, None, plan)?.tensors;
    let parameters = plan.outline().parameters;
    let macs = plan.op_costs().iter().map(|cost| cost.macs).sum();
    Ok(GrownNetwork {
        graph: plan.graph(),
        parameters: tensors,
        measures: Measures {
            validation: None,
            test: None,
            parameters,
            macs,
            host_parameters: parameters,
            host_macs: macs,
        },
        data: card_like(like),
        origin: like.origin.clone(),
        growth: Vec::new(),
        domains: BTreeMap::new(),
    })
}

/// The card of a given network that doesn't say which data it has learnt from: only how it reads pixels.
fn card_like(like: &GrownNetwork) -> DataCard {
    let unknown = || "unknown".to_owned();
    DataCard {
        task: unknown(),
        name: unknown(),
        hash: unknown(),
        classes: Vec::new(),
        validation: None,
        test: None,
        ..like.data.clone()
    }
}
