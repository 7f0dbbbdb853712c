//! `adapt`: a trained network for other images, with the given one inside, next to the other ways to make it read them.

use std::path::Path;

use super::console::Progress;
use super::given::{Given, base, check_output, old_data};
use super::options::AdaptOptions;
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::adapt::{Adapted, Order, RATES, adapt};
use crate::export::{self, ADAPTATION_FILE, REPORT_FILE, export_network};
use crate::grow::GrowError;
use crate::report::{adaptation_page, adaptation_text};
use crate::run::StopSignal;

/// Adapts, compares, writes.
pub fn run(options: &AdaptOptions, context: &Context) -> Result<Outcome, Rejection> {
    let stop = context.heeded_stop()?;
    check_output(&options.network, [&Some(options.weights.clone())])?;
    let order = order(options, context, &stop)?;
    context.terminal.say_once();
    let mut progress = Progress::new(&context.terminal);
    let adapted = adapt(&order, &mut |event| progress.show(event));
    progress.clear();
    let adapted = match adapted {
        Ok(adapted) => adapted,
        Err(stopped @ GrowError::Stopped(_)) => {
            context.printer.note(stopped);
            return Ok(stop.requested().map_or(Outcome::Failed, Outcome::Stopped));
        }
        Err(error) => return Err(error.into()),
    };
    write(&adapted, &order.place)?;
    Ok(context.printer.show_either(&adapted, || {
        adaptation_text(&adapted, &order.place, context.printer.width())
    }))
}

fn order<'a>(options: &AdaptOptions, context: &'a Context, stop: &'a StopSignal) -> Result<Order<'a>, Rejection> {
    let network = &options.network;
    let given = Given::read(&options.weights)?;
    let sets = vec![
        ("name", "\"adapt\"".into()),
        ("run.rounds", "1".into()),
        ("run.n_envs", "1".into()),
        // What the files bring for tests is the test part; all other images are learnt from, and judged by folds.
        ("task.split", "(seed: 0, val_permille: 200, test_permille: 0)".into()),
        ("task.augment", "None".into()),
        // It would judge by the images of a fold.
        ("governor.enabled", "false".into()),
    ];
    let base = base(("adapt", sets), network, Some(&given), context, stop)?;
    let named = || domain_name(network.data.as_deref().or(network.scenario.as_deref())?);
    let domain = options.domain.clone().or_else(named).unwrap_or_else(|| "new".into());
    let mut rates = match network.rates[..] {
        [] => RATES.to_vec(),
        _ => network.rates.clone(),
    };
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    Ok(Order {
        base,
        names: context.names,
        given: given.path.into(),
        rates,
        budget: options.budget,
        old: network.old.as_deref().map(|path| old_data(path, context)).transpose()?,
        domain,
        place: network.output.clone(),
        is_forced: network.force,
    })
}

/// The last part of a path, as far as a variable of Python can be called so.
fn domain_name(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?.to_ascii_lowercase();
    let name = stem.replace(|character: char| !character.is_ascii_alphanumeric(), "_");
    let name = name.trim_start_matches(|character: char| !character.is_ascii_lowercase());
    (!name.is_empty()).then(|| name.to_owned())
}

/// Puts the network with its new domain and the table into the folder.
fn write(adapted: &Adapted, place: &Path) -> Result<(), Rejection> {
    let failed = |error: &dyn std::fmt::Display| Rejection::Usage(format!("the result could not be written: {error}"));
    let kept = adapted.network.to_bytes().map_err(|error| failed(&error))?;
    let mut files = export_network(&adapted.network, kept, Some(&adapted.why))?;
    let table = serde_json::to_vec_pretty(adapted).map_err(|error| failed(&error))?;
    files.extend([
        (ADAPTATION_FILE, table),
        (REPORT_FILE, adaptation_page(adapted).into_bytes()),
    ]);
    Ok(export::write(place, &files)?)
}
