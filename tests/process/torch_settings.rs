//! Settings and memory of libtorch.

use std::sync::{Mutex, MutexGuard, PoisonError};

use simic_engine::internals::engine::Engine;
use simic_engine::internals::scenario::MatmulPrecision;
use simic_engine::internals::torch::{
    HostSyncCounter, catch, free_thread_buffers, keep_freed_blocks, kept_bytes, read_f64, set_deterministic,
    set_matmul_precision,
};
use tch::{Device, Kind, Tensor};

/// Largest error of a f32 product against the same product in f64, relative to its largest element.
fn product_error() -> f64 {
    let x = (Tensor::arange(64 * 64, (Kind::Double, Device::Cpu)) * 0.37)
        .sin()
        .reshape([64, 64]);
    let exact = x.matmul(&x);
    let rounded = x.to_kind(Kind::Float);
    let product = rounded.matmul(&rounded).to_kind(Kind::Double);
    let error = (product - &exact).abs().max() / exact.abs().max();
    read_f64(&error, &HostSyncCounter::default()).expect("read")[0]
}

#[test]
fn every_matmul_precision_multiplies_within_its_rounding_and_highest_restores_f32() {
    set_matmul_precision(MatmulPrecision::Medium).expect("medium");
    // bf16 keeps 8 bits; where the processor has none, medium is f32.
    assert!(product_error() < 2e-2);
    set_matmul_precision(MatmulPrecision::High).expect("high");
    assert!(product_error() < 2e-3);
    set_matmul_precision(MatmulPrecision::Highest).expect("highest");
    assert!(product_error() < 1e-5);
}

#[test]
fn deterministic_mode_refuses_an_operation_whose_result_depends_on_order() {
    let put = || {
        let index = Tensor::from_slice(&[0i64, 0]);
        let source = Tensor::from_slice(&[1.0f32, 2.0]);
        catch(|| Tensor::zeros([2], (Kind::Float, Device::Cpu)).put(&index, &source, false))
    };

    set_deterministic(true).expect("on");
    let refused = put();
    set_deterministic(false).expect("off");

    let error = refused.expect_err("put without accumulation depends on order");
    assert!(error.to_string().contains("deterministic"), "{error}");
    assert!(put().is_ok());
}

#[test]
fn a_small_tensor_gets_the_memory_of_the_last_one_of_its_size() {
    keep_freed_blocks();
    let address = |values: i64| Tensor::zeros([values], (Kind::Float, Device::Cpu)).data_ptr() as usize;

    for values in [1, 100, 100_000] {
        let first = address(values);
        // Freed here, and not taken by a tensor of another size.
        let _other = Tensor::zeros([values + 5000], (Kind::Float, Device::Cpu));

        assert_eq!(address(values), first);
        assert_eq!(first % 64, 0);
    }
}

#[test]
fn a_tensor_may_be_freed_by_another_thread_and_after_its_own_has_ended() {
    keep_freed_blocks();
    let make = || -> Vec<Tensor> {
        (0..100)
            .map(|i| Tensor::full([1 + i * 37], i, (Kind::Float, Device::Cpu)))
            .collect()
    };

    let made_elsewhere = std::thread::spawn(make).join().expect("made");
    let sum: f64 = made_elsewhere
        .iter()
        .map(|t| f64::try_from(t.mean(Kind::Double)).expect("a number"))
        .sum();
    std::thread::spawn(move || drop(made_elsewhere)).join().expect("freed");

    assert_eq!(sum, 4950.0);
    assert_eq!(make().len(), 100);
}

#[test]
fn a_thread_gives_back_the_memory_of_freed_tensors_when_it_is_asked_to() {
    let _alone = alone();
    keep_freed_blocks();
    drop(Tensor::zeros([1000], (Kind::Float, Device::Cpu)));
    assert!(kept_bytes() >= 4000);

    free_thread_buffers();
    assert_eq!(kept_bytes(), 0);

    let again = Tensor::ones([1000], (Kind::Float, Device::Cpu));
    assert_eq!(f64::try_from(again.sum(Kind::Double)).expect("a number"), 1000.0);
}

#[test]
fn an_engine_leaves_no_memory_of_its_tensors_with_the_thread_that_drops_it() {
    let _alone = alone();
    keep_freed_blocks();
    let mut engine = Engine::from_ron(
        r#"(
            task: preset("digits_impaired", (batches_per_step: count(1), val_batches_per_step: count(1))),
            run: (rounds: 1, n_envs: 1, max_steps: 1),
        )"#,
    )
    .expect("a valid scenario");
    assert!(engine.play().failure.is_none());
    let while_it_is_there = kept_bytes();

    drop(engine);

    assert!(while_it_is_there > 0);
    assert_eq!(kept_bytes(), 0);
}

/// Held by tests that look at large freed blocks, or give them back: all threads share them.
static LARGE_BLOCKS: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    LARGE_BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

const MIB: i64 = 1 << 20;

/// A tensor of `count` bytes that nothing has been written to.
fn bytes(count: i64) -> Tensor {
    Tensor::empty([count], (Kind::Uint8, Device::Cpu))
}

fn address(tensor: &Tensor) -> usize {
    tensor.data_ptr() as usize
}

#[test]
fn a_large_block_serves_another_thread_and_a_tensor_a_little_smaller_but_no_small_one() {
    let _alone = alone();
    keep_freed_blocks();
    let first = bytes(48 * MIB);
    let (place, exact) = (address(&first), bytes(45 * MIB));
    let better = address(&exact);

    std::thread::spawn(move || drop((first, exact))).join().expect("freed");

    assert_eq!(place % 64, 0);
    let of_44 = bytes(44 * MIB);
    assert_eq!(address(&of_44), better, "the smallest that fits");
    assert_ne!(address(&bytes(24 * MIB)), place);
    assert_eq!(address(&bytes(44 * MIB)), place, "the next one");
}

/// Bytes of this process that lie in memory and in no file.
#[cfg(target_os = "linux")]
fn resident_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().strip_suffix(" kB"))
        .expect("RssAnon")
        .parse()
        .expect("a number")
}

/// A block that was touched once is neither unmapped nor faulted in again, unless it is not used for long.
#[test]
#[cfg(target_os = "linux")]
fn large_blocks_stay_in_the_process_when_freed_until_they_are_idle_or_asked_for() {
    let _alone = alone();
    keep_freed_blocks();
    let touched = |mib: i64| Tensor::ones([mib * MIB / 4], (Kind::Float, Device::Cpu));
    free_thread_buffers();
    let without = resident_kib();

    let place = address(&touched(256));
    let kept = resident_kib();
    assert!(kept - without > 200 << 10, "{without} KiB, then {kept}");
    assert_eq!(address(&touched(256)), place);

    (0..600).for_each(|_| drop(bytes(2 * MIB)));
    assert_eq!(address(&touched(256)), place, "it was wanted again in time");

    (0..602).for_each(|_| drop(bytes(2 * MIB)));
    let idle = resident_kib();
    assert!(idle - without < 56 << 10, "{without} KiB, then {idle}");

    drop(touched(256));
    free_thread_buffers();
    let given_back = resident_kib();
    assert!(given_back - without < 56 << 10, "{without} KiB, then {given_back}");
}

#[test]
fn more_than_there_is_is_an_error_of_memory() {
    keep_freed_blocks();

    let refused = catch(|| bytes(1 << 50)).expect_err("a pebibyte");

    assert!(refused.to_string().contains("memory"), "{refused}");
    assert_eq!(address(&bytes(2 * MIB)) % 64, 0);
}
