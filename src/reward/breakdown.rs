//! What a reward is made of: signed terms whose sum it is, and numbers that explain them (spec 05 §6).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a term stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TermGroup {
    Primary,
    Terminal,
    Shaping,
    Cost,
    Penalty,
}

/// Declares the terms in the order in which they are added up.
macro_rules! terms {
    ($($term:ident => $name:literal in $group:ident),+ $(,)?) => {
        /// One part of a reward, stored with the sign with which it enters the sum.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Term { $($term),+ }

        impl Term {
            /// All terms, in the order of the sum.
            pub const ALL: &'static [Self] = &[$(Self::$term),+];

            /// The name that telemetry prints.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$term => $name),+ }
            }

            pub const fn group(self) -> TermGroup {
                match self { $(Self::$term => TermGroup::$group),+ }
            }
        }
    };
}

terms! {
    Attribution => "attribution" in Primary,
    FossilAttribution => "fossil_attribution" in Primary,
    LossDelta => "loss_delta" in Primary,
    FossilizeBonus => "fossilize_bonus" in Primary,
    SparseOutcome => "sparse_outcome" in Primary,
    TerminalAccuracy => "terminal_accuracy" in Terminal,
    TerminalGain => "terminal_gain" in Terminal,
    TerminalFossil => "terminal_fossil" in Terminal,
    TerminalLoss => "terminal_loss" in Terminal,
    Pbrs => "pbrs" in Shaping,
    Synergy => "synergy" in Shaping,
    Hindsight => "hindsight" in Shaping,
    FossilizeShaping => "fossilize_shaping" in Shaping,
    CompletionBonus => "completion_bonus" in Shaping,
    PruneShaping => "prune_shaping" in Shaping,
    ComputeRent => "compute_rent" in Cost,
    LinearRent => "linear_rent" in Cost,
    OccupancyRent => "occupancy_rent" in Cost,
    FossilRent => "fossil_rent" in Cost,
    Intervention => "intervention" in Cost,
    RatioPenalty => "ratio_penalty" in Penalty,
    AlphaShock => "alpha_shock" in Penalty,
    BlendingWarning => "blending_warning" in Penalty,
    HoldingWarning => "holding_warning" in Penalty,
    AutoPrune => "auto_prune" in Penalty,
    Rejected => "rejected" in Penalty,
    Governor => "governor" in Penalty,
}

/// Numbers behind the terms that are not part of the sum. What concerns a seed is the acted slot's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardContext {
    /// Potential before the action and after the tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phi: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phi_next: Option<f64>,
    /// Joint improvement of all growing seeds, percentage points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_cf: Option<f64>,
    /// Of the acted slot's seed, percentage points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contribution: Option<f64>,
    /// Accuracy since the acted slot's germination, percentage points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// Factor on positive attribution for harmful coalitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regression_discount: Option<f64>,
    /// Factor on the acted slot's positive attribution for early germination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing_discount: Option<f64>,
    /// Parameters that rent is charged for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_params: Option<f64>,
    /// What frozen attributions pay per step from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_sum: Option<f64>,
}

impl RewardContext {
    /// The numbers that there are, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("phi", self.phi),
            ("phi_next", self.phi_next),
            ("delta_cf", self.delta_cf),
            ("contribution", self.contribution),
            ("progress", self.progress),
            ("regression_discount", self.regression_discount),
            ("timing_discount", self.timing_discount),
            ("effective_params", self.effective_params),
            ("frozen_sum", self.frozen_sum),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The raw reward of one env and step: the sum of its terms, by definition.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardBreakdown {
    terms: [f64; Term::ALL.len()],
    pub context: RewardContext,
}

impl RewardBreakdown {
    /// Adds `amount` to a term.
    pub fn pay(&mut self, term: Term, amount: f64) {
        self.terms[term as usize] += amount;
    }

    pub fn get(&self, term: Term) -> f64 {
        self.terms[term as usize]
    }

    /// The reward.
    pub fn total(&self) -> f64 {
        self.terms.iter().sum()
    }

    /// The terms that are not zero, in the order of the sum.
    pub fn iter(&self) -> impl Iterator<Item = (Term, f64)> {
        let terms = Term::ALL.iter().map(|&term| (term, self.get(term)));
        terms.filter(|(_, amount)| *amount != 0.0)
    }

    /// Share of shaping in all that was paid and charged, 0 to 1; 0 for an empty reward.
    pub fn shaping_share(&self) -> f64 {
        let sizes = |keep: fn(TermGroup) -> bool| -> f64 {
            let terms = self.iter().filter(|(term, _)| keep(term.group()));
            terms.map(|(_, amount)| amount.abs()).sum()
        };
        let all = sizes(|_| true);
        if all > 0.0 {
            sizes(|group| group == TermGroup::Shaping) / all
        } else {
            0.0
        }
    }
}

/// As written: terms that are zero are absent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    terms: BTreeMap<Term, f64>,
    context: RewardContext,
}

impl Serialize for RewardBreakdown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written {
            terms: self.iter().collect(),
            context: self.context,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RewardBreakdown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let mut breakdown = Self {
            context: written.context,
            ..Self::default()
        };
        for (term, amount) in written.terms {
            breakdown.pay(term, amount);
        }
        Ok(breakdown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec 07 C10.
    #[test]
    fn a_reward_is_the_sum_of_its_terms_and_knows_how_much_of_it_is_shaping() {
        let mut breakdown = RewardBreakdown::default();
        for (term, amount) in [
            (Term::Attribution, 0.4),
            (Term::ComputeRent, -0.15),
            (Term::Pbrs, 0.05),
            (Term::Synergy, 0.10),
            (Term::Intervention, -0.1),
        ] {
            breakdown.pay(term, amount);
        }

        assert!((breakdown.total() - 0.3).abs() < 1e-9);
        assert!((breakdown.shaping_share() - 0.1875).abs() < 1e-9);
        assert_eq!(RewardBreakdown::default().shaping_share(), 0.0);
    }

    #[test]
    fn a_breakdown_is_written_without_zeros_and_reads_back_exactly() {
        let mut breakdown = RewardBreakdown::default();
        breakdown.pay(Term::Pbrs, 0.1 + 0.2);
        breakdown.context.delta_cf = Some(-0.1);

        let text = serde_json::to_string(&breakdown).unwrap();

        assert_eq!(
            text,
            r#"{"terms":{"pbrs":0.30000000000000004},"context":{"delta_cf":-0.1}}"#
        );
        assert_eq!(serde_json::from_str::<RewardBreakdown>(&text).unwrap(), breakdown);
    }

    #[test]
    fn a_term_s_name_is_what_serde_writes() {
        for &term in Term::ALL {
            assert_eq!(serde_json::to_value(term).unwrap(), term.name());
        }
    }
}
