use tch::{Device, Kind, Reduction};

use super::*;
use crate::kernels::{ForcedKernels, kernel_levels};
use crate::torch::{HostSyncCounter, read_f32, read_f64};

fn read(tensor: &Tensor) -> Vec<f64> {
    read_f64(tensor, &HostSyncCounter::default()).expect("read")
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    let values = read_f32(tensor, &HostSyncCounter::default()).expect("read");
    values.into_iter().map(f32::to_bits).collect()
}

/// Logits between -12 and 12, all different within a row.
fn logits(rows: i64, classes: i64) -> Tensor {
    let count = Tensor::arange(rows * classes, (Kind::Float, Device::Cpu));
    ((count * 0.731).sin() * 12.0).view([rows, classes])
}

fn targets(rows: i64, classes: i64) -> Tensor {
    (Tensor::arange(rows, (Kind::Int64, Device::Cpu)) * 3).remainder(classes)
}

/// Objective, gradient, predictions and mean loss of rows that are a share of their batch.
fn loss_of_share(
    share: f64,
    logits: &Tensor,
    targets: &Tensor,
    smoothing: f64,
) -> Result<(Tensor, Tensor, Vec<f64>, f64), TchError> {
    let logits = logits.copy().set_requires_grad(true);
    let rows = targets.numel();
    let predictions = Tensor::zeros([rows as i64 + 2], (Kind::Int64, Device::Cpu));
    let losses = Tensor::zeros([3], (Kind::Double, Device::Cpu));
    let record = LossRecord {
        predictions: &predictions,
        first: 2,
        losses: &losses,
        batch: 1,
        share,
    };
    let objective = cross_entropy(&logits, targets, smoothing, &record)?;
    (&objective * share).backward();
    let predicted = read(&predictions);
    let mean = read(&losses)[1];
    Ok((objective.detach(), logits.grad(), predicted[2..].to_vec(), mean))
}

fn own_loss(logits: &Tensor, targets: &Tensor, smoothing: f64) -> (Tensor, Tensor, Vec<f64>, f64) {
    loss_of_share(1.0, logits, targets, smoothing).expect("loss")
}

#[test]
fn the_cross_entropy_and_its_gradient_are_those_of_f64() {
    for (rows, classes, smoothing) in [(1, 2, 0.0), (16, 10, 0.0), (37, 10, 0.1), (64, 10, 0.2), (5, 100, 0.0)] {
        let (logits, targets) = (logits(rows, classes), targets(rows, classes));

        let (objective, gradient, predictions, mean) = own_loss(&logits, &targets, smoothing);

        let exact = logits.to_kind(Kind::Double).set_requires_grad(true);
        let loss = |smoothing| exact.cross_entropy_loss::<Tensor>(&targets, None, Reduction::Mean, -100, smoothing);
        let (expected, plain) = (loss(smoothing), loss(0.0));
        expected.backward();
        assert!((read(&objective)[0] / read(&expected)[0] - 1.0).abs() < 1e-6);
        assert!((mean / read(&plain)[0] - 1.0).abs() < 1e-6);
        let gradient = gradient.to_kind(Kind::Double);
        assert!(gradient.allclose(&exact.grad(), 1e-5, 1e-9, false));
        assert_eq!(predictions, read(&logits.argmax(1, false)));
    }
}

#[test]
fn the_share_of_a_batch_scales_the_gradient_and_the_mean() {
    let (logits, targets) = (logits(6, 4), targets(6, 4));
    let (_, whole, _, mean) = own_loss(&logits, &targets, 0.0);

    let (_, gradient, _, mean_of_share) = loss_of_share(0.25, &logits, &targets, 0.0).expect("loss");

    assert_eq!(bits(&gradient), bits(&(whole * 0.25)));
    assert_eq!(mean_of_share, 0.25 * mean);
}

#[test]
fn logits_that_arent_finite_make_no_loss_and_count_as_the_largest() {
    for spoilt in [f64::NAN, f64::INFINITY] {
        let logits = logits(3, 4);
        let _ = logits.get(1).get(2).fill_(spoilt);

        let (objective, _, predictions, mean) = own_loss(&logits, &targets(3, 4), 0.0);

        assert!(read(&objective)[0].is_nan() && mean.is_nan());
        assert_eq!(predictions[1], 2.0);
    }
}

#[test]
fn a_target_that_isnt_a_class_is_refused() {
    let targets = Tensor::from_slice(&[0i64, 4, 1]);

    let error = loss_of_share(1.0, &logits(3, 4), &targets, 0.0).expect_err("no class");

    assert!(error.to_string().contains("label is 4"), "{error}");
}

