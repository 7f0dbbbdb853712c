//! Sections `policy.heuristic`, `random`, `schedule` and `replay`: controllers to compare with.

use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, SlotId, Tempo, coded_enum};
use crate::schema::{choice, members, record, section};

section! {
    /// Constants of the rule-based controller.
    pub struct HeuristicConfig {
        /// Steps without progress before a seed is germinated.
        plateau_epochs_to_germinate: u32 = 3;
        /// First step at which a seed may be germinated.
        min_epochs_before_germinate: u32 = 5;
        /// Accuracy loss in a stage that counts as failing.
        #[unit = "percentage points"]
        prune_if_accuracy_drops_by: f64 = 2.0, NOT_NEGATIVE;
        /// Contribution above which a held seed is committed.
        #[unit = "percentage points"]
        min_improvement_to_commit: f64 = 0.5;
        /// Steps that a seed trains before it is moved on. None: the minimum of its gate.
        min_training_epochs: Option<u32>;
        /// Factor on all penalties per step.
        blueprint_penalty_decay: f64 = 0.93, FRACTION;
        /// Penalty from which a blueprint is skipped.
        blueprint_penalty_threshold: f64 = 1.0, POSITIVE;
        /// Blueprints in the order in which they are tried. Of the default list those that grow in the host.
        rotation: Vec<String> = ["conv_light", "conv_heavy", "attention", "norm", "depthwise"].map(String::from).to_vec(), BLUEPRINT;
    }
}

section! {
    /// A list of commands, or the name of a built-in one, for the `schedule` controller.
    pub struct ScheduleConfig {
        /// A built-in schedule instead of entries.
        builtin: Option<BuiltinSchedule>;
        /// Commands at given steps, in the order of their steps.
        entries: Vec<ScheduleEntry>;
        /// Wait instead of failing when an entry is illegal at its step.
        wait_on_illegal: bool;
    }
}

coded_enum! {
    /// A schedule that needs no list.
    BuiltinSchedule {
        /// Germinates in the first slot at the first step.
        GerminateFirstSlot = 0 => "germinate_first_slot",
        /// Takes one seed from germination to its commit.
        GrowOneSeed = 1 => "grow_one_seed",
    }
}

members! {
    BuiltinSchedule => "built-in schedule",
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
    /// How the `random` controller draws.
    #[derive(Copy)]
    pub struct RandomConfig {
        /// How often each operation is drawn, relative to the others that are legal.
        op_weights: OpWeights;
    }
}

section! {
    /// How often each operation is drawn, relative to the others that are legal; a wait always is.
    #[derive(Copy)]
    pub struct OpWeights {
        /// Weight of waiting.
        wait: f64 = 1.0, POSITIVE;
        /// Weight of planting a seed.
        germinate: f64 = 1.0, NOT_NEGATIVE;
        /// Weight of ramping a seed's amplitude.
        set_alpha_target: f64 = 1.0, NOT_NEGATIVE;
        /// Weight of removing a seed.
        prune: f64 = 1.0, NOT_NEGATIVE;
        /// Weight of committing a seed.
        commit: f64 = 1.0, NOT_NEGATIVE;
        /// Weight of trying a seed's next gate.
        advance: f64 = 1.0, NOT_NEGATIVE;
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
