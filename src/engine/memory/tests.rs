use super::*;
use crate::engine::catalog;
use crate::run::NO_EXTENSION;
use crate::scenario::Override;

const GIB: u64 = 1 << 30;

fn loaded(changes: &[(&str, &str)]) -> Loaded {
    let overrides: Vec<Override> = changes
        .iter()
        .map(|(path, value)| Override::flag("set", path, value))
        .collect();
    let text = r#"(task: preset("synth_scale"), policy: (controller: "actor_critic"))"#;
    let catalog = catalog(NO_EXTENSION).unwrap();
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
