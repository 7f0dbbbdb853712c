use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::actions::fixtures::{any_limits, any_reports, empty, limits, masks};
use crate::controller::fixtures::{Scene, view_of};
use crate::random::RunRng;

#[test]
fn an_env_draws_the_same_among_two_and_among_eight() {
    let scene = Scene::new(9, empty(3));
    let commands = |envs: usize| {
        let views: Vec<_> = (0..envs).map(|env| scene.env_view(env)).collect();
        let masks = vec![masks(&scene.reports, &limits()); envs];
        RandomController::new(42, OpWeights::default())
            .decide(&view_of(9, &views), &masks)
            .unwrap()
    };
    assert_eq!(commands(2), commands(8)[..2]);
    assert_eq!(commands(8), commands(8));
}

#[test]
fn ops_are_drawn_evenly() {
    let masks = masks(&empty(3), &limits());
    let mut counts = BTreeMap::new();
    for stream in 0..4000 {
        let indices = draw_indices(&masks, &OpWeights::default(), &mut RunRng::from_seed(stream));
        *counts.entry(indices[Head::Op as usize]).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 2);
    assert!(counts.values().all(|&count| (1850..2150).contains(&count)));
}

#[test]
fn ops_are_drawn_by_their_weights_among_the_valid_ones() {
    let masks = masks(&empty(3), &limits());
    let weights = OpWeights {
        germinate: 3.0,
        prune: 100.0,
        ..OpWeights::default()
    };
    let count = |weights: &OpWeights| {
        let op = |stream| draw_indices(&masks, weights, &mut RunRng::from_seed(stream))[Head::Op as usize];
        (0..4000)
            .filter(|&stream| usize::from(op(stream)) == LifecycleOp::Germinate.code())
            .count()
    };
    assert!((2900..3100).contains(&count(&weights)));
    let never = OpWeights {
        germinate: 0.0,
        ..weights
    };
    assert_eq!(count(&never), 0);
}

proptest! {
    #[test]
    fn only_legal_commands_are_drawn(
        reports in any_reports(3),
        limits in any_limits(),
        stream in any::<u64>(),
    ) {
        let masks = masks(&reports, &limits);
        let indices = draw_indices(&masks, &OpWeights::default(), &mut RunRng::from_seed(stream));
        let decision = Decision::new(command_of(&indices).unwrap(), &masks, "");
        prop_assert!(masks.allows(&decision.command));
        prop_assert_eq!(decision.indices, indices);
    }
}
