//! Language models: a host for text trains and grows, as one for images does.

use crate::hosts::assert_grown;
use crate::recorded::{NOTHING, catalog, load, state};
use crate::support::builder;

/// A tiny model of tiny texts; a seed is planted after each of its two layers and committed as soon as it is held.
const SCENARIO: &str = r#"(
    name: "tiny_text",
    task: preset("synth_tokens", (
        batch_size: 8, batches_per_step: count(3), val_batch_size: 16,
        data: synth_tokens((block: 16, train: 40, val: 24, test: 8)),
        host: transformer((width: 16, layers: 2, block: 16)),
    )),
    run: (rounds: 2, n_envs: 2, max_steps: 14),
    lifecycle: (
        slots: ["r0c0", "r0c1"],
        auto_forward: true,
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
    policy: (controller: "schedule", masks: (sequential_germination: false), schedule: (entries: [
        (step: 1, command: germinate(slot: "r0c0", blueprint: "mlp_small", style: "gated_gate", tempo: "fast", target: "full")),
        (step: 2, command: germinate(slot: "r0c1", blueprint: "attention", style: "linear_add", tempo: "fast", target: "full")),
        (step: 12, command: commit(slot: "r0c0")),
        (step: 13, command: commit(slot: "r0c1")),
    ])),
)"#;

#[test]
fn seeds_grow_in_a_language_model_until_they_are_committed_and_threads_change_no_bit() {
    let [mut one, mut two] = [1, 2].map(|threads| {
        let engine = builder().threads(threads).from_ron(SCENARIO);
        engine.expect("a sound scenario")
    });
    let losses = assert_grown(&mut one);
    // Guessing among 64 tokens costs 4.159 nats a token.
    assert!((losses[0] - 4.159).abs() < 0.1 && losses[13] < losses[0], "{losses:?}");

    for engine in [&mut one, &mut two] {
        engine.run().expect("it is played");
    }

    assert_eq!(state(&mut one), state(&mut two));
}

#[test]
fn what_does_not_fit_text_is_reported_where_it_was_written() {
    let names = catalog(NOTHING);
    let written = |right: &str, wrong: &str| SCENARIO.replace(right, wrong);
    let token_files = r#"(task: preset("tinystories", (data: token_files((vocab: 256)))))"#.to_owned();
    for (scenario, complaint) in [
        (
            written("mlp_small", "conv_light"),
            "\"conv_light\" does not grow in hosts for text; valid: attention, norm, lora",
        ),
        (
            r#"(task: preset("synth_tokens", (host: cnn((in_channels: 1)))))"#.into(),
            "the host reads images, but the data are text",
        ),
        (
            r#"(task: preset("digits_baseline", (host: transformer(()))))"#.into(),
            "the host reads text, but the data are images",
        ),
        (
            written("block: 16, train", "block: 32, train"),
            "windows of 32 tokens, but the host reads at most 16",
        ),
        (r#"(task: preset("bytes_lm"))"#.into(), "no text file is named"),
        (token_files.clone(), "no token file is named"),
        (token_files, "50257 tokens, but the data has 256 different ones"),
        (written("width: 16", "width: 18"), "does not divide into 4 heads"),
    ] {
        let said = load("text.ron", &scenario, &[], &names)
            .expect_err("a mistake")
            .to_string();
        assert!(said.contains(complaint), "{said}");
    }
}
