//! Language models: a host for text trains and grows, as one for images does.

use simic_engine::internals::engine::Prepared;
use simic_engine::internals::engine::built_in_names;
use simic_engine::internals::growth::SeedStage;
use simic_engine::prelude::*;

use crate::recorded::state;

/// A tiny model of tiny texts; a seed is planted behind each of its two layers and committed as soon as it is held.
const SCENARIO: &str = r#"(
    name: "tiny_text",
    task: preset("synth_tokens", (
        batch_size: 8, batches_per_step: count(3), val_batch_size: 16,
        data: synth_tokens((block: 16, copy: 2, train: 40, val: 24, test: 8)),
        host: transformer((width: 16, layers: 2, segments: 2, block: 16)),
    )),
    run: (rounds: 2, n_envs: 2, max_steps: 14, checkpoint_every: 1),
    lifecycle: (
        slots: ["r0c0", "r0c1"],
        auto_forward: (g1: true, g2: true, g3: true),
        gates: (min_training_steps: 1, min_gradient_health: 0.0),
    ),
    policy: (controller: "schedule", masks: (sequential_germination: false), schedule: (entries: [
        (step: 1, command: germinate(slot: "r0c0", blueprint: "mlp_small", style: "gated_gate", tempo: "fast", target: "full")),
        (step: 2, command: germinate(slot: "r0c1", blueprint: "attention", style: "linear_add", tempo: "fast", target: "full")),
        (step: 12, command: commit(slot: "r0c0")),
        (step: 13, command: commit(slot: "r0c1")),
    ])),
)"#;

fn engine(scenario: &str, threads: usize) -> Engine {
    let builder = Engine::builder().threads(threads);
    builder.from_ron(scenario).expect("a sound scenario")
}

fn problems(scenario: &str) -> String {
    let prepared = Prepared::from_ron("text.ron", scenario, &[], &built_in_names());
    prepared.expect_err("something is wrong with it").to_string()
}

#[test]
fn seeds_grow_in_a_language_model_until_they_are_committed() {
    let mut engine = engine(SCENARIO, 1);
    let mut seen = Vec::new();
    let mut losses = Vec::new();
    for _ in 0..14 {
        assert!(engine.step().expect("it is played"));
        let mut envs = engine.world_mut().query::<(&SeedSlots, &ValMetrics)>();
        let (slots, val) = envs.iter(engine.world()).next().expect("an env");
        seen.extend(slots.records().flatten().map(|seed| seed.stage));
        losses.push(val.loss);
        let contributions = slots.records().flatten().filter_map(|seed| seed.contribution.value);
        assert!(contributions.map(f64::abs).all(f64::is_finite));
    }
    seen.dedup();
    for stage in [
        SeedStage::Training,
        SeedStage::Blending,
        SeedStage::Holding,
        SeedStage::Committed,
    ] {
        assert!(seen.contains(&stage), "{stage}: {seen:?}");
    }
    let mut envs = engine.world_mut().query::<&EpisodeStats>();
    for stats in envs.iter(engine.world()) {
        assert_eq!((stats.growth.germinated, stats.growth.committed), (2, 2));
    }
    // Guessing among 64 tokens costs 4.159 nats a token.
    assert!((losses[0] - 4.159).abs() < 0.1 && losses[13] < losses[0], "{losses:?}");
}

#[test]
fn threads_change_no_bit_of_a_language_model() {
    let play = |threads| {
        let mut engine = engine(SCENARIO, threads);
        engine.run().expect("it is played");
        state(&mut engine)
    };

    assert_eq!(play(1), play(2));
}

#[test]
fn a_text_file_is_a_task() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.txt");
    let text: String = (0..400).map(|line| format!("line {line} of a text\n")).collect();
    std::fs::write(&file, text).expect("it is written");
    let scenario = format!(
        r#"(
            task: preset("bytes_lm", (
                batch_size: 4, batches_per_step: count(2), val_batches_per_step: full,
                data: text((path: {file:?}, block: 32)),
                host: transformer((width: 16, layers: 2, segments: 2, positions: rotary)),
            )),
            run: (rounds: 1, n_envs: 1, max_steps: 3),
            lifecycle: (slots: ["r0c1"]),
            policy: (controller: "schedule", schedule: (entries: [(step: 1, command: germinate(
                slot: "r0c1", blueprint: "flex_attention", style: "linear_add", tempo: "fast", target: "full"))])),
        )"#
    );

    let mut engine = engine(&scenario, 1);
    engine.run().expect("it is played");

    let mut envs = engine.world_mut().query::<(&TrainMetrics, &ValMetrics)>();
    for (train, val) in envs.iter(engine.world()) {
        assert!(train.loss < 5.6 && val.loss < 5.6, "{} {}", train.loss, val.loss);
    }
}

#[test]
fn what_does_not_fit_text_is_told_where_it_was_written() {
    let conv = problems(&SCENARIO.replace("mlp_small", "conv_light"));
    assert!(
        conv.contains("\"conv_light\" does not grow in hosts for text; valid: attention, norm, lora"),
        "{conv}"
    );
    let image_host = problems(r#"(task: preset("synth_tokens", (host: cnn((in_channels: 1)))))"#);
    assert!(
        image_host.contains("the host reads images, the data are text"),
        "{image_host}"
    );
    let text_host = problems(r#"(task: preset("digits_baseline", (host: transformer(()))))"#);
    assert!(
        text_host.contains("the host reads text, the data are images"),
        "{text_host}"
    );
    let long = problems(&SCENARIO.replace("block: 16, copy", "block: 32, copy"));
    assert!(
        long.contains("windows of 32 tokens; the host reads at most 16"),
        "{long}"
    );
    let copies = problems(&SCENARIO.replace("copy: 2", "copy: 5"));
    assert!(copies.contains("up to a quarter of the block, 4"), "{copies}");
    let nameless = problems(r#"(task: preset("bytes_lm"))"#);
    assert!(nameless.contains("no text file is named"), "{nameless}");
    let nameless = problems(r#"(task: preset("tinystories", (data: token_files((vocab: 256)))))"#);
    assert!(nameless.contains("no token file is named"), "{nameless}");
    assert!(
        nameless.contains("50257 tokens, but the data has 256 different ones"),
        "{nameless}"
    );
    let heads = problems(&SCENARIO.replace("width: 16", "width: 18"));
    assert!(heads.contains("does not divide into 4 heads"), "{heads}");
    let segments = problems(&SCENARIO.replace("layers: 2", "layers: 3"));
    assert!(
        segments.contains("3 layers do not divide into 2 segments"),
        "{segments}"
    );
}
