//! The loop's one validation pass equals a separate pass for every configuration.

use simic_engine::internals::env::grafted::{self, Graft, GraftKind};
use simic_engine::internals::torch::NoGrad;
use simic_engine::internals::validation::{Counterfactual, ValidationBatches};
use simic_engine::prelude::*;
use tch::Kind;

use super::support::*;
use crate::recorded::NOTHING;

/// Each configuration with its accuracy in percent: as measured by the engine, and by a pass of its own.
type Accuracies = Vec<(u64, [f64; 2])>;

fn note(
    mut envs: Query<(&mut HostModel, &mut SeedSlots, &mut ValidationBatches, &Counterfactual)>,
    mut notes: ResMut<Notes<Accuracies>>,
) {
    let (mut host, mut slots, mut batches, counterfactual) = envs.single_mut().expect("one env");
    let matrix = counterfactual.matrix.as_ref().expect("seeds are on");
    let _no_grad = NoGrad::new();
    for row in &matrix.rows {
        let slots = slots.0.iter_mut().enumerate();
        let on = slots.filter(|(slot, _)| row.mask.0 & (1 << slot) != 0);
        let uses = on.map(|(_, slot)| {
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
        });
        let uses: Vec<Graft> = uses.collect();
        let (mut correct, mut samples) = (0.0, 0.0);
        for batch in batches.0.get().iter() {
            let logits = grafted::forward(&**host.0.get(), &uses, &batch.x, Mode::Eval).expect("a forward pass");
            let hits = logits.argmax(1, false).eq_tensor(&batch.y);
            correct += f64::from(values(&hits.sum(Kind::Float))[0]);
            samples += batch.n as f64;
        }
        notes.0.push((row.mask.0, [row.accuracy.0, 100.0 * correct / samples]));
    }
}

#[test]
fn every_configuration_of_three_blending_seeds_equals_its_own_pass() {
    let orders = |(slot, style, first): (&str, &str, u32)| {
        let germinate = format!(
            r#"germinate(slot: "{slot}", blueprint: "conv_small", style: "{style}", tempo: "slow", target: "full")"#
        );
        [
            (first, germinate),
            (first + 3, advance(slot)),
            (first + 14, advance(slot)),
        ]
    };
    let seeds = [
        ("r0c0", "sigmoid_add", 1),
        ("r0c1", "linear_multiply", 2),
        ("r0c2", "gated_gate", 3),
    ];
    let mut entries = seeds.map(orders).concat();
    entries.sort_unstable();
    let entries = entries.iter().map(|(step, command)| (*step, &**command));
    let entries: Vec<(u32, &str)> = entries.collect();
    let mut engine = app(&scenario(MINIMAL, 1, 20, &schedule(&entries)), NOTHING);
    let is_last_step = |clock: Res<RunClock>| clock.is_last_step();
    let note = note
        .after(Work::Attribute)
        .before(Work::TrackSeeds)
        .run_if(is_last_step);
    engine
        .app_mut()
        .init_resource::<Notes<Accuracies>>()
        .add_systems(Assess, note);

    let Notes(mut found) = play::<Notes<Accuracies>>(engine);

    assert_eq!(found[0].0, 0b111);
    found.sort_unstable_by_key(|(mask, _)| *mask);
    assert!(found.iter().map(|(mask, _)| *mask).eq(0..8), "{found:?}");
    let mut accuracies = found.iter().map(|(_, accuracies)| accuracies);
    assert!(accuracies.all(|[fused, separate]| fused == separate), "{found:?}");
    // The configurations differ.
    assert!(found.iter().any(|(_, [fused, _])| *fused != found[0].1[0]));
}
