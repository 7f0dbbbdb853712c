//! What people read: tables and texts drawn from values, in lines that fit a terminal. Who prints them decides how wide.

mod table;
mod words;
mod summary;
mod growth;
mod runs;
mod audit;
mod survey;

pub use audit::{audit_text, exploited};
pub use growth::{Change, GrowthEffects, GrowthSummary};
pub use runs::runs_table;
pub use summary::summary;
pub use survey::survey_text;
pub use table::Table;
pub use words::{ABSENT, WIDTH, signed, wrapped};
