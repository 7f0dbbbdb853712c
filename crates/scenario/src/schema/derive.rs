//! Where declarations find serde: its attribute takes no `$crate`, and a glob import may be repeated.

pub use serde as simic_serde;
