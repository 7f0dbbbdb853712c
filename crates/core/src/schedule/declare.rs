//! The way from the table of schedules, sets and works to their types and their order.

use bevy_app::App;
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{InternedScheduleLabel, LogLevel, ScheduleBuildSettings, ScheduleLabel};

use super::{EngineSet, Shutdown, Work};
use crate::health::running;

/// Declares the schedules in the order in which they first run, and in each its sets with their works, in order. The
/// text after a work is its phase. `again` precedes a work of an earlier schedule.
macro_rules! schedules {
    ($(
        $(#[$about:meta])*
        $schedule:ident {
            $($set:ident {
                $(again $known:ident,)*
                $($(#[$does:meta])+ $work:ident => $phase:literal,)*
            })+
        }
    )+) => {
        $(
            $(#[$about])*
            #[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
            pub struct $schedule;
        )+

        /// All schedules, in the order in which they first run.
        pub fn all_schedules() -> Vec<InternedScheduleLabel> {
            vec![$($schedule.intern()),+]
        }

        /// Every engine system by name, each in its own set, so that others can be ordered against it.
        #[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Work {
            $($($($(#[$does])+ $work,)*)+)+
        }

        impl Work {
            /// The phase, as error messages name it.
            pub const fn phase(self) -> &'static str {
                match self {
                    $($($(Self::$work => $phase,)*)+)+
                }
            }
        }

        fn arrange_all(app: &mut App) {
            $(
                let sets = [$((EngineSet::$set, &[$(Work::$known,)* $(Work::$work,)*][..])),+];
                arrange(app, $schedule.intern(), &sets);
            )+
        }
    };
}

pub(super) use schedules;

/// Chains the sets of a schedule and the works inside each. After a failure nothing runs any more but `Shutdown`.
pub(super) fn arrange(app: &mut App, label: InternedScheduleLabel, sets: &[(EngineSet, &[Work])]) {
    let stops_on_failure = label != Shutdown.intern();
    app.init_schedule(label);
    app.edit_schedule(label, |schedule| {
        schedule.set_build_settings(ScheduleBuildSettings {
            ambiguity_detection: LogLevel::Error,
            hierarchy_detection: LogLevel::Error,
            ..Default::default()
        });
        for pair in sets.windows(2) {
            schedule.configure_sets(pair[1].0.after(pair[0].0));
        }
        for (set, works) in sets {
            for work in *works {
                schedule.configure_sets(work.in_set(*set));
                if stops_on_failure {
                    schedule.configure_sets(work.run_if(running));
                }
            }
            for pair in works.windows(2) {
                schedule.configure_sets(pair[1].after(pair[0]));
            }
        }
    });
}
