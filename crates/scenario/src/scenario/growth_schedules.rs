//! Sections `policy.periodic` and `policy.fragrow`: growth by published schedules.

use crate::growth::{GerminationStyle, Tempo};
use crate::schema::section;

section! {
    /// A seed every N steps: the schedule that papers on growing networks compare with.
    pub struct PeriodicConfig {
        /// Steps from one germination to the next, and before the first.
        period: u32 = 10, at_least(1);
        /// What germinates.
        growth: GrowthActConfig;
    }
}

section! {
    /// A seed after an interval that follows the risk of overfitting (Wu et al. 2024): short where the host underfits.
    pub struct FragrowConfig {
        /// Longest interval in steps. None: three quarters of an episode, shared out among the slots.
        i_max: Option<u32>, at_least(1);
        /// What germinates.
        growth: GrowthActConfig;
    }
}

section! {
    /// What germinates when a schedule says that it is time.
    pub struct GrowthActConfig {
        /// Blueprints in the order in which they germinate; after the last comes the first again.
        blueprints: Vec<String> = vec!["conv_light".into()], BLUEPRINT;
        /// Most germinations of an episode. None: as long as there are empty slots.
        max_growths: Option<u32>, at_least(1);
        /// Curve and operator of the blend.
        style: GerminationStyle = GerminationStyle::SigmoidAdd;
        /// Length of the blend.
        tempo: Tempo = Tempo::Standard;
    }
}
