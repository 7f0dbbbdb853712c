//! Messages on mistakes in a scenario: every problem at once, with its place and what would be right.

use simic_engine::internals::scenario::Override;

use crate::recorded::{CATALOG, load};

fn problems_of(text: &str) -> String {
    problems_with(text, &[])
}

fn problems_with(text: &str, sets: &[&str]) -> String {
    let overrides = sets.iter().map(|set| Override::parse(set).expect("an assignment"));
    match load("scenarios/mine.ron", text, &overrides.collect::<Vec<_>>(), &CATALOG) {
        Ok(loaded) => loaded.warnings.to_string(),
        Err(report) => report.to_string(),
    }
}

#[test]
fn several_mistakes_of_all_kinds_are_reported_together() {
    insta::assert_snapshot!(problems_of(
        r#"(
    task: preset("digits_impared", (batchsize: 32)),
    run: (
        n_envs: 0,
        rounds: "ten",
        deterministic: 1,
    ),
    trainng: (amp: off),
    training: (amp: fp8, micro_batches: 2.5),
    lifecycle: (slots: ["r0c0", "early"], gates: (mode: "strict")),
    policy: (
        controller: heuristic,
        heuristic: (rotation: ["conv_lite", "noop"]),
        schedule: (entries: [(step: 0, command: germinate(slot: "r0c0", blueprint: "norm"))]),
    ),
    rounds: 3,
)"#
    ));
}

#[test]
fn values_that_do_not_fit_together_are_reported_where_the_user_wrote_them() {
    insta::assert_snapshot!(problems_of(
        r#"(
    task: preset("digits_impaired", (batch_size: 2000, val_batches_per_step: count(9))),
    run: (n_envs: 1, devices: ["cuda:0", "cuda:1", "cuda:0"]),
    training: (micro_batches: 3000),
    lifecycle: (slots: ["r0c0", "r0c3", "r0c0"]),
    policy: (
        controller: "schedule",
        schedule: (entries: [
            (step: 5, command: advance(slot: "r0c0")),
            (step: 5, command: commit(slot: "r0c1")),
            (step: 500, command: prune(slot: "r0c0", speed: "fast", curve: "linear")),
        ]),
    ),
)"#
    ));
}

/// Everything sound in itself, so that the rules between fields are reached.
#[test]
fn a_custom_task_that_is_complete_but_contradictory() {
    insta::assert_snapshot!(problems_of(
        r#"(
    task: custom((
        name: "mine", classes: 9, data: digits,
        split: (seed: 0, val_permille: 200, test_permille: 800),
        normalise: constants(mean: [0.3, 0.3], std: [0.4]),
        augment: (pad: 1, flip_p: 0.5, cutout: 16),
        host: cnn((in_channels: 3, base_channels: 4, n_blocks: 5, kernel_size: 2, pool_layers: 4, input_hw: 8)),
        slots: [], max_seeds: 3, batch_size: 64, batches_per_step: full, val_batches_per_step: full, max_steps: 10,
        host_opt: sgd(lr: 0.01, momentum: 0.9, weight_decay: 0.0),
        seed_opt: sgd(lr: 0.01, momentum: 0.9, weight_decay: 0.0),
        label_smoothing: 0.0, success_accuracy: 80.0,
    )),
)"#
    ));
}

#[test]
fn a_syntax_error_is_reported_where_it_stands() {
    insta::assert_snapshot!(problems_of("(\n    run: (rounds: 3 n_envs: 4),\n)"));
}

#[test]
fn overrides_are_typed_and_their_paths_checked() {
    insta::assert_snapshot!(problems_with(
        "(run: (seed: 1))",
        &[
            "run.rounds=abc",
            "run.n_env=4",
            "rounds=3",
            "run.devices.3=cpu",
            "policy.controller=heuristics",
            "lifecycle.slots=[r0c0,",
            "run.seed=5",
            "run.seed=6",
            "task.max_grad_norm=-1",
        ]
    ));
}

#[test]
fn a_warning_does_not_stop_a_scenario() {
    let text = r#"(task: custom((
        name: "mine", classes: 10, data: digits, split: (seed: 0, val_permille: 200, test_permille: 100),
        normalise: auto, augment: (pad: 1, flip_p: 0.5),
        host: cnn((in_channels: 1, base_channels: 4, n_blocks: 3, kernel_size: 3, pool_layers: 3, input_hw: 8)),
        slots: ["r0c0"], max_seeds: 1, batch_size: 64, batches_per_step: full, val_batches_per_step: full, max_steps: 10,
        host_opt: sgd(lr: 0.01, momentum: 0.9, weight_decay: 0.0),
        seed_opt: sgd(lr: 0.01, momentum: 0.9, weight_decay: 0.0),
        label_smoothing: 0.0, success_accuracy: 80.0,
    )))"#;
    insta::assert_snapshot!(problems_of(text));
}

#[test]
fn a_wrong_entry_of_a_list_does_not_hide_or_move_the_others() {
    insta::assert_snapshot!(problems_of(
        r#"(
    lifecycle: (slots: [7, "r0c0", "r0c9"]),
    policy: (heuristic: (rotation: ["conv_lite", "norm", "noop"])),
)"#
    ));
}

