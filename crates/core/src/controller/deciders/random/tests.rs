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
        let mut controller = RandomController(42);
        controller.decide(&view_of(9, &views), &masks).unwrap()
    };
    assert_eq!(commands(2), commands(8)[..2]);
    assert_eq!(commands(8), commands(8));
}

#[test]
fn ops_are_drawn_evenly_among_the_valid_ones() {
    let masks = masks(&empty(3), &limits());
    let op = |stream| draw_indices(&masks, &mut RunRng::from_seed(stream))[Head::Op as usize];
    let is_germination = |&stream: &u64| usize::from(op(stream)) == LifecycleOp::Germinate.code();
    let germinations = (0..4000).filter(is_germination).count();
    assert!((1850..2150).contains(&germinations));
}

proptest! {
    #[test]
    fn only_legal_commands_are_drawn(reports in any_reports(3), limits in any_limits(), stream: u64) {
        let masks = masks(&reports, &limits);
        let indices = draw_indices(&masks, &mut RunRng::from_seed(stream));
        let decision = Decision::new(command_of(&indices).unwrap(), &masks, "");
        prop_assert!(masks.allows(&decision.command));
        prop_assert_eq!(decision.indices, indices);
    }
}
