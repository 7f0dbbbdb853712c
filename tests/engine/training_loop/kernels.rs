//! The engine's own kernels against libtorch's operators: the same training up to rounding.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::prelude::*;

use super::support::*;

/// Losses of every step: training, then validation.
#[derive(Resource, Default)]
struct Losses(Vec<[f64; 2]>);

fn note(envs: Query<(&TrainMetrics, &ValMetrics)>, mut losses: ResMut<Losses>) {
    losses.0.extend(envs.iter().map(|(train, val)| [train.loss, val.loss]));
}

/// A seed that learns from the second step on and is blended in from the third.
fn losses(task: &str, kernels: &str) -> Vec<[f64; 2]> {
    let policy = schedule(&[
        (1, &germinate("r0c1", "conv_heavy")),
        (2, &advance("r0c1")),
        (3, &advance("r0c1")),
    ]);
    let text = scenario(task, 1, 5, &policy).replace("rounds: 1,", &format!("rounds: 1, kernels: {kernels},"));
    let Losses(losses) = play(app(&text, |app: &mut App| {
        app.init_resource::<Losses>()
            .add_systems(StepEnd, note.after(Work::EmitStep));
    }));
    losses
}

#[test]
fn own_kernels_train_as_libtorchs_operators_do() {
    for task in [
        r#"preset("digits_minimal", (batches_per_step: count(2)))"#,
        r#"preset("digits_impaired", (batches_per_step: count(2)))"#,
    ] {
        let (own, libtorch) = (losses(task, "own"), losses(task, "libtorch"));

        assert_eq!(own.len(), 5);
        for (own, libtorch) in own.iter().zip(&libtorch) {
            for (own, libtorch) in own.iter().zip(libtorch) {
                assert!((own - libtorch).abs() <= 1e-4 * libtorch, "{own} and {libtorch}");
            }
        }
    }
}