#[test]
fn rewards_say_what_there_is_and_what_they_need() {
    let problems = [
        "(reward: custom(()))",
        "(reward: custom(\"mine\"))",
        "(reward: contribution(commited()))",
        "(reward: contribution(shaped((contribution_weight: -1.0))))",
        "(attribution: (cadence: every_k(3)))",
        "(attribution: (cadence: every_k(3)), reward: contribution(shaped()))",
        "(attribution: (strategy: off), reward: contribution(basic()))",
    ];
    insta::assert_snapshot!(problems.map(problems_of).join("\n"));
    // Met needs: nothing to report.
    for sound in [
        "(attribution: (cadence: every_k(1)), reward: contribution(shaped()))",
        "(attribution: (cadence: terminal), reward: contribution(sparse()))",
        "(attribution: (cadence: terminal), reward: loss())",
    ] {
        assert_eq!(problems_of(sound), "");
    }
}

#[test]
fn seeds_that_are_measured_when_they_change_are_enough_for_rewards_that_look_at_a_commit() {
    insta::assert_snapshot!(problems_of(
        "(attribution: (cadence: on_change), reward: contribution(shaped()))"
    ));
    // Met needs: nothing to report.
    for sound in [
        "(attribution: (cadence: on_change), reward: contribution(basic()))",
        "(attribution: (cadence: on_change), reward: contribution(simplified()))",
        "(attribution: (cadence: on_change), reward: loss())",
    ] {
        assert_eq!(problems_of(sound), "", "{sound}");
    }
}

#[test]
fn settings_of_the_learner_are_checked_alone_and_together() {
    insta::assert_snapshot!(problems_of(
        r#"(
    task: preset("digits_impaired"),
    run: (rounds: 3, max_steps: 40),
    learner: (
        gamma: 1.5,
        episodes_per_update: 2,
        recordings: (bset: 0.5),
        entropy_coef_end: 0.001,
        clip_ratio: 1.5,
    ),
)"#
    ));
}

#[test]
fn an_action_space_has_to_leave_something() {
    insta::assert_snapshot!(problems_with(
        r#"(
    policy: (
        controller: "heuristic",
        masks: (action_space: (
            allowed_ops: ["germinate", "grow"],
            blueprint: ["noop"],
            style: [],
            tempo: ["fast"],
        )),
    ),
)"#,
        &["policy.masks.action_space.alpha_curve=[linear]"]
    ));
}

/// Conditions that controllers and networks rely on and do not check again, among others.
#[test]
fn what_cannot_be_played_is_refused_and_what_trains_nothing_is_warned_about() {
    // Three pools leave the last block of 8 x 8 pixels 2 x 2; one more block and pool would see 1 x 1.
    let deep = |batch: usize, parts: usize| {
        format!(
            "task: preset(\"digits_impaired\", (batch_size: {batch}, host: cnn((in_channels: 1, base_channels: 1, n_blocks: 4, \
             kernel_size: 1, pool_layers: 3, input_hw: 8)))), training: (micro_batches: {parts})"
        )
    };
    // Rounds that train nothing are said before anything is played.
    let rollouts = |rounds: u32| {
        format!("run: (rounds: {rounds}), learner: (episodes_per_update: 4), policy: (controller: \"actor_critic\")")
    };
    let single = "batch norm of block3 sees a single value per channel";
    for (scenario, complaint) in [
        (
            "policy: (masks: (action_space: (allowed_ops: [\"prune\"])))",
            "policy.masks.action_space.allowed_ops: \"wait\" is missing; add it, as waiting is always possible",
        ),
        (
            "policy: (masks: (action_space: (style: [])))",
            "policy.masks.action_space.style: allows nothing",
        ),
        (
            "policy: (masks: (action_space: (blueprint: [\"conv_odd\"])))",
            "policy.masks.action_space.blueprint[0]: unknown blueprint \"conv_odd\"",
        ),
        (
            "policy: (controller: \"schedule\")",
            "the schedule controller needs commands in policy.schedule.entries",
        ),
        (
            "policy: (net: \"mlp\", net_cfg: (hidden_dim: 20))",
            "policy.net_cfg.hidden_dim: 20 isn't a multiple of 8",
        ),
        (
            "run: (max_steps: 17), policy: (schedule: (entries: [(step: 18, command: commit(slot: \"r0c0\"))]))",
            "there is no step 18; the episode has 17 steps",
        ),
        (
            "task: preset(\"synth_baseline\", (data: synth_images((height: 12, width: 32))))",
            "task.data.height: 12 isn't a multiple of 8",
        ),
        (
            "task: preset(\"synth_baseline\", (data: synth_images((height: 16, width: 36))))",
            "task.data.width: 36 isn't a multiple of 8",
        ),
        (deep(1, 1).as_str(), single),
        (deep(3, 2).as_str(), single),
        (deep(4, 4).as_str(), single),
        (deep(4, 4).as_str(), "fewer micro-batches, or fewer pools"),
        (
            rollouts(42).as_str(),
            "42 rounds aren't a multiple of 4: the last 2 complete no rollout, and nothing is learnt from them",
        ),
    ] {
        let problems = problems_of(&format!("({scenario})"));
        assert!(problems.contains(complaint), "{problems}");
    }
    let small = "task: preset(\"digits_impaired\", (batch_size: 1))";
    for sound in [small, &deep(2, 1), &rollouts(40)] {
        assert_eq!(problems_of(&format!("({sound})")), "");
    }
}
