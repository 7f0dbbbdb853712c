use super::*;
use crate::health::Failure;

/// What is computed, what was counted, and with which kernels it was tried.
type Computed = (Result<u8, String>, u32, Vec<Kernels>);

fn computed(backend: Backend, outcome: impl Fn(Kernels) -> Result<u8, &'static str>) -> Computed {
    let (mut fallbacks, mut tried) = (Fallbacks::default(), Vec::new());
    let result = FallbackGuard::default().compute(backend, &mut fallbacks, |backend| {
        tried.push(backend.kernels);
        outcome(backend.kernels).map_err(Failure::message)
    });
    (result.map_err(|failure| failure.to_string()), fallbacks.kernel, tried)
}

#[test]
fn what_succeeds_is_computed_once() {
    assert_eq!(computed(Backend::CPU, |_| Ok(1)), (Ok(1), 0, vec![Kernels::Own]));
}

#[test]
fn what_fails_on_own_kernels_is_computed_by_libtorch_and_counted() {
    let found = computed(Backend::CPU, |kernels| match kernels {
        Kernels::Own => Err("a kernel failed"),
        Kernels::Libtorch => Ok(2),
    });

    assert_eq!(found, (Ok(2), 1, vec![Kernels::Own, Kernels::Libtorch]));
}

#[test]
fn what_fails_in_both_ways_fails_as_it_did_first_and_counts_for_nothing() {
    let (result, count, _) = computed(Backend::CPU, |kernels| Err(kernels.name()));

    assert_eq!((result, count), (Err("own".into()), 0));
}

#[test]
fn a_device_without_memory_or_without_own_kernels_is_not_asked_twice() {
    let libtorch = Backend::new(tch::Device::Cpu, Kernels::Libtorch);
    for (backend, text) in [
        (Backend::CPU, "out of memory"),
        (Backend::CPU, "illegal memory access"),
        (libtorch, "a kernel failed"),
    ] {
        let (result, count, tried) = computed(backend, |_| Err(text));

        assert_eq!((result, count, tried.len()), (Err(text.into()), 0, 1));
    }
}
