//! A custom data set: stripes in ten directions, drawn when the run starts. A scenario names it and sets its fields, which are
//! checked, explained and given defaults as any field.
//!
//! Run it with `cargo run --release --example custom_data`.

use std::convert::Infallible;
use std::f64::consts::PI;

use simic_engine::extend::Part;
use simic_engine::prelude::*;

const SIDE: usize = 8;
const CLASSES: usize = 10;
const IMAGES: usize = 1200;

section! {
    /// Settings of a scenario. They are checked, explained and given defaults as any field of a scenario.
    pub struct Stripes {
        /// Distance from one stripe to the next.
        #[unit = "pixels"]
        period: f64 = 4.0, POSITIVE;
        /// Seed of the places where the stripes begin.
        seed: u64 = 7;
    }
}

/// The direction of the stripes is the class; where they begin is drawn.
fn stripes(&Stripes { period, seed }: &Stripes) -> Result<CustomImages, Infallible> {
    let mut rng = RunRng::new(seed, Domain::ProceduralImage, &[]);
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for image in 0..IMAGES {
        let class = image % CLASSES;
        let (sin, cos) = (PI * class as f64 / CLASSES as f64).sin_cos();
        let phase = 2.0 * PI * rng.uniform_f64();
        labels.push(class as i64);
        for (y, x) in (0..SIDE * SIDE).map(|pixel| (pixel / SIDE, pixel % SIDE)) {
            let place = (x as f64 * cos + y as f64 * sin) / period;
            let brightness = 0.5 + 0.5 * (2.0 * PI * place + phase).sin();
            images.push((255.0 * brightness).round() as u8);
        }
    }
    Ok(CustomImages {
        height: SIDE,
        width: SIDE,
        channels: 1,
        scale: 255.0,
        train: Part {
            images: images.into(),
            labels,
        },
        val: None,
        test: None,
    })
}

fn register(app: &mut App) {
    let mut sets = app.world_mut().resource_mut::<DataRegistry>();
    sets.register_with("stripes", "stripes in ten directions", |settings: Stripes| {
        Arc::new(move |_: &DataRequest| stripes(&settings))
    });
}

const SCENARIO: &str = r#"(
    task: preset("digits_baseline", (data: custom(name: "stripes", settings: (period: 3.5)))),
    run: (rounds: 1, n_envs: 1, max_steps: 12),
    policy: (controller: "wait"),
)"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut engine = Engine::builder().with(register).from_ron(SCENARIO)?;
    while engine.step()? {
        let mut envs = engine.world_mut().query::<&ValMetrics>();
        for metrics in envs.iter(engine.world()) {
            println!("{:5.1} %", metrics.accuracy_percent);
        }
    }
    Ok(())
}
