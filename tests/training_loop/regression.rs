//! Hosts that never grow learn as much as they should, no more and no less (spec 02 §1.2, Check 20). Slow: run them with
//! `cargo test --release --test training_loop -- --ignored`.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::prelude::*;

use crate::support::*;

/// Validation accuracy of every env at its last step, percent.
#[derive(Resource, Default)]
struct Final(Vec<f64>);

fn note(envs: Query<&ValMetrics>, mut accuracies: ResMut<Final>) {
    accuracies.0 = envs.iter().map(|metrics| metrics.accuracy_percent).collect();
}

fn hosts_alone(preset: &str) -> Vec<f64> {
    let text = scenario(&format!(r#"preset("{preset}")"#), 4, 100, WAIT);
    let accuracies: Final = play(app(&text, |app: &mut App| {
        app.init_resource::<Final>().add_systems(StepEnd, note.after(Work::EmitStep));
    }));
    accuracies.0
}
