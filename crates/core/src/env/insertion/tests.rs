use super::*;
use crate::growth::GerminationStyle;
use crate::growth::{AlphaTarget, Tempo};
use crate::seed::{Germination, Limits, Plan, Rules, SeedIdentity, germinate};
use crate::telemetry::Payload;

fn val(step: u32) -> ValidatedAt {
    ValidatedAt {
        step,
        loss: Num(2.0 - f64::from(step) / 10.0),
        accuracy: Num(10.0 * f64::from(step)),
    }
}

/// A seed that germinated in step 3.
fn germinated() -> SeedRecord {
    let config = crate::scenario::fixtures::slow_lifecycle();
    let limits = Limits::new(&config, &crate::scenario::fixtures::all_choices(), 0);
    let germination = Germination {
        identity: SeedIdentity {
            seed_id: "e0.r0c0.0".into(),
            germination: 0,
            slot: SlotId { row: 0, col: 0 },
            blueprint: "norm".into(),
            blueprint_index: 3,
            style: GerminationStyle::LinearAdd,
            tempo: Tempo::Fast,
            target: AlphaTarget::Full,
            seed_params: 17,
        },
        gate_params: 0,
        accuracy: 30.0,
    };
    let rules = Rules {
        config: &config,
        limits: &limits,
        step: 3,
    };
    let plan: Plan = germinate(germination, &rules).expect("the slot is empty");
    let mut record = None;
    plan.commit(&mut record);
    record.expect("a seed has germinated")
}

fn inserted(seed: &SeedRecord) -> Insertion {
    Insertion::of(seed, seed.identity.slot, SeedInit::ZeroGain, Some(val(3))).expect("a germination is a growth event")
}

fn told(insertion: &Insertion) -> GrowthEffect {
    let context = EnvContext {
        env: 0,
        episode: 0,
        round: 0,
        step: 10,
    };
    match insertion.event(context).payload {
        Payload::GrowthEffect(told) => told,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_germination_is_followed_until_five_steps_after_its_first_gradient() {
    let seed = germinated();
    let mut insertion = inserted(&seed);

    // Its own step counts for nothing; in step 4 it has no gradient yet; its first is that of step 5.
    insertion.measure(val(3), Some(9.0));
    insertion.measure(val(4), None);
    for (step, ratio) in (5..=10).zip([0.5, 0.6, 0.7, 0.8, 0.9, 1.0]) {
        assert!(!insertion.is_complete(step - 1, Some(&seed)), "step {}", step - 1);
        insertion.measure(val(step), Some(ratio));
    }

    assert!(insertion.is_complete(10, Some(&seed)));
    let told = told(&insertion);
    assert_eq!((told.before, told.after), (val(3), Some(val(4))));
    let expected = BirthRatios {
        step: Some(5),
        at_birth: Some(Num(0.5)),
        after_1: Some(Num(0.6)),
        after_5: Some(Num(1.0)),
    };
    assert_eq!(told.gradient_ratio, Some(expected));
}

#[test]
fn nothing_more_is_awaited_of_a_seed_that_is_gone() {
    let seed = germinated();
    let mut insertion = inserted(&seed);
    insertion.measure(val(4), Some(0.5));

    assert!(!insertion.is_complete(4, Some(&seed)));
    assert!(insertion.is_complete(4, None));
}

#[test]
fn a_stage_between_and_a_birth_before_any_validation_are_no_growth_events() {
    let mut seed = germinated();
    assert_eq!(Insertion::of(&seed, seed.identity.slot, SeedInit::ZeroGain, None), None);

    seed.stage = SeedStage::Training;
    assert_eq!(
        Insertion::of(&seed, seed.identity.slot, SeedInit::ZeroGain, Some(val(3))),
        None
    );
}
