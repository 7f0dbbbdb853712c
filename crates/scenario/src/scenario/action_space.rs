//! Part `policy.masks.action_space`: which members of the action heads controllers may choose at all.

use crate::growth::{AlphaCurveAction, AlphaSpeed, AlphaTarget, GerminationStyle, LifecycleOp, Tempo};
use crate::schema::section;

section! {
    /// Members that controllers may choose; `None` allows all of a head.
    #[derive(Eq)]
    pub struct ActionSpace {
        /// Operations, "wait" among them.
        allowed_ops: Option<Vec<LifecycleOp>> = Some(vec![
            LifecycleOp::Wait,
            LifecycleOp::Germinate,
            LifecycleOp::Prune,
            LifecycleOp::Commit,
        ]);
        /// Recipes of seeds.
        blueprint: Option<Vec<String>>, BLUEPRINT;
        /// Curves and operators of a blend.
        style: Option<Vec<GerminationStyle>>;
        /// Lengths of the first blend.
        tempo: Option<Vec<Tempo>>;
        /// Amplitudes to blend to.
        alpha_target: Option<Vec<AlphaTarget>> = Some(vec![AlphaTarget::Full]);
        /// Lengths of a later ramp.
        alpha_speed: Option<Vec<AlphaSpeed>>;
        /// Curves of a later ramp.
        alpha_curve: Option<Vec<AlphaCurveAction>>;
    }
}
