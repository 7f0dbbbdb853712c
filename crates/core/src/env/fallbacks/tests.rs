use super::*;

#[test]
fn what_fails_on_own_kernels_alone_is_computed_by_libtorch_and_counted() {
    let (own, libtorch) = (Backend::CPU, Backend::new(tch::Device::Cpu, Kernels::Libtorch));
    // The last two are about the whole device.
    let [kernel, other, full, lost] = ["a kernel failed", "another", "out of memory", "illegal memory access"];
    for (backend, [first, second], expected) in [
        (own, [Ok(1), Ok(2)], (Ok(1), 0, 1)),
        (own, [Err(kernel), Ok(2)], (Ok(2), 1, 2)),
        (own, [Err(kernel), Err(other)], (Err(kernel), 0, 2)),
        (own, [Err(full), Ok(2)], (Err(full), 0, 1)),
        (own, [Err(lost), Ok(2)], (Err(lost), 0, 1)),
        (libtorch, [Err(kernel), Ok(2)], (Err(kernel), 0, 1)),
    ] {
        let (mut fallbacks, mut tried) = (Fallbacks::default(), 0);
        let result = FallbackGuard::default().compute(backend, &mut fallbacks, |_| {
            tried += 1;
            if tried == 1 { first } else { second }
        });

        assert_eq!((result, fallbacks.kernel, tried), expected);
    }
}
