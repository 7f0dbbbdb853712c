//! Grows a network within a budget, and says whether growth was worth it. The table compares it, at equal compute and with
//! equally many tries, with the given network, the same trained without growth, a wider host, and the grown form from fresh
//! weights.
//!
//! All of them are the same loop over the same data, so a row is a scenario with a few fields set (`play`), played once and
//! kept in the folder of the result (`shelf`, `rows`). What is planted follows from the budget (`budget`); networks are chosen by
//! the validation part, and compared on the test part, which is read once, at the end (`table`).

mod budget;
mod play;
mod shelf;
mod table;
mod rows;

pub use budget::{Amount, Budget, Planting, Size, plantings};
pub use play::{Attempt, Base, Effort, Entry, GrowError, Variant, Way};
pub use rows::ordered;
pub use shelf::{Ordered, files as played_files, open as open_place};
pub use table::{Bounded, Choice, Keep, Row, paired, share};

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::controller::SavedFolder;
use crate::data::TaskData;
use crate::engine::Names;
use crate::eval::Report;
use crate::keep::TestPart;
use crate::network::{GivenWeights, GrownNetwork, NetworkError};
use crate::scenario::{HostChoice, HostWeights, Scenario};
use rows::Playing;
use table::{Tested, choose};

/// Inputs and limits of a growth.
pub struct Order<'a> {
    /// The scenario of all rows.
    pub base: Base<'a>,
    /// Names that the application knows.
    pub names: &'a Names,
    /// The largest size of the grown network.
    pub budget: Budget,
    /// `true` if the host begins with trained weights.
    pub is_given: bool,
    /// Learning rates that are tried for every row, or the task's own if empty.
    pub rates: Vec<f64>,
    /// A policy that decides what to plant, instead of blind schedules.
    pub policy: Option<SavedFolder>,
    /// Data that a given network was trained on: its accuracy on them is measured as well.
    pub old: Option<TaskData>,
    /// The row to write.
    pub keep: Keep,
    /// Folder that keeps finished attempts until the result replaces it.
    pub place: PathBuf,
    /// `true` to remove existing content and play everything again.
    pub is_forced: bool,
}

/// The grown network, and the rows to compare it with.
#[derive(Serialize)]
pub struct Growth {
    /// The row that is the result, and the reason.
    pub choice: Choice,
    /// Rows in the order of [`Way`].
    pub rows: Vec<Row>,
    /// Each planting at its best learning rate. The best of them by validation is the grown row.
    pub tried: Vec<Row>,
    /// Oddities of the data, and comparisons that could not be made, and why.
    pub notes: Vec<String>,
    /// The result.
    #[serde(skip)]
    pub network: GrownNetwork,
    /// The scenario that made it.
    #[serde(skip)]
    pub scenario: Scenario,
}

