//! A hook into training batches: once a step it reads the norm of the host's gradient, between the backward pass and the
//! optimizer. Hooks may as well change samples, gradients or weights.
//!
//! Run it with `cargo run --release --example custom_batch_hook`.

use simic_engine::extend::{HostSyncCounter, NoGrad, TorchError, read_f32};
use simic_engine::prelude::*;

/// L2 norm over all parameters; the gradients lie on the env's device.
fn gradient_norm(params: &ParamSet) -> Result<f32, TorchError> {
    let _no_grad = NoGrad::new();
    let norms = params.trainable().iter().map(|param| param.tensor.f_grad()?.f_norm());
    let norms = Tensor::f_stack(&norms.collect::<Result<Vec<_>, TchError>>()?, 0)?;
    let norm = read_f32(&norms.f_norm()?, &HostSyncCounter::default())?;
    Ok(norm[0])
}

fn register(app: &mut App) {
    app.on_batch(BatchPoint::Backward, |batch| {
        // Reading waits for the device, so only the last batch of a step is read.
        if batch.index + 1 == batch.count {
            let norm = gradient_norm(batch.env.host.0.get().params())?;
            let (env, step) = (batch.env.id.index, batch.clock.step());
            println!("env {env}, step {step}: the gradient's norm is {norm:.3}");
        }
        Ok(())
    });
}

const SCENARIO: &str = r#"(
    task: preset("digits_baseline", (batches_per_step: count(4))),
    run: (rounds: 1, n_envs: 1, max_steps: 8),
    policy: (controller: "wait"),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Engine::builder().with(register).from_ron(SCENARIO)?.run()?;
    Ok(())
}
