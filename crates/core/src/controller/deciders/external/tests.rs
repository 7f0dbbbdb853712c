use super::*;
use crate::actions::fixtures::{empty, germination};
use crate::controller::fixtures::Scene;

#[test]
fn an_order_is_decided_once() {
    let commands = ExternalCommands::default();
    let mut controller = ExternalController::new(Some(&commands)).unwrap();

    commands.order([(0, germination(0, 1))]);

    let scene = Scene::new(1, empty(3));
    let decided = [0, 1].map(|_| scene.decide(&mut controller).command);
    assert_eq!(decided, [germination(0, 1), LifecycleCommand::Wait]);
}

#[test]
fn an_order_that_is_not_legal_is_an_error_that_names_it() {
    let commands = ExternalCommands::default();
    let mut controller = ExternalController::new(Some(&commands)).unwrap();

    commands.order([(0, LifecycleCommand::Commit { slot: 1 })]);

    let error = Scene::new(4, empty(3)).try_decide(&mut controller).unwrap_err();
    let said = "env 0, episode 0, step 4: the program outside orders COMMIT, which is not legal: the slot is empty";
    assert_eq!(error.to_string(), said);
}

#[test]
fn without_a_program_that_orders_the_run_is_refused() {
    let error = ExternalController::new(None).unwrap_err();
    assert!(error.to_string().contains("serve-envs"), "{error}");
}
