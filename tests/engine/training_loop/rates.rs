//! Learning rates that change over an episode, seen in the steps that host and seed take.

use simic_engine::internals::env::SeedOptimizers;
use simic_engine::internals::training::LastGrowth;
use simic_engine::prelude::*;

use super::support::*;
use crate::recorded::NOTHING;

/// Bits at the end of every step: the host, and the seed in the first slot.
#[derive(Default, Debug, PartialEq)]
struct Walk {
    host: Vec<Vec<Vec<u32>>>,
    seed: Vec<Vec<Vec<u32>>>,
}

fn note(mut envs: Query<(&mut HostModel, &mut SeedOptimizers)>, mut walk: ResMut<Notes<Walk>>) {
    let (mut host, mut optimizers) = envs.single_mut().expect("one env");
    walk.0.host.push(host_bits(&mut host));
    walk.0.seed.push(seed_bits(&mut optimizers).swap_remove(0));
}

/// Six steps with a seed that trains from the third on.
fn walk(courses: &str) -> Walk {
    let policy = schedule(&[(1, &germinate("r0c0", "conv_small")), (2, &advance("r0c0"))]);
    let text = scenario(MINIMAL, 1, 6, &policy).replacen('(', &format!("(training: ({courses}),"), 1);
    noted(app(&text, NOTHING), note)
}

#[test]
fn courses_of_host_and_seeds_do_not_touch_each_other_and_at_the_whole_rate_change_no_bit() {
    let half = "step(every: 4, factor: 0.5)";
    let [constant, host, seed] = ["", &format!("host_lr: {half}"), &format!("seed_lr: {half}")].map(walk);
    let whole = "host_lr: cosine(end: 1.0), seed_lr: step(every: 1, factor: 1.0)";
    assert_eq!(walk(whole), constant);
    // A training seed is isolated: its host does not feel it.
    assert_eq!(seed.host, constant.host);
    assert_ne!(seed.seed[4], constant.seed[4], "half the rate from step 5 on");
    assert_eq!(host.host[..4], constant.host[..4], "the whole rate up to step 4");
    assert_ne!(host.host[4], constant.host[4]);
}

#[test]
fn a_course_after_growth_counts_from_the_last_step_that_began_with_a_developing_seed() {
    let policy = schedule(&[
        (2, &germinate("r0c0", "conv_small")),
        (4, r#"prune(slot: "r0c0", speed: "instant", curve: "linear")"#),
    ]);
    let text = scenario(MINIMAL, 1, 6, &policy).replacen('(', "(lifecycle: (min_prune_age: 0),", 1);
    let note = |envs: Query<&LastGrowth>, mut steps: ResMut<Notes<Vec<u32>>>| {
        steps.0.push(envs.single().expect("one env").0);
    };
    let steps: Vec<u32> = noted(app(&text, NOTHING), note);
    assert_eq!(steps, [0, 0, 3, 4, 4, 4]);
}
