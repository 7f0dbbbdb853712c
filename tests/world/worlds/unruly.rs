//! A controller that draws its orders, legal or not.

use simic_engine::internals::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, Tempo};
use simic_engine::internals::prior_art::PriorArtPlugin;
use simic_engine::prelude::*;

use super::dice::Dice;

/// As `policy.controller` names it.
pub const NAME: &str = "unruly";

/// Adds the controller to the names that scenarios may use.
pub fn register(app: &mut App) {
    app.add_plugins(PriorArtPlugin);
    let mut controllers = app.world_mut().resource_mut::<ControllerRegistry>();
    controllers.register(
        NAME,
        "orders what is not legal, too",
        Arc::new(|context| {
            let seed = context.scenario.run.seed;
            let blueprints = context.blueprints.len();
            Ok(Box::new(UnrulyController { seed, blueprints }))
        }),
    );
}

struct UnrulyController {
    seed: u64,
    blueprints: usize,
}

impl UnrulyController {
    /// Every third command is legal as likely as not; others are anything, for slots and blueprints that do not exist, too.
    fn draw(&self, dice: &mut Dice, masks: &MaskSet) -> LifecycleCommand {
        let command = self.draw_any(dice, masks.slots() + 1);
        let is_wanted = dice.one_in(3) || masks.allows(&command);
        if is_wanted {
            command
        } else {
            self.draw_any(dice, masks.slots())
        }
    }

    fn draw_any(&self, dice: &mut Dice, slots: usize) -> LifecycleCommand {
        let slot = dice.index(slots);
        match dice.one_of(&LifecycleOp::ALL) {
            LifecycleOp::Wait => LifecycleCommand::Wait,
            LifecycleOp::Germinate => LifecycleCommand::Germinate {
                slot,
                blueprint: dice.index(self.blueprints + 1),
                style: dice.one_of(&GerminationStyle::ALL),
                tempo: dice.one_of(&Tempo::ALL),
                target: dice.one_of(&AlphaTarget::ALL),
            },
            LifecycleOp::SetAlphaTarget => LifecycleCommand::SetAlphaTarget {
                slot,
                style: dice.one_of(&GerminationStyle::ALL),
                target: dice.one_of(&AlphaTarget::ALL),
                speed: dice.one_of(&AlphaSpeed::ALL),
                curve: dice.one_of(&AlphaCurveAction::ALL),
            },
            LifecycleOp::Prune => LifecycleCommand::Prune {
                slot,
                speed: dice.one_of(&AlphaSpeed::ALL),
                curve: dice.one_of(&AlphaCurveAction::ALL),
            },
            LifecycleOp::Commit => LifecycleCommand::Commit { slot },
            LifecycleOp::Advance => LifecycleCommand::Advance { slot },
        }
    }
}

impl Controller for UnrulyController {
    fn name(&self) -> &str {
        NAME
    }

    fn decide(&mut self, view: &DecisionView, masks: &[MaskSet]) -> Result<Vec<Decision>, PolicyError> {
        let decisions = view.envs.iter().zip(masks).map(|(env, masks)| {
            let moment = (env.row.episode << 32) | u64::from(view.step);
            let command = self.draw(&mut Dice::of(self.seed, moment + 2), masks);
            Decision::new(command, masks, "drawn")
        });
        Ok(decisions.collect())
    }
}
