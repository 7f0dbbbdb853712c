//! From a scenario to the task that every env runs, and to its full text.

use ron::ser::PrettyConfig;
use serde::Serialize;

use super::catalog::Catalog;
use super::{Scenario, TaskChoice, TaskSpec};
use crate::files::ron_options;

impl Scenario {
    /// The task in full: its preset's fields where the scenario says nothing else. `None` for a task name that is not in the
    /// catalog, which the check reports.
    pub(super) fn written_task(&self, catalog: &Catalog) -> Option<TaskSpec> {
        match &self.task {
            TaskChoice::Custom(spec) => Some((**spec).clone()),
            TaskChoice::Preset(name, overrides) => {
                let mut tasks = catalog.tasks.iter().map(|task| &task.spec);
                let mut spec = tasks.find(|spec| spec.name.eq_ignore_ascii_case(name))?.clone();
                overrides.apply(&mut spec);
                Some(spec)
            }
        }
    }

    /// The task with what other sections say in it: `run.max_steps`, `lifecycle.slots` and `lifecycle.max_seeds`, and the
    /// validation batch size resolved. `None` for a task name that is not in the catalog.
    pub fn task_spec(&self, catalog: &Catalog) -> Option<TaskSpec> {
        let mut spec = self.written_task(catalog)?;
        if let Some(slots) = &self.lifecycle.slots {
            spec.slots.clone_from(slots);
        }
        spec.max_seeds = self.lifecycle.max_seeds.unwrap_or(spec.max_seeds);
        spec.max_steps = self.run.max_steps.unwrap_or(spec.max_steps);
        spec.val_batch_size = Some(spec.val_rows());
        Some(spec)
    }
}

/// A value of a scenario as a scenario writes it.
pub fn ron_text(value: &impl Serialize) -> String {
    // RON refuses no text and no number.
    ron::ser::to_string_pretty(value, PrettyConfig::new().compact_structs(true)).unwrap_or_default()
}

/// A scenario, or another file in its language, with every default written out and options without `Some`.
///
/// # Errors
/// None for values that such a file can hold; RON refuses nothing that serde passes on here.
pub fn resolved_ron(file: &impl Serialize) -> Result<String, ron::Error> {
    let layout = PrettyConfig::new().struct_names(false).depth_limit(3);
    ron_options().to_string_pretty(file, layout)
}