const COLUMNS: ValidationColumns = ValidationColumns {
    losses: 0,
    correct: 4,
    both_correct: 8,
    room: 4,
};

fn validated(logits: &Tensor, targets: &Tensor, main: usize) -> Vec<f64> {
    let pack = Tensor::zeros([12], (Kind::Double, Device::Cpu));
    for _ in 0..2 {
        add_validation(logits, targets, main, &pack, COLUMNS).expect("sums");
    }
    read(&pack)
}

#[test]
fn sums_over_validation_are_those_of_f64_for_every_configuration() {
    let (rows, classes) = (21, 10);
    let (all, targets) = (logits(3 * rows, classes), targets(rows, classes));
    let is_correct = |k: i64| all.narrow(0, k * rows, rows).argmax(1, false).eq_tensor(&targets);

    let sums = validated(&all, &targets, 1);

    for k in 0..3 {
        let exact = all.narrow(0, k * rows, rows).to_kind(Kind::Double);
        let loss = exact.cross_entropy_loss::<Tensor>(&targets, None, Reduction::Sum, -100, 0.0);
        let both = is_correct(k).logical_and(&is_correct(1));
        let expected = [&loss, &is_correct(k).sum(Kind::Double), &both.sum(Kind::Double)].map(|sum| 2.0 * read(sum)[0]);
        let k = k as usize;
        assert!((sums[k] / expected[0] - 1.0).abs() < 1e-6);
        assert_eq!([sums[4 + k], sums[8 + k]], expected[1..]);
    }
    assert_eq!([sums[3], sums[7], sums[11]], [0.0; 3]);
}

#[test]
fn more_configurations_than_there_is_room_for_are_refused() {
    let pack = Tensor::zeros([12], (Kind::Double, Device::Cpu));

    let error = add_validation(&logits(10, 3), &targets(2, 3), 0, &pack, COLUMNS).expect_err("no room");

    assert!(error.to_string().contains("5 configurations"), "{error}");
}

#[test]
fn images_are_gathered_as_libtorch_s_operators_gather_them() {
    // Overlapping windows of 5 rows of 9 values, 12 apart, and dense ones.
    let numbers = Tensor::arange(600, (Kind::Int64, Device::Cpu)) * 37;
    let stored = numbers.remainder(251).to_kind(Kind::Uint8);
    let positions = Tensor::from_slice(&[7i64, 0, 90, 7]);
    for (rows, run, pitch, step) in [(5, 9, 12, 3), (4, 6, 6, 1)] {
        let windows = stored.as_strided([100, rows, run], [step, pitch, 1], 0);
        let angles = Tensor::arange(rows * run, (Kind::Float, Device::Cpu)) * 0.3;
        let a = angles.sin().view([rows, run]);
        let b = &a * 1.7;
        let out = Tensor::zeros([4, rows, run], (Kind::Float, Device::Cpu));

        gather_images([&windows, &positions], None, [&a, &b], &out).expect("gather");

        let expected = windows.index_select(0, &positions).to_kind(Kind::Float) * &a + &b;
        assert_eq!(bits(&out), bits(&expected));
        let none = Tensor::from_slice(&[0i64, 100, 0, 0]);
        let beyond = gather_images([&windows, &none], None, [&a, &b], &out);
        assert!(beyond.expect_err("no window").to_string().contains("no window 100"));

        let thirds = stored.remainder(3).eq(0);
        let masks = thirds.as_strided([50, rows, run], [2, run + 4, 1], 0);
        let places = Tensor::from_slice(&[3i64, 49, 0, 3]);
        gather_images([&windows, &positions], Some([&masks, &places]), [&a, &b], &out).expect("gather");

        let blanked = expected.masked_fill(&masks.index_select(0, &places), 0.0);
        assert_eq!(bits(&out), bits(&blanked));
        let beyond = gather_images([&windows, &positions], Some([&masks, &(places + 1)]), [&a, &b], &out);
        assert!(beyond.expect_err("no mask").to_string().contains("no mask 50"));
    }
}

#[test]
fn every_level_of_kernels_gives_the_same_bits() {
    let (rows, targets) = (logits(37, 10), targets(37, 10));
    let results = || {
        let (objective, gradient, _, mean) = own_loss(&rows, &targets, 0.1);
        (bits(&objective), bits(&gradient), mean, validated(&rows, &targets, 0))
    };
    let expected = results();
    for level in kernel_levels() {
        let Some(_forced) = ForcedKernels::new(level) else {
            continue;
        };
        assert!(results() == expected, "{}", level.name);
    }
}
