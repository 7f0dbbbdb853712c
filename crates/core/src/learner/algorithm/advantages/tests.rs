mod gae;
mod targets;

use super::*;

#[test]
fn a_cloned_step_weighs_by_its_advantage_up_to_a_limit_or_as_all_others() {
    let target = |advantage| StepTargets {
        advantage,
        ..StepTargets::default()
    };
    let mut targets = vec![vec![target(0.0), target(-2.0), target(9.0), target(5.0)]];
    let steps = [(0, 0), (0, 1), (0, 2)];

    weigh(&mut targets, &steps, Some(2.0));
    let weights: Vec<f64> = targets[0].iter().map(|target| target.advantage).collect();
    // 1, 1/e, e^4.5 beyond 20; the last step is not learnt from.
    assert_eq!((weights[0], weights[2], weights[3]), (1.0, 20.0, 5.0));
    assert!((weights[1] - 0.367_879).abs() < 1e-6);

    weigh(&mut targets, &steps, None);
    assert!(targets[0][..3].iter().all(|target| target.advantage == 1.0));
}
