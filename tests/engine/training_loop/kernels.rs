//! The engine's own kernels against libtorch's operators: the same training up to rounding.

use simic_engine::prelude::*;

use super::support::*;
use crate::recorded::NOTHING;

/// Losses of every step: training, then validation.
type Losses = Vec<f64>;

fn note(envs: Query<(&TrainMetrics, &ValMetrics)>, mut losses: ResMut<Notes<Losses>>) {
    losses
        .0
        .extend(envs.iter().flat_map(|(train, val)| [train.loss, val.loss]));
}

#[test]
fn own_kernels_train_as_libtorchs_operators_do() {
    // A seed that learns from the second step on and is blended in from the third.
    let policy = schedule(&[
        (1, &germinate("r0c1", "conv_heavy")),
        (2, &advance("r0c1")),
        (3, &advance("r0c1")),
    ]);
    for task in [MINIMAL, &MINIMAL.replace("minimal", "impaired")] {
        let [own, libtorch] = ["own", "libtorch"].map(|kernels| -> Losses {
            let text = scenario(task, 1, 5, &policy).replace("rounds: 1,", &format!("rounds: 1, kernels: {kernels},"));
            noted(app(&text, NOTHING), note)
        });

        assert_eq!(own.len(), 2 * 5);
        for (own, libtorch) in own.iter().zip(&libtorch) {
            assert!((own - libtorch).abs() <= 1e-4 * libtorch, "{own} and {libtorch}");
        }
    }
}
