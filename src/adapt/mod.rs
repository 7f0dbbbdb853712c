//! Adapts a trained network to other images, with the given network still inside, bit for bit: the running statistics of its norms,
//! their factors and offsets and the head get a second set of values, and small seeds grow in its slots, a *domain*.
//!
//! All rows are tuned alike: the learning rate, and the size of the seeds, by cross-validation over the few images that there are
//! (`folds`), then one training on all of them (`play`). Beside the domains stand copies that were fine-tuned, which have to be
//! kept beside the given network (`methods`, `table`).

mod folds;
mod methods;
mod play;
mod table;

pub use table::{Adapted, RECOGNISED, Row};

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::data::{Part, TaskData};
use crate::engine::{Names, Prepared};
use crate::eval::{PlayEvent, Report};
use crate::grow::{Base, GrowError, Ordered, Variant, open_place, ordered};
use crate::keep::TestPart;
use crate::network::{DataCard, GivenWeights, GrownNetwork, Measures};
use folds::{FOLDS, Folds, first};
use methods::{Method, Parts, SEEDS, TUNED};
use play::{Trained, Trainer, Training};
use table::{Outcome, table};

/// Folds on which every setting is tried, and how many settings are tried on the others.
const FIRST_FOLDS: usize = 2;
const FINALISTS: usize = 2;
/// Updates of a training, by which its passes over the data are chosen.
const UPDATES: usize = 200;
/// Samples of a batch, of few images an eighth.
const BATCH: usize = 40;
/// Learning rates that are tried for every row.
pub const RATES: [f64; 3] = [0.02, 0.06, 0.2];

/// A network and what it is to be adapted to.
pub struct Order<'a> {
    /// The scenario of all trainings.
    pub base: Base<'a>,
    /// Names that the application registers.
    pub names: &'a Names,
    /// The file of the given network.
    pub given: PathBuf,
    /// Learning rates that are tried for every row.
    pub rates: Vec<f64>,
    /// The most that may be added, in sizes of the given network.
    pub budget: f64,
    /// Data that the given network was trained on.
    pub old: Option<TaskData>,
    /// Name of the domain.
    pub domain: String,
    /// Folder of the result; what has been played is kept there until then.
    pub place: PathBuf,
    /// All that is there is removed, and everything played again.
    pub is_forced: bool,
}

/// Adapts the network, unless parts of that were played before.
///
/// # Errors
/// [`GrowError`].
pub fn adapt(order: &Order, report: &mut Report) -> Result<Adapted, GrowError> {
    let prepared = order.base.prepare(&Variant::default())?;
    let (task, folder) = (&prepared.loaded.task, prepared.file.folder.as_deref());
    let kept = GrownNetwork::load_any(&order.given)?.ok();
    GrownNetwork::check_domain(kept.as_ref(), &order.domain)?;
    let mut data = TaskData::load(task, folder, &order.names.data)?;
    let known = order.names.hosts.classes(task, folder);
    let is_of_same = known.len() as i64 != task.classes || data.compare_classes(&known);
    let plan = order.names.hosts.of(&task.host, folder)?.plan(task.classes);
    let name = order.given.display().to_string();
    let given = GivenWeights::read(&name, None, &plan)?;
    if !given.has_body(&plan) {
        let absent = given.absent.join(", ");
        return Err(GrowError::Refused(format!("the weights have nothing for {absent}")));
    }
    let (parts, folds) = (Parts::of(&plan, &prepared.loaded.slots)?, Folds::new(&data)?);
    let batch = BATCH.min((folds.least() / 4).max(1));
    let steps = UPDATES.div_ceil((folds.least() / batch).max(1));
    let replayed = order.old.as_ref().map(|old| part_of(old, folds.len())).transpose()?;
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
    let _lock = open_place(
        &order.place,
        &what_was_ordered(order, &prepared, &data, &given),
        order.is_forced,
    )?;
    for note in data.notes() {
        report(PlayEvent::Note(note));
    }
    let methods = methods(&trainer, given.absent.is_empty() && is_of_same);
    trainer.planned = methods.iter().map(|method| trainings_of(*method, &order.rates)).sum();
    let mut tuned: Vec<Tuned> = Vec::new();
    for method in methods {
        let found = tune(&mut trainer, method, &tuned, report)?;
        tuned.push(found);
    }
    let outcomes = refit(&mut trainer, tuned, report)?;
    let given = match kept {
        // A module that was brought along doesn't say how it reads pixels.
        Some(kept) if kept.data.hash.is_empty() => GrownNetwork {
            data: card_like(&outcomes[0].network),
            ..kept
        },
        Some(kept) => kept,
        None => given_network(&prepared, order, &given, &outcomes[0].network)?,
    };
    let old = order.old.as_ref().map(TestPart::of).transpose()?.flatten();
    let wanted = (order.domain.as_str(), order.budget);
    table(wanted, given, outcomes, TestPart::of(&data)?.as_ref(), old.as_ref())
}

