use super::*;
use crate::engine::built_in_names;
use crate::scenario::Override;

const GIB: u64 = 1 << 30;

fn loaded(changes: &[(&str, &str)]) -> Loaded {
    let overrides: Vec<Override> = changes
        .iter()
        .map(|(path, value)| Override::flag("set", path, value))
        .collect();
    let text = r#"(task: preset("synth_scale"), policy: (controller: "actor_critic"))"#;
    let catalog = built_in_names();
    let input = crate::scenario::Input {
        label: "x.ron",
        text,
        overrides: &overrides,
    };
    crate::scenario::load(&input, &catalog).unwrap_or_else(|report| panic!("{report}"))
}

#[test]
fn what_fits_is_not_refused_and_nothing_is_where_the_machine_does_not_tell() {
    let small = loaded(&[]);
    let large = loaded(&[("run.n_envs", "4096"), ("run.max_steps", "4294967295")]);

    assert_eq!(check_memory(&small, Some(GIB)), Ok(()));
    assert_eq!(check_memory(&large, None), Ok(()));
}

#[test]
fn what_cannot_fit_is_refused_with_what_takes_the_memory() {
    let large = loaded(&[("run.n_envs", "4096"), ("run.max_steps", "4294967295")]);

    let error = check_memory(&large, Some(16 * GIB)).unwrap_err().to_string();

    assert!(error.starts_with("the run needs at least "), "{error}");
    assert!(error.contains("this machine has 16.0 GiB"), "{error}");
    assert!(error.contains("\n  a rollout "), "{error}");
    assert!(
        error.ends_with("(smaller with run.n_envs, run.max_steps, learner.episodes_per_update)"),
        "{error}"
    );
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
    let many = estimate(&[("run.n_envs", "4096")]);

    let error = many.check(room(2 * GIB)).unwrap_err();

    let text = error.to_string();
    assert!(text.starts_with("the run needs up to "), "{text}");
    assert!(
        text.contains("this machine has 2.0 GiB left; it would fit with run.n_envs: "),
        "{text}"
    );
    let envs = error.most_envs.unwrap();
    let with = |envs: usize| estimate(&[("run.n_envs", &envs.to_string())]).check(room(2 * GIB));
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

    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("memory of cpu, 8 envs: up to "), "{table}");
    for what in [
        "hosts",
        "seeds",
        "snapshots",
        "activations",
        "batches",
        "a rollout",
        "the policy",
        "data",
    ] {
        let is_told = lines
            .iter()
            .any(|line| line.contains(&format!(" {what} (smaller with ")));
        assert!(is_told, "no {what} in {table}");
    }
}

#[test]
fn a_scenario_may_set_a_limit_of_its_own() {
    let capped = loaded(&[("run.memory_limit_gib", "0.001")]);

    let error = check_memory(&capped, Some(16 * GIB)).unwrap_err().to_string();

    assert!(error.contains("run.memory_limit_gib allows 1.0 MiB"), "{error}");
}

#[test]
fn data_that_stay_in_the_machine_s_memory_take_none_of_the_device_s_but_buffers() {
    let lines = |residency: &str| -> Vec<String> {
        let table = estimate(&[("data.residency", residency)]).to_string();
        let of_data = table
            .lines()
            .filter(|line| line.contains("data") || line.contains("gathered"));
        of_data.map(|line| line.trim().to_owned()).collect()
    };

    let (device, host) = (lines("device"), lines("host"));

    assert_eq!(device[0], host[0], "the data as they are loaded");
    assert!(!device.iter().any(|line| line.contains("gathered")), "{device:?}");
    // Four envs, two batches each and one for the init of seeds, 128 images of 32x32x3 bytes.
    assert!(
        host.contains(
            &"4.5 MiB    batches gathered ahead (smaller with data.prefetch, run.n_envs, task.batch_size)".into()
        ),
        "{host:?}"
    );
    assert_ne!(device.last(), host.last());
}
