//! Reports: one HTML file that opens anywhere without a network, prints, and can be sent by mail.

mod svg;
mod chart;
mod page;
mod timeline;
mod network;
mod learning;
mod growth;
mod run;
mod list;
mod comparison;

pub use comparison::{ListedTraining, comparison_page};
pub use list::list_page;
pub use run::{RunPage, run_page};
