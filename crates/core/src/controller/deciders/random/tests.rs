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
        let mut controller = RandomController::new(42, OpWeights::default());
        controller.decide(&view_of(9, &views), &masks).unwrap()
    };
    assert_eq!(commands(2), commands(8)[..2]);
    assert_eq!(commands(8), commands(8));
}

#[test]
fn ops_are_drawn_by_their_weights_among_the_valid_ones_and_evenly_by_default() {
    let masks = masks(&empty(3), &limits());
    let germinations = |weights: OpWeights| {
        let op = |stream| draw_indices(&masks, &weights, &mut RunRng::from_seed(stream))[Head::Op as usize];
        let is_germination = |&stream: &u64| usize::from(op(stream)) == LifecycleOp::Germinate.code();
        (0..4000).filter(is_germination).count()
    };
    assert!((1850..2150).contains(&germinations(OpWeights::default())));
    let mut weights = OpWeights {
        germinate: 3.0,
        prune: 100.0,
        ..OpWeights::default()
    };
    assert!((2900..3100).contains(&germinations(weights)));
    weights.germinate = 0.0;
    assert_eq!(germinations(weights), 0);
}

proptest! {
    #[test]
    fn only_legal_commands_are_drawn(reports in any_reports(3), limits in any_limits(), stream: u64) {
        let masks = masks(&reports, &limits);
        let indices = draw_indices(&masks, &OpWeights::default(), &mut RunRng::from_seed(stream));
        let decision = Decision::new(command_of(&indices).unwrap(), &masks, "");
        prop_assert!(masks.allows(&decision.command));
        prop_assert_eq!(decision.indices, indices);
    }
}
