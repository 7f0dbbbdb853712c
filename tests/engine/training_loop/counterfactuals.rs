//! The loop's one validation pass equals a separate pass for every configuration.

use bevy_app::App;
use bevy_ecs::prelude::*;
use simic_engine::internals::env::grafted::{self, Graft, GraftKind};
use simic_engine::internals::env::{HostModel, SeedSlots};
use simic_engine::internals::nn::Mode;
use simic_engine::internals::torch::NoGrad;
use simic_engine::internals::validation::{Counterfactual, ValBatches};
use simic_engine::prelude::*;
use tch::Kind;

use super::support::*;

/// Accuracy in percent of each configuration: as measured by the engine, and by a pass of its own.
#[derive(Resource, Default)]
struct Accuracies {
    masks: Vec<u64>,
    fused: Vec<f64>,
    separate: Vec<f64>,
}

type Validated = (
    &'static mut HostModel,
    &'static mut SeedSlots,
    &'static mut ValBatches,
    &'static Counterfactual,
);

fn note(mut envs: Query<Validated>, mut notes: ResMut<Accuracies>) {
    let (mut host, mut slots, mut batches, counterfactual) = envs.single_mut().expect("one env");
    let matrix = counterfactual.matrix.as_ref().expect("seeds are on");
    let _no_grad = NoGrad::new();
    let mut separate = Vec::new();
    for mask in matrix.rows.iter().map(|row| row.mask.0) {
        let on = slots
            .0
            .iter_mut()
            .enumerate()
            .filter(|(slot, _)| mask & (1 << slot) != 0);
        let uses: Vec<Graft> = on
            .map(|(_, slot)| {
                let seed = slot.record.as_ref().expect("every slot is a player");
                Graft {
                    boundary: slot.spec.boundary,
                    instance: slot.module.as_mut().expect("with a module").get(),
                    kind: GraftKind::Blend {
                        alpha: seed.alpha.alpha(),
                        algorithm: seed.algorithm,
                        isolated: true,
                    },
                }
            })
            .collect();
        let (mut correct, mut samples) = (0.0, 0.0);
        for batch in batches.0.get().iter() {
            let logits = grafted::forward(&**host.0.get(), &uses, &batch.x, Mode::Eval).expect("a forward pass");
            let hits = logits.argmax(1, false).eq_tensor(&batch.y);
            correct += f64::from(values(&hits.sum(Kind::Float))[0]);
            samples += batch.n as f64;
        }
        separate.push(100.0 * correct / samples);
    }
    *notes = Accuracies {
        masks: matrix.rows.iter().map(|row| row.mask.0).collect(),
        fused: matrix.rows.iter().map(|row| row.accuracy.0).collect(),
        separate,
    };
}

#[test]
fn every_configuration_of_three_blending_seeds_equals_its_own_pass() {
    let orders = |slot: &'static str, style: &str, first: u32| {
        let germinate = format!(
            r#"germinate(slot: "{slot}", blueprint: "conv_small", style: "{style}", tempo: "slow", target: "full")"#
        );
        [
            (first, germinate),
            (first + 3, advance(slot)),
            (first + 14, advance(slot)),
        ]
    };
    let entries: Vec<(u32, String)> = [
        ("r0c0", "sigmoid_add", 1),
        ("r0c1", "linear_multiply", 2),
        ("r0c2", "gated_gate", 3),
    ]
    .into_iter()
    .flat_map(|(slot, style, first)| orders(slot, style, first))
    .collect();
    let mut entries: Vec<(u32, &str)> = entries
        .iter()
        .map(|(step, command)| (*step, command.as_str()))
        .collect();
    entries.sort_unstable();
    let is_last_step = |clock: Res<RunClock>| clock.is_last_step();

    let text = scenario(MINIMAL, 1, 20, &schedule(&entries));
    let found: Accuracies = play(app(&text, move |app: &mut App| {
        app.init_resource::<Accuracies>().add_systems(
            Assess,
            note.after(Work::Attribute)
                .before(Work::TrackSeeds)
                .run_if(is_last_step),
        );
    }));

    let mut masks = found.masks;
    assert_eq!(masks[0], 0b111);
    masks.sort_unstable();
    assert_eq!(masks, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(found.fused, found.separate);
    // The configurations are worth telling apart.
    assert!(found.fused.iter().any(|accuracy| *accuracy != found.fused[0]));
}
