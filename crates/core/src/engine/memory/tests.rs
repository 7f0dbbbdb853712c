use super::*;
use crate::engine::built_in_names;
use crate::run::RoomSource;
use crate::scenario::{Input, Override, load};

/// Host of 6418 parameters, blocks of 8, 16 and 32 channels at 32, 16 and 8 pixels, 8000 + 1000 + 1000 images of 3072
/// bytes, batches of 128, three seeds at most, momentum everywhere.
const SYNTH: &str = r#"(task: preset("synth_baseline"), run: (n_envs: 4), policy: (controller: "wait"))"#;

fn loaded(changes: &[(&str, &str)]) -> Loaded {
    let changes = changes.iter().map(|(path, value)| Override::flag("set", path, value));
    let input = Input {
        label: "x.ron",
        text: SYNTH,
        overrides: &changes.collect::<Vec<_>>(),
    };
    load(&input, &built_in_names()).unwrap_or_else(|report| panic!("{report}"))
}

/// In the machine, on two workers, with seeds of 26000 parameters.
fn machine(changes: &[(&str, &str)]) -> MemoryEstimate {
    on_device(&loaded(changes), &[20_000.0, 5_000.0, 1_000.0], (DeviceSpec::Cpu, 2))
}

#[test]
fn a_small_run_is_known_to_the_byte() {
    let memory = machine(&[]);

    // Host as trained and as validated, seeds, two snapshots of both.
    let per_env = 4 * (6_418 * 4 + 26_000 * 3 + 2 * (6_418 + 26_000));
    assert_eq!(memory.bytes_per_env, per_env);
    let data = 10_000 * (3_072 + 8);
    let on_device = 8_000 * (3_072 + 8) + 2_000 * (4 * 3_072 + 8);
    // The widest output has 8192 values, and 1024 rows are validated at a time.
    let activations = 2 * 1_024 * 3 * 8_192 * 4;
    assert_eq!(memory.bytes, (256 << 20) + data + on_device + activations + 4 * per_env);
}

#[test]
fn large_batches_take_more_to_train_than_to_validate() {
    let changes = [("task.batch_size", "1024"), ("training.micro_batches", "2")];

    // Blocks and pools put out 8192, 2048, 4096, 1024, 2048 and 512 values, the head 10.
    let activations = activations(&loaded(&changes), 3, DeviceSpec::Cpu);
    assert_eq!(activations, f64::from(512 * (17_930 + 3 * 3 * 8_192) * 2 * 4));
}

#[test]
fn a_device_that_is_listed_twice_has_its_data_twice_and_data_that_stay_outside_none() {
    let base = machine(&[]).bytes;
    let twice = machine(&[("run.devices", "[\"cpu\", \"cpu\"]")]).bytes;
    let host = machine(&[("data.residency", "host")]).bytes;

    assert_eq!(twice - base, 8_000 * (3_072 + 8) + 2_000 * (4 * 3_072 + 8));
    assert_eq!(base - host, 8_000 * 3_072);
}

#[test]
fn envs_on_other_devices_take_none_of_the_machine() {
    let changes = [("run.devices", "[\"cuda:0\", \"cuda:1\"]"), ("run.n_envs", "5")];

    let places = MemoryEstimate::of(&loaded(&changes), &BlueprintRegistry::default(), 8);

    let envs: Vec<_> = places
        .iter()
        .map(|memory| (memory.device.to_string(), memory.envs))
        .collect();
    assert_eq!(envs, [("cpu".into(), 0), ("cuda:0".into(), 3), ("cuda:1".into(), 2)]);
    assert_eq!(places[0].bytes, (256 << 20) + 10_000 * (3_072 + 8));
    // A context, and a workspace of cuBLAS for each stream twice and for the policy.
    assert!(places[1].bytes > (500 + 7 * 32) << 20);
}

#[test]
fn a_policy_that_learns_adds_a_rollout_to_every_env() {
    let learnt = |steps| machine(&[("policy.controller", "\"actor_critic\""), ("run.max_steps", steps)]).bytes_per_env;

    let [one, two] = [learnt("200"), learnt("400")].map(|bytes| bytes - machine(&[]).bytes_per_env);
    assert!(one > 0);
    assert_eq!(two, 2 * one);
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
    assert_eq!(
        [sgd(0.0), sgd(0.9), adam].map(|config| moments(&config)),
        [0.0, 1.0, 2.0]
    );
}

fn room(bytes: u64) -> Room {
    Room {
        bytes,
        source: RoomSource::Available,
    }
}

#[test]
fn a_run_that_does_not_fit_is_refused_with_how_many_envs_would() {
    let with = |envs: u64| {
        let loaded = loaded(&[("run.n_envs", &envs.to_string())]);
        MemoryEstimate::check(&loaded, &BlueprintRegistry::default(), 2, room(2 << 30))
    };

    let refused = with(4096).unwrap_err();

    let expected = "of memory, this machine has 2.0 GiB left; it would fit with run.n_envs: ";
    let (start, envs) = refused.split_once(expected).unwrap();
    assert!(start.starts_with("the run needs about "), "{refused}");
    let envs: u64 = envs.parse().unwrap();
    assert_eq!(with(envs), Ok(()));
    assert!(with(envs + 1).is_err(), "{envs} is the largest number that fits");
}

#[test]
fn where_not_even_one_env_fits_what_else_takes_less_is_named() {
    let loaded = loaded(&[]);

    let refused = MemoryEstimate::check(&loaded, &BlueprintRegistry::default(), 2, room(1 << 20)).unwrap_err();

    assert!(
        refused.contains("this machine has 1.0 MiB left; use smaller data"),
        "{refused}"
    );
}

#[test]
fn sizes_that_no_machine_has_do_not_wrap_around() {
    let host =
        "cnn((in_channels: 3, base_channels: 4096, n_blocks: 12, kernel_size: 31, pool_layers: 3, input_hw: 32))";

    let memory = machine(&[("task.host", host), ("run.n_envs", "4096")]);

    assert!(memory.bytes > 1 << 60);
}
