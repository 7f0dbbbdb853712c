//! Sections `policy.heuristic`, `periodic`, `schedule` and `replay`: controllers to compare with.

use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, SlotId, Tempo};
use crate::schema::{choice, record, section};

section! {
    /// Constants of the rule-based controller.
    pub struct HeuristicConfig {
        /// Steps without progress before a seed is germinated.
        plateau_steps_to_germinate: u32 = 3;
        /// First step at which a seed may be germinated.
        min_steps_before_germinate: u32 = 5;
        /// Loss of accuracy within a stage that counts as failing.
        #[unit = "percentage points"]
        prune_if_accuracy_drops_by: f64 = 2.0, NOT_NEGATIVE;
        /// Contribution above which a held seed is committed.
        #[unit = "percentage points"]
        min_improvement_to_commit: f64 = 0.5;
        /// Blueprints in the order in which they are tried. The default list is limited to those that grow in the host.
        rotation: Vec<String> = ["conv_light", "conv_heavy", "attention", "norm", "depthwise"].map(String::from).to_vec(), BLUEPRINT;
    }
}

section! {
    /// A seed every N steps, the schedule that papers on growing networks compare with. `fragrow` grows the same seeds at
    /// intervals that follow the risk of overfitting (Wu et al. 2024).
    pub struct PeriodicConfig {
        /// Steps before the first germination and between two of them. `fragrow` ignores it.
        period: u32 = 10, at_least(1);
        /// Blueprints in the order in which they germinate. The list starts again after the last.
        blueprints: Vec<String> = vec!["conv_light".into()], BLUEPRINT;
        /// Largest number of germinations in an episode. None: no limit while there are empty slots.
        max_growths: Option<u32>, at_least(1);
        /// Curve and operator of the blend.
        style: GerminationStyle = GerminationStyle::SigmoidAdd;
        /// Length of the blend.
        tempo: Tempo = Tempo::Standard;
    }
}

section! {
    /// A list of commands for the `schedule` controller.
    pub struct ScheduleConfig {
        /// Commands at given steps, in the order of their steps.
        entries: Vec<ScheduleEntry>;
        /// Waits, instead of failing, if an entry is illegal at its step.
        wait_on_illegal: bool;
    }
}

record! {
    /// A command and its step.
    pub struct ScheduleEntry {
        /// Step at which the command is given, from 1.
        step: u32, at_least(1);
        /// The command.
        command: ScheduledCommand;
    }
}

choice! {
    /// A command as written in a scenario: slots and blueprints by name.
    pub enum ScheduledCommand {
        /// plants a seed
        Germinate {
            /// Slot to grow in.
            slot: SlotId;
            /// Recipe of the seed.
            blueprint: String, BLUEPRINT;
            /// Curve and operator of the first blend.
            style: GerminationStyle;
            /// Length of the first blend.
            tempo: Tempo;
            /// Amplitude to blend to.
            target: AlphaTarget;
        },
        /// ramps a seed's amplitude
        SetAlphaTarget {
            /// Slot of the seed.
            slot: SlotId;
            /// Blend operator from this step on.
            style: GerminationStyle;
            /// New amplitude.
            target: AlphaTarget;
            /// Length of the ramp.
            speed: AlphaSpeed;
            /// Curve of the ramp.
            curve: AlphaCurveAction;
        },
        /// removes a seed
        Prune {
            /// Slot of the seed.
            slot: SlotId;
            /// Length of the ramp down.
            speed: AlphaSpeed;
            /// Curve of the ramp down.
            curve: AlphaCurveAction;
        },
        /// commits a seed
        Commit {
            /// Slot of the seed.
            slot: SlotId;
        },
        /// tries the seed's next gate
        Advance {
            /// Slot of the seed.
            slot: SlotId;
        },
    }
}

impl ScheduledCommand {
    /// Slot that the command is about.
    pub const fn slot(&self) -> SlotId {
        match *self {
            Self::Germinate { slot, .. }
            | Self::SetAlphaTarget { slot, .. }
            | Self::Prune { slot, .. }
            | Self::Commit { slot }
            | Self::Advance { slot } => slot,
        }
    }
}

section! {
    /// Decisions that the `replay` controller repeats.
    #[derive(Eq)]
    pub struct ReplayConfig {
        /// Folder of the recorded run, relative to this file.
        run: Option<String>;
        /// Waits, instead of failing, if a recorded command is illegal now.
        wait_on_illegal: bool;
    }
}
