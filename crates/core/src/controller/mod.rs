//! Controllers, which decide once per env and step about the slots.
//!
//! Measured steps become [`TrainingSignals`], slot reports become a [`MaskSet`](crate::actions::MaskSet), and a [`Controller`] answers with one
//! [`Decision`](crate::actions::Decision) per env. All controllers, learned or not, run in the same loop; plugins add theirs by name to the
//! [`ControllerRegistry`].

mod saved;
pub(crate) mod view;
mod deciders;
pub(crate) mod systems;
mod events;
#[cfg(test)]
pub(crate) mod fixtures;

use bevy_app::{App, Plugin};
use bevy_ecs::schedule::common_conditions::resource_exists;

pub use deciders::written;
pub use deciders::{
    ActorCriticController, BuildContext, Controller, ControllerFactory, ControllerRegistry, ExternalCommands,
    LearningPolicy, MANIFEST_FILE, SavedPolicy, WEIGHTS_FILE, WaitController,
};
pub use events::DecidedEnv;
pub use saved::{CONTROLLER_FILE, SavedFolder};
pub use systems::{ActiveController, Chosen, CommandOutcome, Feedback, Masks, ObserveAll, SlotReports, selectable};
pub use view::{
    CLIP as OBSERVATION_CLIP, DecisionView, ElementScale, EnvRow, EnvView, Extract, MIN_COUNT, Observation,
    ObservationFeature, ObservationFeatures, ObservationInput, ObservationNormaliser, ObservationSchema,
    RunningMoments, Signals, TrainingSignals, Treatment, UNKNOWN,
};

use crate::env::{EnvId, KeepInRounds};
use crate::policy::NetRegistry;
use crate::schedule::{Act, AddWork, Assess, Decide, RoundStart, Startup, Work};
use systems::{
    begin_episodes, build_controller, build_masks, build_observations, decide, execute_action, normalise_observations,
    report_slots, restore_episodes, save_episodes, update_tracking,
};
use view::{Tracker, update_signals};

/// Signals, masks, decisions and their execution.
pub struct ControllerPlugin;

impl Plugin for ControllerPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<ControllerRegistry>();
        app.init_resource::<NetRegistry>();
        app.init_resource::<ObservationFeatures>();
        app.register_required_components::<EnvId, Observation>();
        app.register_required_components::<EnvId, SlotReports>();
        app.register_required_components::<EnvId, Masks>();
        app.register_required_components::<EnvId, Chosen>();
        app.register_required_components::<EnvId, CommandOutcome>();
        app.add_work(Startup, Work::BuildController, build_controller)
            .add_work(RoundStart, Work::BeginControllerEpisodes, begin_episodes)
            .add_work(Assess, Work::UpdateSignals, update_signals)
            .add_work(Assess, Work::ReportSlots, report_slots)
            .add_work_if(
                Decide,
                Work::BuildObservations,
                build_observations,
                resource_exists::<ObservationSchema>,
            )
            .add_work_if(
                Decide,
                Work::NormaliseObservations,
                normalise_observations,
                resource_exists::<ObservationSchema>,
            )
            .add_work(Decide, Work::BuildMasks, build_masks)
            .add_work(Decide, Work::Decide, decide)
            .add_work(Act, Work::ExecuteAction, execute_action)
            .add_work(Act, Work::UpdateTracking, update_tracking)
            .keep_in_rounds_by(save_episodes, restore_episodes)
            .keep_in_rounds::<Tracker>("tracker")
            .keep_in_rounds::<Signals>("signals")
            .keep_in_rounds::<Feedback>("feedback");
    }
}