/// Plays all rows that aren't finished yet, and chooses.
///
/// # Errors
/// [`GrowError`].
pub fn grow(order: &Order, report: &mut Report) -> Result<Growth, GrowError> {
    let prepared = order.base.prepare(&Variant::default())?;
    let task = &prepared.loaded.task;
    let folder = prepared.file.folder.as_deref();
    let mut data = TaskData::load(task, folder, &order.names.data)?;
    let known = order.names.hosts.classes(task, folder);
    // With another number of classes the head is drawn.
    let is_of_same = known.len() as i64 != task.classes || data.compare_classes(&known);
    let no_test_part = "the data have no test part to compare networks on; set task.split, or add one";
    let test = TestPart::of(&data)?.ok_or_else(|| GrowError::Refused(no_test_part.into()))?;
    let design = order.names.hosts.of(&task.host, folder)?;
    let plan = design.plan(task.classes);
    let given = match (&task.weights, &task.host) {
        (Some(HostWeights { path, .. }), _) | (None, HostChoice::Grown(path)) => {
            GivenWeights::read(path, folder, &plan)?
        }
        _ => GivenWeights::default(),
    };
    let growing = order.growing(&prepared, &plan);
    if growing.is_empty() {
        let budget = order.budget;
        return Err(GrowError::Refused(format!(
            "no seed fits into a budget of {budget}; raise it"
        )));
    }
    let is_kept = matches!(task.host, HostChoice::Grown(_));
    let is_head_given = (is_kept || task.weights.is_some()) && given.absent.is_empty();
    let ways = [
        (Way::Given, order.is_given && given.absent.is_empty() && is_of_same),
        (Way::Head, order.is_given && given.has_body(&plan)),
        (Way::Trained, true),
        (Way::Widened, !is_kept),
        (Way::FromScratch, !is_kept),
    ];
    let ways = ways.into_iter().filter(|(_, is_played)| *is_played);
    let ways: Vec<Way> = ways.map(|(way, _)| way).collect();
    let weights = design.weights().into_iter().chain(Some(&given.tensors)).flatten();
    let ordered = ordered(&prepared, &data, weights, &order.own_fields(&ways));
    let _lock = shelf::open(&order.place, &ordered, order.is_forced)?;
    let mut playing = Playing {
        ways,
        number: 0,
        effort: Effort::default(),
        notes: Vec::new(),
        diverged: BTreeMap::new(),
        prepared: &prepared,
        data: &data,
        plan: &plan,
        order,
        growing,
        report,
    };
    for note in data.notes() {
        playing.note(note.clone());
    }
    // A drawn head cannot show what the network knew.
    let mut old = order.old.clone().filter(|_| is_head_given);
    if let Some(old) = &mut old {
        old.check_host(plan.topology(), plan.input())?;
        old.compare_classes(&known);
        for note in old.notes() {
            playing.note(format!("--old: {note}"));
        }
    } else if order.old.is_some() {
        playing.note("--old isn't measured: no network is given with its head".into());
    }
    if let Some(name) = given.absent.first() {
        let why = match given.other_classes {
            Some(own) => format!("its head is for {own} classes, but the data have {}", task.classes),
            None => format!("the weights don't contain {name}"),
        };
        let drawn = match given.has_body(&plan) {
            true => "a new head is drawn and trained in every row",
            false => "missing tensors are drawn",
        };
        playing.note(format!("no row `as given`: {why}; {drawn}"));
    }
    if !is_of_same {
        playing.note("no row `as given`: its classes have other names".into());
    }
    if is_kept {
        let why = "a kept network has no wider form and no fresh weights; for these rows, name its host by --host";
        playing.note(why.into());
    }
    let (plantings, grown) = playing.grow()?;
    let mut entries = playing.others(grown.as_ref())?;
    playing.note_diverged();
    let notes = playing.notes;
    entries.extend(grown);
    entries.sort_by_key(|entry| entry.way as u8);
    let old = old.as_ref().map(TestPart::of).transpose()?.flatten();
    let tested = |entry: &Entry| -> Result<Tested, NetworkError> {
        let network = &entry.attempt.network;
        Ok(Tested {
            new: test.right(network)?,
            old: old.as_ref().map(|old| old.right(network)).transpose()?,
        })
    };
    let results = entries.iter().map(tested).collect::<Result<Vec<_>, _>>()?;
    let of_growth = entries.iter().position(|entry| entry.way == Way::Grown);
    let of_growth = of_growth.map(|place| &results[place]);
    let rows = entries.iter().zip(&results).map(|(entry, result)| {
        let reference = of_growth.filter(|_| entry.way != Way::Grown);
        Row::new(entry, order.is_given, result, reference)
    });
    let rows: Vec<Row> = rows.collect();
    let stopped = || GrowError::Stopped(order.place.clone());
    let choice = choose(&rows, order.keep).ok_or_else(stopped)?;
    let tried = plantings.iter().map(|(name, entry)| {
        let row = Row::new(entry, order.is_given, &tested(entry)?, of_growth);
        let name = name.clone();
        Ok(Row { name, ..row })
    });
    let tried = tried.collect::<Result<_, NetworkError>>()?;
    let chosen = entries.into_iter().find(|entry| entry.way == choice.way);
    let Attempt { network, loaded, .. } = chosen.ok_or_else(stopped)?.attempt;
    Ok(Growth {
        scenario: loaded.scenario,
        choice,
        rows,
        tried,
        notes,
        network,
    })
}
