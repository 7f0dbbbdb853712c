//! From a scenario to the task that every env runs, and to its full text.

use ron::extensions::Extensions;
use ron::ser::PrettyConfig;

use super::catalog::Catalog;
use super::{Scenario, TaskChoice, TaskSpec};

/// A task name that the catalog lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown task \"{name}\"; valid: {}", valid.join(", "))]
pub struct UnknownTask {
    /// As written.
    pub name: String,
    /// What the catalog has.
    pub valid: Vec<String>,
}

impl Scenario {
    /// The task with all overrides in it: the preset's fields, `run.max_steps`, `lifecycle.slots` and
    /// `lifecycle.max_seeds`, and the validation batch size resolved.
    ///
    /// # Errors
    /// A task name that the catalog lacks; a loaded scenario has none.
    pub fn task_spec(&self, catalog: &Catalog) -> Result<TaskSpec, UnknownTask> {
        let mut spec = match &self.task {
            TaskChoice::Custom(spec) => (**spec).clone(),
            TaskChoice::Preset(name, overrides) => {
                let mut tasks = catalog.tasks.iter().map(|task| &task.spec);
                match tasks.find(|spec| spec.name.eq_ignore_ascii_case(name)) {
                    Some(spec) => {
                        let mut spec = spec.clone();
                        overrides.apply(&mut spec);
                        spec
                    }
                    None => {
                        let tasks = catalog.tasks.iter();
                        return Err(UnknownTask {
                            name: name.clone(),
                            valid: tasks.map(|task| task.spec.name.clone()).collect(),
                        });
                    }
                }
            }
        };
        if let Some(slots) = &self.lifecycle.slots {
            spec.slots.clone_from(slots);
        }
        spec.max_seeds = self.lifecycle.max_seeds.unwrap_or(spec.max_seeds);
        spec.max_steps = self.run.max_steps.unwrap_or(spec.max_steps);
        spec.val_batch_size = Some(spec.val_rows());
        Ok(spec)
    }
}

/// RON with every default written out and options without `Some`.
///
/// # Errors
/// None for values that a scenario can hold; RON refuses nothing that serde passes on here.
pub fn resolved_ron(scenario: &Scenario) -> Result<String, ron::Error> {
    let layout = PrettyConfig::new().struct_names(false).depth_limit(3);
    ron_options().to_string_pretty(scenario, layout)
}

/// The dialect of scenario files.
pub(super) fn ron_options() -> ron::Options {
    ron::Options::default().with_default_extension(Extensions::IMPLICIT_SOME)
}
