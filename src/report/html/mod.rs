//! Reports: one HTML file that opens anywhere without a network, prints, and can be sent by mail.

mod svg;
mod page;
mod chart;
mod pictures;
mod timeline;
mod network;
mod learning;
mod growth;
mod run;
mod comparison;
mod evaluation;
mod grown;
mod adapted;

pub use adapted::adaptation_page;
pub use comparison::{ListedTraining, comparison_page};
pub use evaluation::evaluation_page;
pub use grown::growth_page;
pub use run::{list_page, run_page};
