use super::built_in_names;
use crate::scenario::task_presets;

#[test]
fn hosts_have_known_parameter_counts() {
    let hosts = built_in_names().hosts;
    let counts = task_presets().into_iter().map(|task| {
        let host = hosts.outline(&task.spec.host, task.spec.classes, None);
        (task.spec.name, host.ok().map(|host| host.parameters))
    });
    let counts: Vec<_> = counts.collect();
    let expected = [
        ("digits_baseline", 1_702),
        ("digits_impaired", 75),
        ("digits_minimal", 160),
        ("synth_baseline", 6_418),
        ("synth_impaired", 164),
        ("synth_scale", 99_922),
        ("synth_resnet20", 269_722),
        ("synth_resnet56", 853_018),
        ("synth_resnet18", 11_173_962),
        ("synth_wrn28_1", 369_498),
        ("synth_vgg11", 9_231_114),
        ("synth_tokens", 158_272),
        ("images", 6_418),
        ("bytes_lm", 644_352),
        ("tinystories", 30_044_544),
        ("cifar_baseline", 6_418),
        ("cifar_scale", 99_922),
        ("cifar_impaired", 77),
        ("cifar_minimal", 164),
        ("cifar_multichannel", 6_418),
        ("cifar_postpool", 24_346),
        ("cifar_highres", 24_346),
        ("cifar_deep_multichannel", 99_922),
        ("cifar_deep_impaired", 1_140),
        ("cifar_resnet20", 269_722),
        ("cifar_resnet56", 853_018),
        ("cifar_resnet18", 11_173_962),
        ("cifar100_baseline", 30_196),
        ("mnist_baseline", 6_274),
        ("fashion_baseline", 6_274),
    ];
    assert_eq!(counts, expected.map(|(name, count)| (name.to_string(), Some(count))));
}
