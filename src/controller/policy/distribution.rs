//! One masked categorical distribution with its exploration floor, in f64 on the host (spec 03 §4.1-4.3, §4.5).

use crate::controller::{Choices, HEADS, Head};
use crate::scenario::{FloorConfig, FloorMode};

/// The probability that every valid member of a head keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    pub mode: FloorMode,
    /// Before the cap that many valid members put on it.
    pub epsilon: f64,
}

impl Floor {
    pub const NONE: Self = Self {
        mode: FloorMode::None,
        epsilon: 0.0,
    };

    /// The floors of all heads, in storage order, each scaled by `scale`. A floor of nothing is no floor.
    pub fn of_heads(config: &FloorConfig, scale: f64) -> [Self; HEADS] {
        Head::ALL.map(|head| {
            let epsilon = scale
                * match head {
                    Head::Slot => config.slot,
                    Head::Blueprint => config.blueprint,
                    Head::Style => config.style,
                    Head::Tempo => config.tempo,
                    Head::AlphaTarget => config.alpha_target,
                    Head::AlphaSpeed => config.alpha_speed,
                    Head::AlphaCurve => config.alpha_curve,
                    Head::Op => config.op,
                };
            if epsilon > 0.0 {
                let mode = config.mode;
                Self { mode, epsilon }
            } else {
                Self::NONE
            }
        })
    }

    /// The largest floor that leaves room for a preference among `valid` members (spec 03 §4.2).
    pub(super) fn cap(mode: FloorMode) -> f64 {
        match mode {
            FloorMode::Mixture => 0.5,
            FloorMode::Clamp => 0.99,
            FloorMode::None => 0.0,
        }
    }

    fn for_members(self, valid: usize) -> f64 {
        self.epsilon.min(Self::cap(self.mode) / valid as f64)
    }
}

/// Probabilities of a head's members, floored, and the entropy before the floor.
#[derive(Clone, Debug)]
pub struct Categorical {
    valid: Choices,
    probabilities: [f64; Choices::CAPACITY],
    log_probabilities: [f64; Choices::CAPACITY],
    entropy: f64,
}

impl Categorical {
    /// `logits`: one per member, finite. `valid` is not empty: the masks' invariant.
    pub fn new(logits: &[f32], valid: Choices, floor: Floor) -> Self {
        let mut probabilities = [0.0; Choices::CAPACITY];
        let mut log_probabilities = [f64::NEG_INFINITY; Choices::CAPACITY];
        let members = || valid.iter().take_while(|&member| member < logits.len());
        let logit = |member: usize| f64::from(logits[member]);
        let highest = members().map(logit).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = members().map(|member| (logit(member) - highest).exp()).sum();
        let log_sum = highest + sum.ln();
        let mut entropy = 0.0;
        for member in members() {
            let log_probability = logit(member) - log_sum;
            log_probabilities[member] = log_probability;
            probabilities[member] = log_probability.exp();
            entropy -= probabilities[member] * log_probability;
        }
        let count = valid.len();
        let mut distribution = Self {
            valid,
            probabilities,
            log_probabilities,
            entropy: if count < 2 { 0.0 } else { entropy / (count as f64).ln() },
        };
        distribution.raise_to(floor);
        distribution
    }

    fn raise_to(&mut self, floor: Floor) {
        let count = self.valid.len();
        let least = floor.for_members(count);
        match floor.mode {
            FloorMode::None => return,
            FloorMode::Mixture => {
                let share = 1.0 - count as f64 * least;
                for member in self.valid.iter() {
                    self.probabilities[member] = share * self.probabilities[member] + least;
                }
            }
            FloorMode::Clamp => {
                let below = |probability: &f64| *probability < least;
                let (mut raised, mut above) = (0, 0.0);
                for member in self.valid.iter() {
                    match self.probabilities[member] {
                        probability if below(&probability) => raised += 1,
                        probability => above += probability,
                    }
                }
                let scale = (1.0 - least * f64::from(raised)) / above;
                for member in self.valid.iter() {
                    let probability = &mut self.probabilities[member];
                    *probability = if below(probability) {
                        least
                    } else {
                        *probability * scale
                    };
                }
            }
        }
        for member in self.valid.iter() {
            self.log_probabilities[member] = self.probabilities[member].ln();
        }
    }

    /// 0 for a member that is not valid.
    pub fn probability(&self, member: usize) -> f64 {
        self.probabilities[member]
    }

    /// Natural logarithm; negative infinity for a member that is not valid.
    pub fn log_probability(&self, member: usize) -> f64 {
        self.log_probabilities[member]
    }

    /// Of the distribution without floor, over the logarithm of the number of valid members: in [0, 1].
    pub fn entropy(&self) -> f64 {
        self.entropy
    }

    /// The member that `uniform` in (0, 1) falls on, by inverse CDF over ascending members.
    pub fn draw(&self, uniform: f64) -> usize {
        let mut cumulated = 0.0;
        let mut last = 0;
        for member in self.valid.iter() {
            cumulated += self.probabilities[member];
            last = member;
            if uniform < cumulated {
                break;
            }
        }
        last
    }

