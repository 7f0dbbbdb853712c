use super::*;
use crate::engine::memory::tests::loaded_of;

/// Host of 6418 parameters, blocks of 8, 16 and 32 channels at 32, 16 and 8 pixels; 8000 + 1000 + 1000 images of 3072
/// bytes; batches of 128; three seeds at most, momentum everywhere.
const SYNTH: &str = r#"(task: preset("synth_baseline"), run: (n_envs: 4), policy: (controller: "wait"))"#;

const LARGEST: [u64; 3] = [1_000, 5_000, 20_000];

fn estimated(changes: &[(&str, &str)], threads: usize) -> Vec<PlaceMemory> {
    let loaded = loaded_of(SYNTH, changes);
    let sized = loaded.slots.iter().zip(LARGEST);
    let grown: Vec<_> = sized.map(|(&slot, parameters)| Grown { slot, parameters }).collect();
    estimate(&loaded, &grown, threads)
}

/// In the machine.
fn need(places: &[PlaceMemory], what: &str) -> Need {
    let needs = &places[0].needs;
    let found = needs.iter().find(|need| need.what == what);
    *found.unwrap_or_else(|| panic!("no {what} in {needs:?}"))
}

#[test]
fn every_need_of_a_small_run_is_known_to_the_byte() {
    let estimate = estimated(&[], 2);

    for (what, fixed) in [
        ("data", 10_000 * (3_072 + 8)),
        ("data on the device", 8_000 * (3_072 + 8) + 2_000 * (4 * 3_072 + 8)),
    ] {
        assert_eq!(need(&estimate, what).fixed, fixed, "{what}");
    }
    for (what, per_env) in [
        ("hosts", 6_418 * 3 * 4),
        ("hosts as validated", 6_418 * 4),
        ("seeds", 26_000 * 3 * 4),
        ("snapshots", 2 * (6_418 + 26_000) * 4),
        // The batch; order and predictions of 24 batches; eight configurations.
        ("batches", 128 * 3_072 * 4 + 2 * 128 * 24 * 8 + 3 * 8 * 8),
    ] {
        assert_eq!(need(&estimate, what).per_env, per_env, "{what}");
    }
    // The widest output has 8192 values; 1024 rows are validated at a time.
    assert_eq!(need(&estimate, "activations").per_worker, 1_024 * 3 * 8_192 * 4);
}

#[test]
fn large_batches_take_more_to_train_than_to_validate() {
    let changes = [("task.batch_size", "1024"), ("training.micro_batches", "2")];

    let activations = need(&estimated(&changes, 1), "activations");

    // Blocks and pools put out 8192, 2048, 4096, 1024, 2048 and 512 values, the head 10.
    assert_eq!(activations.per_worker, 512 * (17_930 + 3 * 3 * 8_192) * 2 * 4);
}

#[test]
fn envs_take_their_share_each_and_only_those_at_work_have_activations() {
    let places = estimated(&[("run.n_envs", "6")], 2);

    let (envs, workers) = (places[0].envs, places[0].workers);
    assert_eq!((envs, workers), (6, 2));
    let bytes = ["hosts", "activations"].map(|what| need(&places, what).bytes(envs, workers));
    assert_eq!(bytes, [6 * 6_418 * 3 * 4, 2 * 1_024 * 3 * 8_192 * 4]);
}

#[test]
fn only_as_many_seeds_as_may_live_count_the_largest_first() {
    let places = estimated(&[("lifecycle.max_seeds", "1")], 1);

    assert_eq!(need(&places, "seeds").per_env, 20_000 * 3 * 4);
}

#[test]
fn envs_on_other_devices_take_none_of_the_machine() {
    let devices = ("run.devices", "[\"cuda:0\", \"cuda:1\"]");

    let places = estimated(&[devices, ("run.n_envs", "5")], 8);

    let envs = places.iter().map(|place| (place.device.to_string(), place.envs));
    let expected = [("cpu".into(), 0), ("cuda:0".into(), 3), ("cuda:1".into(), 2)];
    assert_eq!(envs.collect::<Vec<_>>(), expected);
    let of_machine: Vec<_> = places[0].needs.iter().map(|need| need.what).collect();
    assert_eq!(of_machine, ["data", "the program"]);
}

#[test]
fn a_device_that_is_listed_twice_has_its_envs_once_and_its_data_twice() {
    let once = estimated(&[("run.n_envs", "5")], 4);
    let twice = estimated(&[("run.n_envs", "5"), ("run.devices", "[\"cpu\", \"cpu\"]")], 4);

    assert_eq!(twice.len(), 1);
    assert_eq!((twice[0].envs, twice[0].workers), (5, 4));
    let copy = need(&once, "data on the device").fixed;
    assert_eq!(need(&twice, "data on the device").fixed, 2 * copy);
    assert_eq!(twice[0].bytes(), once[0].bytes() + copy);
}

#[test]
fn a_cuda_device_takes_its_context_and_a_workspace_of_cublas_a_stream() {
    let of_libraries = |envs: &str| {
        let places = estimated(&[("run.devices", "[\"cuda:0\"]"), ("run.n_envs", envs)], 8);
        let needs = &places[1].needs[..2];
        [needs[0], needs[1]].map(|need| (need.what, need.bytes(places[1].envs, 8) >> 20, need.is_certain))
    };

    let context = ("CUDA's context and kernels", 500, false);
    assert_eq!(of_libraries("3"), [context, ("workspaces of cuBLAS", 7 * 32, false)]);
    assert_eq!(of_libraries("64"), [context, ("workspaces of cuBLAS", 65 * 32, false)]);
}

#[test]
fn a_policy_on_a_device_of_its_own_has_the_rollout_of_all_envs_there() {
    let learnt = ("policy.controller", "\"actor_critic\"");
    let here = estimated(&[learnt], 1);
    let elsewhere = estimated(&[learnt, ("policy.device", "\"cuda:1\"")], 1);

    assert_eq!((elsewhere[1].device, elsewhere[1].envs), (DeviceSpec::Cuda(1), 0));
    for what in ["a rollout", "the policy"] {
        let of = |place: &PlaceMemory| {
            let found = place.needs.iter().find(|need| need.what == what);
            found.map(|need| need.bytes(place.envs, place.workers))
        };
        assert_eq!(of(&elsewhere[0]), None, "{what}");
        assert_eq!(of(&elsewhere[1]), of(&here[0]), "{what}");
    }
}

#[test]
fn a_policy_that_learns_takes_a_rollout_and_its_network() {
    let places = estimated(&[("policy.controller", "\"actor_critic\"")], 1);

    assert!(need(&places, "a rollout").per_env > 0);
    assert!(need(&places, "the policy").fixed > 0);
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
    let host =
        "cnn((in_channels: 3, base_channels: 4096, n_blocks: 12, kernel_size: 31, pool_layers: 3, input_hw: 32))";

    let places = estimated(&[("task.host", host), ("run.n_envs", "4096")], 16);

    assert!(places[0].bytes() > 1 << 60);
}
