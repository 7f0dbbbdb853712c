use super::*;
use crate::engine::built_in_names;
use crate::scenario::{Input, Override, load};

fn loaded(text: &str, changes: &[(&str, &str)]) -> Loaded {
    let overrides: Vec<Override> = changes
        .iter()
        .map(|(path, value)| Override::flag("set", path, value))
        .collect();
    let catalog = built_in_names();
    let input = Input {
        label: "x.ron",
        text,
        overrides: &overrides,
    };
    load(&input, &catalog).unwrap_or_else(|report| panic!("{report}"))
}

/// Host of 6418 parameters, blocks of 8, 16 and 32 channels at 32, 16 and 8 pixels; 8000 + 1000 + 1000 images of 3072
/// bytes; batches of 128; three seeds at most, momentum everywhere.
const SYNTH: &str = r#"(task: preset("synth_baseline"), run: (n_envs: 4), policy: (controller: "wait"))"#;

const LARGEST: [u64; 3] = [1_000, 5_000, 20_000];

fn grown(loaded: &Loaded) -> Vec<Grown> {
    let sized = loaded.slots.iter().zip(LARGEST);
    sized.map(|(&slot, parameters)| Grown { slot, parameters }).collect()
}

fn need(places: &[PlaceMemory], place: usize, what: &str) -> Need {
    let needs = &places[place].needs;
    *needs
        .iter()
        .find(|need| need.what == what)
        .unwrap_or_else(|| panic!("no {what} in {needs:?}"))
}

#[test]
fn every_need_of_a_small_run_is_known_to_the_byte() {
    let loaded = loaded(SYNTH, &[]);

    let estimate = estimate(&loaded, &grown(&loaded), 2);

    let fixed = |what| need(&estimate, 0, what).fixed;
    let per_env = |what| need(&estimate, 0, what).per_env;
    assert_eq!(fixed("data"), 10_000 * (3_072 + 8));
    assert_eq!(
        fixed("data on the device"),
        8_000 * (3_072 + 8) + 2_000 * (4 * 3_072 + 8)
    );
    assert_eq!(per_env("hosts"), 6_418 * 3 * 4);
    assert_eq!(per_env("hosts as validated"), 6_418 * 4);
    assert_eq!(per_env("seeds"), 26_000 * 3 * 4);
    assert_eq!(per_env("snapshots"), 2 * (6_418 + 26_000) * 4);
    // The batch; order and predictions of 24 batches; eight configurations.
    assert_eq!(per_env("batches"), 128 * 3_072 * 4 + 2 * 128 * 24 * 8 + 3 * 8 * 8);
    // The widest output has 8192 values; 1024 rows are validated at a time.
    assert_eq!(need(&estimate, 0, "activations").per_worker, 1_024 * 3 * 8_192 * 4);
}

#[test]
fn large_batches_take_more_to_train_than_to_validate() {
    let loaded = loaded(SYNTH, &[("task.batch_size", "1024"), ("training.micro_batches", "2")]);

    let activations = need(&estimate(&loaded, &grown(&loaded), 1), 0, "activations");

    // Blocks and pools put out 8192, 2048, 4096, 1024, 2048 and 512 values, the head 10.
    assert_eq!(activations.per_worker, 512 * (17_930 + 3 * 3 * 8_192) * 2 * 4);
}

#[test]
fn envs_take_their_share_each_and_only_those_at_work_have_activations() {
    let loaded = loaded(SYNTH, &[("run.n_envs", "6")]);

    let place = &estimate(&loaded, &grown(&loaded), 2)[0];

    assert_eq!((place.envs, place.workers), (6, 2));
    let bytes = |what| {
        let need = place.needs.iter().find(|need| need.what == what);
        need.map(|need| need.bytes(place.envs, place.workers))
    };
    assert_eq!(bytes("hosts"), Some(6 * 6_418 * 3 * 4));
    assert_eq!(bytes("activations"), Some(2 * 1_024 * 3 * 8_192 * 4));
}

#[test]
fn only_as_many_seeds_as_may_live_count_the_largest_first() {
    let loaded = loaded(SYNTH, &[("lifecycle.max_seeds", "1")]);

    let seeds = need(&estimate(&loaded, &grown(&loaded), 1), 0, "seeds");

    assert_eq!(seeds.per_env, 20_000 * 3 * 4);
}

#[test]
fn envs_on_other_devices_take_none_of_the_machine() {
    let loaded = loaded(
        SYNTH,
        &[("run.devices", "[\"cuda:0\", \"cuda:1\"]"), ("run.n_envs", "5")],
    );

    let places = estimate(&loaded, &grown(&loaded), 8);

    let envs: Vec<_> = places
        .iter()
        .map(|place| (place.device.to_string(), place.envs))
        .collect();
    assert_eq!(envs, [("cpu".into(), 0), ("cuda:0".into(), 3), ("cuda:1".into(), 2)]);
    let of_machine: Vec<_> = places[0].needs.iter().map(|need| need.what).collect();
    assert_eq!(of_machine, ["data", "the program"]);
}

#[test]
fn a_policy_that_learns_takes_a_rollout_and_its_network() {
    let loaded = loaded(SYNTH, &[("policy.controller", "\"actor_critic\"")]);

    let estimate = estimate(&loaded, &grown(&loaded), 1);

    assert!(need(&estimate, 0, "a rollout").per_env > 0);
    assert!(need(&estimate, 0, "the policy").fixed > 0);
}

#[test]
fn adam_keeps_two_moments_and_plain_descent_none() {
    let sgd = |momentum| OptimizerConfig::Sgd {
        lr: 0.1,
        momentum,
        weight_decay: 0.0,
    };
    let adam = OptimizerConfig::Adamw {
        lr: 0.1,
        beta1: 0.9,
        beta2: 0.95,
        eps: 1e-8,
        weight_decay: 0.0,
    };
    assert_eq!([sgd(0.0), sgd(0.9), adam].map(|config| moments(&config)), [0, 1, 2]);
}

#[test]
fn sizes_that_no_machine_has_do_not_wrap_around() {
    let loaded = loaded(
        SYNTH,
        &[
            (
                "task.host",
                "cnn((in_channels: 3, base_channels: 4096, n_blocks: 12, kernel_size: 31, pool_layers: 3, input_hw: 32))",
            ),
            ("run.n_envs", "4096"),
        ],
    );

    let place = &estimate(&loaded, &grown(&loaded), 16)[0];

    assert!(place.bytes() > 1 << 60);
}