    /// The likeliest member, the lowest of equals.
    pub fn likeliest(&self) -> usize {
        let mut best = self.valid.lowest().unwrap_or(0);
        for member in self.valid.iter() {
            if self.probabilities[member] > self.probabilities[best] {
                best = member;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::{Draw, RunRng};

    const LOGITS: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    fn even() -> Choices {
        [0, 2, 4].into_iter().collect()
    }

    fn floored(logits: &[f32], valid: Choices, mode: FloorMode, epsilon: f64) -> Categorical {
        Categorical::new(logits, valid, Floor { mode, epsilon })
    }

    fn probabilities(distribution: &Categorical) -> Vec<f64> {
        distribution
            .valid
            .iter()
            .map(|member| distribution.probability(member))
            .collect()
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
        }
    }

    /// Spec 03 Check 7.
    #[test]
    fn a_masked_softmax_shares_all_probability_among_valid_members() {
        let distribution = Categorical::new(&LOGITS, even(), Floor::NONE);
        assert_close(
            &probabilities(&distribution),
            &[0.015_876_24, 0.117_310_43, 0.866_813_33],
        );
        let logs: Vec<f64> = even().iter().map(|i| distribution.log_probability(i)).collect();
        assert_close(&logs, &[-4.142_932, -2.142_932, -0.142_932]);
        assert_close(&[distribution.entropy()], &[0.401_468]);
        assert_close(&[distribution.entropy() * 3f64.ln()], &[0.441_057]);
        assert_eq!(distribution.probability(5), 0.0);
    }

    /// Spec 03 Check 7.
    #[test]
    fn a_single_valid_member_is_certain() {
        for mode in [FloorMode::None, FloorMode::Mixture, FloorMode::Clamp] {
            let distribution = floored(&LOGITS, Choices::only(3), mode, 0.05);
            assert!(distribution.log_probability(3).abs() < 1e-15);
            assert_eq!(distribution.entropy(), 0.0);
        }
    }

    /// Spec 04 Check 12.
    #[test]
    fn entropy_is_measured_in_units_of_the_most_that_there_can_be() {
        let distribution = Categorical::new(&[0.7f32, 0.2, 0.1].map(f32::ln), Choices::first_n(3), Floor::NONE);
        assert_close(&[distribution.entropy()], &[0.729_846_7]);
    }

    /// Spec 03 Check 8.
    #[test]
    fn a_mixture_floor_lifts_every_valid_member_and_is_capped() {
        let distribution = floored(&LOGITS, even(), FloorMode::Mixture, 0.05);
        assert_close(&probabilities(&distribution), &[0.063_494_8, 0.149_713_9, 0.786_791_3]);
        let logs: Vec<f64> = even().iter().map(|i| distribution.log_probability(i)).collect();
        assert_close(&logs, &[-2.756_797, -1.899_029, -0.239_792]);
        let capped = floored(&LOGITS, even(), FloorMode::Mixture, 0.3);
        assert_close(&probabilities(&capped), &[0.174_604_8, 0.225_321_9, 0.600_073_3]);
    }

    /// Spec 03 §4.2.
    #[test]
    fn a_clamp_floor_may_push_members_below_it() {
        let logits = [0.6f32, 0.151, 0.149, 0.05, 0.05].map(f32::ln);
        let distribution = floored(&logits, Choices::first_n(5), FloorMode::Clamp, 0.15);
        let found = probabilities(&distribution);
        for (found, expected) in found.iter().zip([0.4394, 0.1106, 0.15, 0.15, 0.15]) {
            assert!((found - expected).abs() < 1e-4, "{found} is not {expected}");
        }
    }

    /// Spec 03 Check 9.
    #[test]
    fn uniforms_fall_on_members_in_ascending_order() {
        let distribution = floored(&LOGITS, even(), FloorMode::Mixture, 0.05);
        let drawn = [0.06, 0.0635, 0.20, 0.999_999_9].map(|uniform| distribution.draw(uniform));
        assert_eq!(drawn, [0, 2, 2, 4]);
        assert_eq!(distribution.likeliest(), 4);
        let equal = Categorical::new(&[1.0; 6], even(), Floor::NONE);
        assert_eq!(equal.likeliest(), 0);
    }

    /// Spec 03 Check 9: ten million draws, chi-squared with two degrees of freedom below its 0.1 % point of 13.816.
    #[test]
    fn draws_follow_the_probabilities_and_never_leave_the_mask() {
        const DRAWS: u32 = 10_000_000;
        let distribution = floored(&LOGITS, even(), FloorMode::Mixture, 0.05);
        let mut rng = RunRng::from_seed(1);
        let mut counts = [0u32; 6];
        for _ in 0..DRAWS {
            counts[distribution.draw(rng.uniform_f64())] += 1;
        }
        assert_eq!([counts[1], counts[3], counts[5]], [0, 0, 0]);
        let chi_squared: f64 = [(0, 0.063_494_78), (2, 0.149_713_87), (4, 0.786_791_35)]
            .iter()
            .map(|&(member, probability)| {
                let expected: f64 = probability * f64::from(DRAWS);
                (f64::from(counts[member]) - expected).powi(2) / expected
            })
            .sum();
        assert!(chi_squared < 13.816, "{chi_squared}");
    }

    proptest! {
        #[test]
        fn floored_probabilities_sum_to_one_over_the_mask_alone(
            logits in prop::collection::vec(-30.0f32..30.0, 13),
            bits in 1u64..1 << 13,
            mode in prop::sample::select(vec![FloorMode::None, FloorMode::Mixture, FloorMode::Clamp]),
            epsilon in 0.001..0.9f64,
            uniform in 0.0..1.0f64,
        ) {
            let valid: Choices = (0..13).filter(|member| bits >> member & 1 == 1).collect();
            let distribution = floored(&logits, valid, mode, epsilon);
            let sum: f64 = (0..13).map(|member| distribution.probability(member)).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
            prop_assert!(valid.contains(distribution.draw(uniform)));
            prop_assert!(valid.contains(distribution.likeliest()));
            prop_assert!((0.0..=1.0 + 1e-12).contains(&distribution.entropy()));
        }
    }
}
