//! The training loop as a whole, played in memory on small tasks and watched by systems that these tests add.

mod batch_order;
mod counterfactuals;
mod edge_cases;
mod fallbacks;
mod groups;
mod incubation;
mod independence;
mod layout;
mod lifecycle;
mod micro_batches;
mod plugins;
mod precision;
mod rates;
mod statistics;
mod storage;
mod streams;
pub(crate) mod support;
