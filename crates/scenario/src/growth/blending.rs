//! The entry of a seed into the host: operators, curves, targets and lengths of its ramps.

use super::coded_enum;

coded_enum! {
    /// The operator by which a seed's residual enters the host.
    AlphaAlgorithm {
        /// `h + α·δ`, with the host's features `h` and the seed's residual `δ`.
        Add = 1 => "ADD",
        /// `h·(1 + α·tanh δ)`.
        Multiply = 2 => "MULTIPLY",
        /// `h + α·g·δ`, with the value `g` of a small learned gate network.
        Gate = 3 => "GATE",
    }
}
coded_enum! {
    /// State of the amplitude.
    AlphaMode {
        /// It stays.
        Hold = 0 => "HOLD",
        /// It rises.
        Up = 1 => "UP",
        /// It falls.
        Down = 2 => "DOWN",
    }
}
coded_enum! {
    /// Easing of an amplitude ramp.
    AlphaCurve {
        /// In a line.
        Linear = 1 => "LINEAR",
        /// In half a cosine.
        Cosine = 2 => "COSINE",
        /// In a normalised logistic curve.
        Sigmoid = 3 => "SIGMOID",
    }
}
coded_enum! {
    /// Curve and operator of a seed's first blend.
    GerminationStyle {
        /// A linear ramp of an added residual.
        LinearAdd = 0 => "LINEAR_ADD",
        /// A linear ramp of a multiplied residual.
        LinearMultiply = 1 => "LINEAR_MULTIPLY",
        /// A logistic ramp of an added residual.
        SigmoidAdd = 2 => "SIGMOID_ADD",
        /// A linear ramp of a gated residual.
        GatedGate = 3 => "GATED_GATE",
    }
}

/// Steepness of a sigmoid ramp unless an action says otherwise.
pub const DEFAULT_STEEPNESS: f64 = 12.0;

impl GerminationStyle {
    /// Its operator.
    pub const fn algorithm(self) -> AlphaAlgorithm {
        match self {
            Self::LinearAdd | Self::SigmoidAdd => AlphaAlgorithm::Add,
            Self::LinearMultiply => AlphaAlgorithm::Multiply,
            Self::GatedGate => AlphaAlgorithm::Gate,
        }
    }

    /// Its curve.
    pub const fn curve(self) -> AlphaCurve {
        match self {
            Self::SigmoidAdd => AlphaCurve::Sigmoid,
            _ => AlphaCurve::Linear,
        }
    }
}

coded_enum! {
    /// Length of the first blend, in steps.
    Tempo {
        /// 3 steps.
        Fast = 0 => "FAST",
        /// 5 steps.
        Standard = 1 => "STANDARD",
        /// 8 steps.
        Slow = 2 => "SLOW",
    }
}

impl Tempo {
    /// Steps.
    pub const fn ticks(self) -> u32 {
        [3, 5, 8][self as usize]
    }
}

coded_enum! {
    /// Amplitude to blend to.
    AlphaTarget {
        /// 0.5.
        Half = 0 => "HALF",
        /// 0.7.
        Seventy = 1 => "SEVENTY",
        /// 1.
        Full = 2 => "FULL",
    }
}

impl AlphaTarget {
    /// The amplitude, 0 to 1.
    pub const fn value(self) -> f64 {
        [0.5, 0.7, 1.0][self as usize]
    }
}

coded_enum! {
    /// Length of a later ramp, in steps.
    AlphaSpeed {
        /// At once.
        Instant = 0 => "INSTANT",
        /// 3 steps.
        Fast = 1 => "FAST",
        /// 5 steps.
        Medium = 2 => "MEDIUM",
        /// 8 steps.
        Slow = 3 => "SLOW",
    }
}

impl AlphaSpeed {
    /// Steps.
    pub const fn ticks(self) -> u32 {
        [0, 3, 5, 8][self as usize]
    }
}

coded_enum! {
    /// Curve of a later ramp.
    AlphaCurveAction {
        /// In a line.
        Linear = 0 => "LINEAR",
        /// In half a cosine.
        Cosine = 1 => "COSINE",
        /// A logistic curve of steepness 6.
        SigmoidGentle = 2 => "SIGMOID_GENTLE",
        /// A logistic curve of steepness 12.
        Sigmoid = 3 => "SIGMOID",
        /// A logistic curve of steepness 24.
        SigmoidSharp = 4 => "SIGMOID_SHARP",
    }
}

impl AlphaCurveAction {
    /// Its shape.
    pub const fn curve(self) -> AlphaCurve {
        match self {
            Self::Linear => AlphaCurve::Linear,
            Self::Cosine => AlphaCurve::Cosine,
            Self::SigmoidGentle | Self::Sigmoid | Self::SigmoidSharp => AlphaCurve::Sigmoid,
        }
    }

    /// Steepness of its logistic curve, if it is one.
    pub const fn steepness(self) -> f64 {
        match self {
            Self::SigmoidGentle => 6.0,
            Self::SigmoidSharp => 24.0,
            _ => DEFAULT_STEEPNESS,
        }
    }
}
