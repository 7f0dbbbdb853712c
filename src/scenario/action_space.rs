//! Which members of the action heads controllers may choose at all (spec 03 §3.3, §3.4).

use serde::{Deserialize, Serialize};

/// Part `policy.masks.action_space`: allowed members by name; `None` allows all of a head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActionSpace {
    /// `wait` among them: the one op that is always possible.
    pub allowed_ops: Option<Vec<String>>,
    pub blueprint: Option<Vec<String>>,
    pub style: Option<Vec<String>>,
    pub tempo: Option<Vec<String>>,
    pub alpha_target: Option<Vec<String>>,
    pub alpha_speed: Option<Vec<String>>,
    pub alpha_curve: Option<Vec<String>>,
}

impl ActionSpace {
    /// Name and content of every list.
    pub fn lists(&self) -> [(&'static str, Option<&[String]>); 7] {
        [
            ("allowed_ops", self.allowed_ops.as_deref()),
            ("blueprint", self.blueprint.as_deref()),
            ("style", self.style.as_deref()),
            ("tempo", self.tempo.as_deref()),
            ("alpha_target", self.alpha_target.as_deref()),
            ("alpha_speed", self.alpha_speed.as_deref()),
            ("alpha_curve", self.alpha_curve.as_deref()),
        ]
    }

    /// Whether a list, as written, allows a member. Names match in either case.
    pub fn allows(list: Option<&[String]>, member: &str) -> bool {
        list.is_none_or(|list| list.iter().any(|name| name.eq_ignore_ascii_case(member)))
    }
}
