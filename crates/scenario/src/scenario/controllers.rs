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
        /// Accuracy loss in a stage that counts as failing.
        #[unit = "percentage points"]
        prune_if_accuracy_drops_by: f64 = 2.0, NOT_NEGATIVE;
        /// Contribution above which a held seed is committed.
        #[unit = "percentage points"]
        min_improvement_to_commit: f64 = 0.5;
        /// Blueprints in the order in which they are tried. Of the default list those that grow in the host.
        rotation: Vec<String> = ["conv_light", "conv_heavy", "attention", "norm", "depthwise"].map(String::from).to_vec(), BLUEPRINT;
    }
}

section! {
    /// A seed every N steps: the schedule that papers on growing networks compare with. `fragrow` grows the same after an interval
    /// that follows the risk of overfitting (Wu et al. 2024).
    pub struct PeriodicConfig {
        /// Steps from one germination to the next, and before the first; not of `fragrow`.
        period: u32 = 10, at_least(1);
        /// Blueprints in the order in which they germinate; after the last comes the first again.
        blueprints: Vec<String> = vec!["conv_light".into()], BLUEPRINT;
        /// Most germinations of an episode. None: as long as there are empty slots.
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
        /// Wait instead of failing when an entry is illegal at its step.
        wait_on_illegal: bool;
    }
}

record! {
    /// A command and the step at which it is given.
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
        /// plant a seed
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
        /// ramp a seed's amplitude
        SetAlphaTarget {
            /// Slot of the seed.
            slot: SlotId;
            /// Blend operator from now on.
            style: GerminationStyle;
            /// New amplitude.
            target: AlphaTarget;
            /// Length of the ramp.
            speed: AlphaSpeed;
            /// Curve of the ramp.
            curve: AlphaCurveAction;
        },
        /// remove a seed
        Prune {
            /// Slot of the seed.
            slot: SlotId;
            /// Length of the ramp down.
            speed: AlphaSpeed;
            /// Curve of the ramp down.
            curve: AlphaCurveAction;
        },
        /// commit a seed
        Commit {
            /// Slot of the seed.
            slot: SlotId;
        },
        /// try the seed's next gate
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
    /// The decisions that the `replay` controller repeats.
    #[derive(Eq)]
    pub struct ReplayConfig {
        /// Folder of the recorded run, relative to this file.
        run: Option<String>;
        /// Wait instead of failing when a recorded command is illegal now.
        wait_on_illegal: bool;
    }
}
