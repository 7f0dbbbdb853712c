use super::*;

#[test]
fn hosts_have_known_parameter_counts() {
    let counts: Vec<_> = task_presets()
        .iter()
        .map(|task| (task.spec.name.clone(), task.spec.host.parameters(task.spec.classes)))
        .collect();
    let expected = [
        ("digits_baseline", 1_702),
        ("digits_impaired", 75),
        ("digits_minimal", 160),
        ("synth_baseline", 6_418),
        ("synth_impaired", 164),
        ("synth_scale", 99_922),
        ("cifar10", 6_418),
        ("cifar10_impaired", 77),
        ("cifar100", 30_196),
        ("mnist", 6_274),
        ("fashion_mnist", 6_274),
    ];
    assert_eq!(counts, expected.map(|(name, count)| (name.to_string(), count)));
}
