//! Standardised advantages (spec 04 §6.7).

/// Mean and population deviation, and whether the deviation lies below the floor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    pub mean: f64,
    pub deviation: f64,
    pub is_floored: bool,
}

/// Of the values that the actor learns from.
pub fn spread(values: &[f64], floor: f64) -> Spread {
    if values.is_empty() {
        return Spread::default();
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
    Spread {
        mean,
        deviation,
        is_floored: deviation < floor,
    }
}

impl Spread {
    /// Keeps the division defined where the floor is 0.
    pub const EPSILON: f64 = 1e-8;

    /// `(a − mean) / (max(deviation, floor) + 1e-8)`. The floor, in reward units, keeps the noise of rollouts whose
    /// steps are nearly alike from being blown up.
    pub fn standardise(&self, advantage: f64, floor: f64) -> f64 {
        (advantage - self.mean) / (self.deviation.max(floor) + Self::EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standardised(values: &[f64]) -> Vec<f64> {
        let spread = spread(values, 0.1);
        values.iter().map(|&value| spread.standardise(value, 0.1)).collect()
    }

    /// Spec 04 Check 5; the fifth, forced step is not among the values.
    #[test]
    fn advantages_are_centred_and_divided() {
        let values = [2.0, -1.0, 0.5, 3.0];
        let found = spread(&values, 0.1);
        assert!((found.mean - 1.125).abs() < 1e-9 && (found.deviation - 1.515_544_5).abs() < 1e-6);
        let expected = [0.577_350_3, -1.402_136_4, -0.412_393_1, 1.237_179_2];
        for (actual, expected) in standardised(&values).iter().zip(expected) {
            assert!((actual - expected).abs() < 1e-6);
        }
    }

    /// Spec 04 Check 5.
    #[test]
    fn a_deviation_below_the_floor_is_raised_to_it() {
        let values = [1.0, 1.02, 0.98, 1.0];
        assert!(spread(&values, 0.1).is_floored);
        for (actual, expected) in standardised(&values).iter().zip([0.0, 0.2, -0.2, 0.0]) {
            assert!((actual - expected).abs() < 1e-6);
        }
    }
}
