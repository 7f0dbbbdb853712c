//! Experiments: arms of one scenario, trained side by side in replicates, scored by the same episodes and compared.
//!
//! Arms share nothing: each is an engine of its own, and an ordinary run in a folder of its own. One loop advances all of
//! them, so that whatever happens to the machine happens to all alike.
//!
//! ```text
//! scenario ──plan──► Design, arms ──folder──► EXPERIMENT/
//! replicate: engines ──together──► trained runs ──replicate──► scored by frozen play ──► result.json
//! results ──analysis──► statistics, verdicts, stamps ──report──► ab.json, events.jsonl, table
//! ```

mod plan;
mod outcome;
mod analysis;
mod report;
mod folder;
mod together;
mod replicate;
#[cfg(test)]
mod fixtures;

pub use analysis::{Analysis, ArmSummary, Conclusion, MetricSummary, Missing, PairSummary, Stamps};
pub use folder::{ExperimentError, ExperimentFolder};
pub use outcome::{ArmResult, Budget, Record, ReplicateResult};
pub use plan::{ArmDesign, Design, Plan};
pub use replicate::{Player, Told};
pub use report::Report;
pub use together::{Turns, launch_order, play_together};
