//! Settings of the whole process: in a binary of their own, because they would change other tests' arithmetic.

use simic_engine::engine::Engine;
use simic_engine::scenario::MatmulPrecision;
use simic_engine::torch::{
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
        // Freed here, taken by nobody of another size.
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

/// A block that was touched once is neither unmapped nor faulted in again.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn large_blocks_stay_in_the_process_when_freed() {
    assert!(keep_freed_blocks());
    let touch_48_mib = || drop(Tensor::ones([12 << 20], (Kind::Float, Device::Cpu)));
    let faults = || -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("proc");
        // Field 10, minflt; the name in field 2 may hold blanks and ends with the last parenthesis.
        let after_name = stat.rsplit_once(')').expect("name").1;
        after_name
            .split_whitespace()
            .nth(7)
            .expect("minflt")
            .parse()
            .expect("number")
    };

    // Above 32 MiB, glibc by default maps and unmaps every block. Eight fresh mappings of 12288 pages fault
    // tens of thousands of times, or 192 times with huge pages. Until glibc's heaps have settled (aligned allocation
    // sets remainders aside) a block may land further on.
    let faults_of_eight = || {
        let before = faults();
        (0..8).for_each(|_| touch_48_mib());
        faults() - before
    };
    let counts: Vec<u64> = (0..32).map(|_| faults_of_eight()).collect();
    assert!(counts.iter().any(|count| *count < 32), "page faults: {counts:?}");
}