/// Rows in the order in which they are played: what others follow first. `has_head`: the given head is for the same classes.
fn methods(trainer: &Trainer, has_head: bool) -> Vec<Method> {
    let mut methods = vec![Method::StatisticsAndHead, Method::Head, Method::Norms];
    if has_head {
        methods.extend([Method::Given, Method::Statistics]);
    }
    if trainer.parts.has_slots() {
        methods.push(Method::Seeds(TUNED));
        methods.extend(SEEDS.into_iter().filter(|kind| *kind != TUNED).map(Method::Seeds));
    }
    methods.extend([Method::CopyKept, Method::Copy]);
    methods.extend(trainer.replayed.as_ref().map(|_| Method::Replayed));
    methods
}

/// How a training is to learn, beside its method.
#[derive(Clone, Copy, PartialEq)]
struct Setting {
    rate: f64,
    /// It begins where [`Method::StatisticsAndHead`] ends.
    follows_head: bool,
}

/// A method at the setting that cross-validation chooses.
struct Tuned {
    method: Method,
    setting: Setting,
    /// Whether each image is read by the network that has not learnt from it, fold after fold.
    right: Vec<bool>,
    /// Trainings of the folds, by which they are kept, and the one on all images once it has been played.
    numbers: Vec<usize>,
    all: Vec<Trained>,
}

/// Tries all settings on the first folds, and the better ones on all others (successive halving, Jamieson and Talwalkar 2016,
/// arXiv:1502.07943); `before`: methods that have been tuned.
fn tune(trainer: &mut Trainer, method: Method, before: &[Tuned], report: &mut Report) -> Result<Tuned, GrowError> {
    let like = before.iter().find(|tuned| tuned.method == Method::Seeds(TUNED));
    let mut settings = match (method, like) {
        (Method::Seeds(_), Some(like)) => vec![like.setting],
        _ => settings(method, &trainer.order.rates),
    };
    let mut all: Vec<(Setting, Trained)> = Vec::new();
    let hits = |all: &[(Setting, Trained)], setting: &Setting| {
        let of_it = all.iter().filter(|(other, _)| other == setting);
        of_it
            .flat_map(|(_, trained)| &trained.right)
            .filter(|right| **right)
            .count()
    };
    for folds in [0..FIRST_FOLDS, FIRST_FOLDS..FOLDS] {
        let pairs = settings
            .iter()
            .flat_map(|&setting| folds.clone().map(move |fold| (setting, fold)));
        let pairs: Vec<(Setting, usize)> = pairs.collect();
        let trainings = pairs
            .iter()
            .map(|&(setting, fold)| training(method, setting, Some(fold), before));
        let trained = trainer.play(&method.name(), &trainings.collect::<Vec<_>>(), report)?;
        all.extend(pairs.into_iter().map(|(setting, _)| setting).zip(trained));
        // Of equals the first, which is the slowest.
        settings.sort_by_key(|setting| std::cmp::Reverse(hits(&all, setting)));
        settings.truncate(FINALISTS);
    }
    let setting = settings[0];
    let of_best = || {
        all.iter()
            .filter(|(other, _)| *other == setting)
            .map(|(_, trained)| trained)
    };
    Ok(Tuned {
        method,
        setting,
        right: of_best().flat_map(|trained| trained.right.iter().copied()).collect(),
        numbers: of_best().map(|trained| trained.number).collect(),
        all: all.into_iter().map(|(_, trained)| trained).collect(),
    })
}

/// All settings that are tried of a method.
fn settings(method: Method, rates: &[f64]) -> Vec<Setting> {
    let starts: &[bool] = if method.may_follow_head() {
        &[false, true]
    } else {
        &[false]
    };
    let rates = &rates[..if method.learns() { rates.len() } else { 1 }];
    let each = starts
        .iter()
        .flat_map(|&follows_head| rates.iter().map(move |&rate| Setting { rate, follows_head }));
    each.collect()
}

