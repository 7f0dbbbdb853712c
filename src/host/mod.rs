//! Host networks: pure backbones with injection points (spec 01 §1).

mod layout;

pub use layout::*;
