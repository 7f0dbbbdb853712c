//! Output for readers: tables and texts drawn from values, in lines that fit a terminal. The caller sets the width.

mod table;
mod words;
mod lines;
mod csv;
mod thinned;
mod state;
mod results;
mod summary;
mod comparison;
mod evaluation;
mod grown;
mod adapted;
mod html;
mod served;
mod terminal;
mod runs;
mod audit;
mod survey;
mod trials;

pub use adapted::adaptation_text;
pub use audit::{audit_text, exploited};
pub use comparison::{comparison_tables, comparison_text};
pub use evaluation::evaluation_text;
pub use grown::growth_text;
pub use html::{ListedTraining, adaptation_page, comparison_page, evaluation_page, growth_page, run_page};
pub use lines::{anomaly_lines, event_line, header, round_line};
pub use results::{merged, run_results};
pub use runs::runs_table;
pub use served::{ServeError, Served, serve};
pub use state::{Feed, FeedError, RunSource, ViewState};
pub use summary::summary;
pub use survey::survey_text;
pub use table::Table;
pub use terminal::{Panel, View, draw};
pub use trials::{end_text, plan_table, short_id, sweep_tables, sweep_text, write_sweep};
pub use words::{ABSENT, WIDTH, short_duration, signed, wrapped};
