//! `grow`: a network on a user's data within a budget, next to other uses of the same compute.

use super::console::Progress;
use super::given::{Given, base, check_output, old_data};
use super::options::GrowOptions;
use super::rejection::Rejection;
use super::{Context, Outcome};
use crate::controller::{SavedFolder, SavedPolicy};
use crate::export::{self, GROWTH_FILE, REPORT_FILE, SCENARIO_FILE, export_network};
use crate::grow::{GrowError, Growth, Order, grow};
use crate::report::{growth_page, growth_text};
use crate::run::StopSignal;
use crate::scenario::resolved_ron;

/// Grows, compares, chooses, writes.
pub fn run(options: &GrowOptions, context: &Context) -> Result<Outcome, Rejection> {
    let stop = context.heeded_stop()?;
    check_output(&options.network, [&options.weights, &options.policy])?;
    let order = order(options, context, &stop)?;
    context.terminal.say_once();
    let mut progress = Progress::new(&context.terminal);
    let grown = grow(&order, &mut |event| progress.show(event));
    progress.clear();
    let growth = match grown {
        Ok(growth) => growth,
        Err(stopped @ GrowError::Stopped(_)) => {
            context.printer.note(stopped);
            return Ok(stop.requested().map_or(Outcome::Failed, Outcome::Stopped));
        }
        Err(error) => return Err(error.into()),
    };
    write(&growth, options)?;
    Ok(context.printer.show_either(&growth, || {
        growth_text(&growth, &options.network.output, context.printer.width())
    }))
}

fn order<'a>(options: &GrowOptions, context: &'a Context, stop: &'a StopSignal) -> Result<Order<'a>, Rejection> {
    let network = &options.network;
    let given = options.weights.as_deref().map(Given::read).transpose()?;
    let mut sets = vec![
        ("name", "\"grow\"".into()),
        ("run.rounds", "1".into()),
        ("run.n_envs", options.tries.to_string()),
    ];
    sets.extend(options.steps.map(|steps| ("run.max_steps", steps.to_string())));
    let base = base(("grow", sets), network, given.as_ref(), context, stop)?;
    let policy = options.policy.as_deref().map(SavedFolder::read).transpose();
    let policy = policy.map_err(|error| Rejection::Usage(format!("--policy: {error}")))?;
    policy.as_ref().map(SavedPolicy::read).transpose()?;
    Ok(Order {
        base,
        names: context.names,
        budget: options.budget,
        is_given: given.is_some(),
        rates: network.rates.clone(),
        policy,
        old: network.old.as_deref().map(|path| old_data(path, context)).transpose()?,
        keep: options.keep,
        place: network.output.clone(),
        is_forced: network.force,
    })
}

/// Puts the network that was chosen, the table and the scenario into the folder.
fn write(growth: &Growth, options: &GrowOptions) -> Result<(), Rejection> {
    let network = &growth.network;
    let failed = |error: &dyn std::fmt::Display| Rejection::Usage(format!("the result could not be written: {error}"));
    let kept = network.to_bytes().map_err(|error| failed(&error))?;
    let mut files = export_network(network, kept, Some(&growth.choice.why))?;
    let table = serde_json::to_vec_pretty(growth).map_err(|error| failed(&error))?;
    let scenario = resolved_ron(&growth.scenario).map_err(|error| failed(&error))?;
    files.extend([
        (GROWTH_FILE, table),
        (SCENARIO_FILE, scenario.into_bytes()),
        (REPORT_FILE, growth_page(growth).into_bytes()),
    ]);
    Ok(export::write(&options.network.output, &files)?)
}
