use super::*;
use crate::engine::built_in_names;
use crate::scenario::{Input, Override, load};

const GIB: u64 = 1 << 30;
/// More than any machine has.
const LARGE: &[(&str, &str)] = &[("run.n_envs", "4096"), ("run.max_steps", "4294967295")];

/// A scenario with these settings.
pub(super) fn loaded_of(text: &str, changes: &[(&str, &str)]) -> Loaded {
    let overrides = changes.iter().map(|(path, value)| Override::flag("set", path, value));
    let input = Input {
        label: "x.ron",
        text,
        overrides: &overrides.collect::<Vec<_>>(),
    };
    load(&input, &built_in_names()).unwrap_or_else(|report| panic!("{report}"))
}

fn loaded(changes: &[(&str, &str)]) -> Loaded {
    let text = r#"(task: preset("synth_scale"), policy: (controller: "actor_critic"))"#;
    loaded_of(text, changes)
}

#[test]
fn what_fits_is_not_refused_and_nothing_is_where_the_machine_does_not_tell() {
    assert_eq!(check_memory(&loaded(&[]), Some(GIB)), Ok(()));
    assert_eq!(check_memory(&loaded(LARGE), None), Ok(()));
}

#[test]
fn what_cannot_fit_is_refused_with_what_takes_the_memory() {
    let refusal = |changes| check_memory(&loaded(changes), Some(16 * GIB)).unwrap_err().to_string();
    let (large, capped) = (refusal(LARGE), refusal(&[("run.memory_limit_gib", "0.001")]));

    assert!(large.starts_with("the run needs at least "), "{large}");
    assert!(large.contains("this machine has 16.0 GiB"), "{large}");
    assert!(large.contains("\n  a rollout "), "{large}");
    let fields = "(smaller with run.n_envs, run.max_steps, learner.episodes_per_update)";
    assert!(large.ends_with(fields), "{large}");
    assert!(capped.contains("run.memory_limit_gib allows 1.0 MiB"), "{capped}");
}

#[test]
fn sizes_are_told_in_the_largest_unit_that_fits() {
    assert_eq!([size(7), size(1536), size(3 << 40)], ["7 bytes", "1.5 KiB", "3.0 TiB"]);
}

fn room(bytes: u64) -> Room {
    Room {
        bytes,
        source: RoomSource::Available,
    }
}

/// The estimate with seeds, on two workers.
fn estimate(changes: &[(&str, &str)]) -> MemoryEstimate {
    MemoryEstimate::of(&loaded(changes), &BlueprintRegistry::default(), 2)
}

#[test]
fn a_run_that_does_not_fit_is_told_how_many_envs_would() {
    let with = |envs: usize| estimate(&[("run.n_envs", &envs.to_string())]).check(room(2 * GIB));

    let error = with(4096).unwrap_err();

    let text = error.to_string();
    assert!(text.starts_with("the run needs up to "), "{text}");
    let advice = "this machine has 2.0 GiB left; it would fit with run.n_envs: ";
    assert!(text.contains(advice), "{text}");
    let envs = error.most_envs.unwrap();
    assert_eq!(with(envs), Ok(()));
    assert!(with(envs + 1).is_err(), "{envs} is the largest number that fits");
}

#[test]
fn where_not_even_one_env_fits_that_is_said() {
    let error = estimate(&[]).check(room(1 << 20)).unwrap_err().to_string();

    assert!(error.contains("it would not fit with a single env"), "{error}");
}

#[test]
fn an_estimate_is_a_table_of_what_takes_how_much() {
    let table = estimate(&[("run.n_envs", "8")]).to_string();

    assert!(table.starts_with("memory of cpu, 8 envs: up to "), "{table}");
    for what in "hosts,seeds,snapshots,activations,batches,a rollout,the policy,data".split(',') {
        let told = format!(" {what} (smaller with ");
        assert!(table.lines().any(|line| line.contains(&told)), "no {what} in {table}");
    }
}

#[test]
fn data_that_stay_in_the_machine_s_memory_take_none_of_the_device_s_but_buffers() {
    let lines = |residency: &str| -> Vec<String> {
        let table = estimate(&[("data.residency", residency)]).to_string();
        let is_of_data = |line: &&str| line.contains("data") || line.contains("gathered");
        let lines = table.lines().filter(is_of_data);
        lines.map(|line| line.trim().to_owned()).collect()
    };

    let (device, host) = (lines("device"), lines("host"));

    assert_eq!(device[0], host[0], "the data as they are loaded");
    assert!(!device.iter().any(|line| line.contains("gathered")), "{device:?}");
    // Four envs, two batches each and one for the init of seeds, 128 images of 32x32x3 bytes.
    let ahead = "4.5 MiB    batches gathered ahead (smaller with data.prefetch, run.n_envs, task.batch_size)";
    assert!(host.iter().any(|line| line == ahead), "{host:?}");
    assert_ne!(device.last(), host.last());
}
