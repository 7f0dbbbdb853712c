use super::*;
use crate::experiment::fixtures::design;

#[test]
fn arms_of_a_replicate_share_its_seed() {
    let design = design(r#"arms: [(id: "a"), (id: "b")]"#);

    assert_eq!([0, 1].map(|arm| design.arm_seed(3, arm)), [45, 45]);
}

#[test]
fn arms_without_common_random_numbers_have_seeds_of_their_own() {
    let design = design(r#"arms: [(id: "a"), (id: "b")], common_random_numbers: false"#);

    let seeds: std::collections::BTreeSet<u64> = (0..4)
        .flat_map(|replicate| [0, 1].map(|arm| design.arm_seed(replicate, arm)))
        .collect();
    assert_eq!(seeds.len(), 8);
}

#[test]
fn devices_go_round_over_arms_and_replicates() {
    let mut design = design(r#"arms: [(id: "a"), (id: "b")]"#);
    design.devices = vec![DeviceSpec::Cpu, DeviceSpec::Cuda(0)];
    let first = |replicate, arm| design.arm_devices(replicate, arm)[0];

    let firsts = [first(0, 0), first(0, 1), first(1, 0), first(1, 1)];
    let (cpu, cuda) = (DeviceSpec::Cpu, DeviceSpec::Cuda(0));
    assert_eq!(firsts, [cpu, cuda, cuda, cpu]);
}

#[test]
fn arms_are_scored_by_rounds_that_nobody_has_trained_in() {
    let design = design(r#"arms: [(id: "a"), (id: "b")], envs_per_arm: 3, eval_seeds: [7, 9]"#);

    let episodes = design.episodes();

    assert_eq!(design.envs, 3);
    assert_eq!(
        episodes.iter().map(|episodes| episodes.seed).collect::<Vec<_>>(),
        [7, 9]
    );
    assert_eq!((episodes[0].rounds.clone(), episodes[0].count()), (3..13, 30));
}
