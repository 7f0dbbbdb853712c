//! Opponents of a policy, by the names that a user writes.

use crate::scenario::Catalog;

/// The controller of saved policies. As an opponent it has fresh weights.
pub(super) const LEARNED: &str = "actor_critic";
/// The default opponents. Without a learned policy nothing is played blindly.
const USUAL: [&str; 4] = ["heuristic", "random", "wait", "blind"];
const NONE: &str = "none";

/// Something that plays the policy's episodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opponent {
    /// A controller of that name.
    Controller(String),
    /// The policy's usual decision at each step, played without looking.
    Blind,
    /// A host so wide that it has no fewer parameters than the grown networks, and never grows.
    Widened,
    /// In each episode the architecture that the policy grew in it, with fresh weights: for as many steps, for as many
    /// multiply-accumulates and for as many seconds.
    FromScratch,
    /// The best of many schedules that were drawn: by accuracy, and by accuracy less what the size costs.
    Schedules,
}

impl Opponent {
    /// The opponents of these names; the usual ones if none are given.
    ///
    /// # Errors
    /// A name that is unknown or listed twice, with those that there are.
    pub fn named(names: Option<&[String]>, has_policy: bool, catalog: &Catalog) -> Result<Vec<Self>, String> {
        let usual = || USUAL.map(String::from)[..USUAL.len() - usize::from(!has_policy)].to_vec();
        let names = names.map_or_else(usual, <[String]>::to_vec);
        if names == [NONE] {
            return Ok(Vec::new());
        }
        let mut opponents = Vec::new();
        for name in names {
            let opponent = match name.as_str() {
                "blind" if has_policy => Self::Blind,
                "widened" => Self::Widened,
                "from_scratch" => Self::FromScratch,
                "schedules" => Self::Schedules,
                _ if catalog.controllers.iter().any(|known| known.name == name) => Self::Controller(name.clone()),
                _ => {
                    let own = ["widened", "from_scratch", "schedules"];
                    let blind = has_policy.then_some("blind");
                    let known = catalog.controllers.iter().map(|known| known.name.as_str());
                    let known: Vec<&str> = known.chain(blind).chain(own).collect();
                    return Err(format!(
                        "there is no opponent `{name}`; valid: none, {}",
                        known.join(", ")
                    ));
                }
            };
            if opponents.contains(&opponent) {
                return Err(format!("--against names `{name}` twice"));
            }
            opponents.push(opponent);
        }
        Ok(opponents)
    }

    /// As tables call it, one name a row.
    pub(super) fn rows(&self) -> Vec<String> {
        match self {
            Self::Controller(name) if name == LEARNED => vec![format!("{LEARNED} (untrained)")],
            Self::Controller(name) => vec![name.clone()],
            Self::Blind => vec!["blind".into()],
            Self::Widened => vec!["host widened".into()],
            Self::FromScratch => ["steps", "compute", "seconds"]
                .map(|equal| format!("from scratch, equal {equal}"))
                .to_vec(),
            Self::Schedules => vec!["best schedule".into(), "best schedule by net".into()],
        }
    }

    /// Returns whether its play is derived from the policy's play.
    pub(super) const fn is_derived(&self) -> bool {
        matches!(self, Self::Widened | Self::FromScratch | Self::Schedules)
    }
}