/// Trainings of a method in all.
fn trainings_of(method: Method, rates: &[f64]) -> usize {
    let settings = match method {
        Method::Seeds(kind) if kind != TUNED => 1,
        _ => settings(method, rates).len(),
    };
    FIRST_FOLDS * settings + (FOLDS - FIRST_FOLDS) * settings.min(FINALISTS) + 1
}

/// A training on all images but those of `fold`, or on all.
fn training(method: Method, setting: Setting, fold: Option<usize>, before: &[Tuned]) -> Training {
    let head = before.iter().find(|tuned| tuned.method == Method::StatisticsAndHead);
    let numbers = head.filter(|_| setting.follows_head).map(|head| &head.numbers);
    Training {
        method,
        rate: setting.rate,
        fold,
        begins: numbers.and_then(|numbers| numbers.get(fold.unwrap_or(FOLDS)).copied()),
    }
}

/// Trains every method on all images at its setting.
fn refit(trainer: &mut Trainer, mut tuned: Vec<Tuned>, report: &mut Report) -> Result<Vec<Outcome>, GrowError> {
    let mut networks = BTreeMap::new();
    // What others begin with comes first.
    for follows in [false, true] {
        let of_turn: Vec<usize> = (0..tuned.len())
            .filter(|&place| tuned[place].setting.follows_head == follows)
            .collect();
        let trainings = of_turn
            .iter()
            .map(|&place| training(tuned[place].method, tuned[place].setting, None, &tuned));
        let trained = trainer.play("all images", &trainings.collect::<Vec<_>>(), report)?;
        for (place, mut trained) in of_turn.into_iter().zip(trained) {
            tuned[place].numbers.push(trained.number);
            networks.extend(trained.network.take().map(|network| (place, network)));
            tuned[place].all.push(trained);
        }
    }
    let outcomes = tuned.into_iter().enumerate().map(|(place, tuned)| {
        let stopped = || GrowError::Stopped(trainer.order.place.clone());
        Ok(Outcome {
            method: tuned.method,
            rate: tuned.setting.rate,
            follows_head: tuned.setting.follows_head,
            right: tuned.right,
            seconds: tuned.all.iter().map(|trained| trained.seconds).sum(),
            macs: tuned.all.iter().map(|trained| trained.macs).sum(),
            tried: tuned.all.len(),
            diverged: tuned.all.iter().filter(|trained| trained.diverged).count(),
            network: networks.remove(&place).ok_or_else(stopped)?,
        })
    });
    outcomes.collect()
}

/// The fields of the base, and those that follow from how many images there are, unless they are set.
fn with_batches(base: &Base, batch: usize) -> Vec<(&'static str, String)> {
    let own = [
        ("task.batch_size", batch.to_string()),
        ("task.batches_per_step", "full".into()),
    ];
    base.sets.iter().cloned().chain(own).collect()
}

/// As many old images as there are new ones.
fn part_of(old: &TaskData, count: usize) -> Result<Part, GrowError> {
    match old {
        TaskData::Images(set) => Ok(first(&set.train, count)?),
        TaskData::Tokens(_) => Err(GrowError::Refused("--old: texts; images are needed".into())),
    }
}

/// All that the trainings follow from, by name.
fn what_was_ordered(order: &Order, prepared: &Prepared, data: &TaskData, given: &GivenWeights) -> Ordered {
    let old = order.old.as_ref().map_or("none", TaskData::hash);
    let own = [("--rates", format!("{:?}", order.rates)), ("--old (hash)", old.into())];
    ordered(prepared, data, given.tensors.iter(), &own)
}

/// The given network of a file of weights, with the head that it has.
fn given_network(
    prepared: &Prepared,
    order: &Order,
    given: &GivenWeights,
    like: &GrownNetwork,
) -> Result<GrownNetwork, GrowError> {
    let (task, folder) = (&prepared.loaded.task, prepared.file.folder.as_deref());
    let classes = given.other_classes.map_or(task.classes, |classes| classes as i64);
    let plan = order.names.hosts.of(&task.host, folder)?.plan(classes);
    let tensors = GivenWeights::read(&order.given.display().to_string(), None, &plan)?.tensors;
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

/// How pixels are read, of a given network that does not say what it has learnt from.
fn card_like(like: &GrownNetwork) -> DataCard {
    DataCard {
        classes: Vec::new(),
        validation: None,
        test: None,
        ..like.data.clone()
    }
}
