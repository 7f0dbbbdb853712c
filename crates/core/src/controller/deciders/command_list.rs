//! Commands that were written down before the run: those of a schedule, and those of a recorded run.

use crate::actions::{Decision, DecisionPoint, MaskSet, PolicyError};
use crate::growth::LifecycleCommand;

/// Commands that were written down before the run, and the response to one that is illegal when its step has come.
#[derive(Clone, Debug)]
pub struct CommandList {
    /// The list's name in error messages.
    pub name: &'static str,
    /// The commands' description in reasons.
    pub verb: &'static str,
    pub wait_on_illegal: bool,
    /// True if the warning of a wait in place of a command has been given.
    pub has_waited: bool,
}

impl CommandList {
    pub fn new(name: &'static str, verb: &'static str, wait_on_illegal: bool) -> Self {
        Self {
            name,
            verb,
            wait_on_illegal,
            has_waited: false,
        }
    }

    /// # Errors
    /// `ScheduleIllegal`, unless illegal commands become waits.
    pub fn decide(
        &mut self,
        command: LifecycleCommand,
        masks: &MaskSet,
        at: DecisionPoint,
    ) -> Result<Decision, PolicyError> {
        let (verb, op) = (self.verb, command.op());
        match masks.objection(&command) {
            None => Ok(Decision::new(command, masks, verb)),
            Some(why) if self.wait_on_illegal => {
                if !std::mem::replace(&mut self.has_waited, true) {
                    let list = self.name;
                    tracing::warn!(
                        "{at}: the {list} orders {op}, which is not legal: {why}; waits instead, here and at later refusals"
                    );
                }
                let reason = format!("{verb} {op} is not legal: {why}");
                Ok(Decision::new(LifecycleCommand::Wait, masks, reason))
            }
            Some(why) => Err(PolicyError::ScheduleIllegal {
                at,
                list: self.name,
                op,
                why,
            }),
        }
    }
}
