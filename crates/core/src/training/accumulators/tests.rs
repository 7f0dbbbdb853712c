use tch::Device;

use super::*;
use crate::scenario::Kernels;
use crate::torch::fixtures::{on_device, test_backend, test_device};
use crate::training::pack::StepNumbers;

const LAYOUT: PackLayout = PackLayout { configs: 2, slots: 1 };

fn accumulators(batches: usize, batch_size: usize) -> Accumulators {
    Accumulators::new(test_backend(), LAYOUT, batches, (batch_size, 1)).unwrap()
}

fn read(accumulators: &Accumulators, configs: usize) -> StepNumbers {
    let pack = Vec::<f64>::try_from(accumulators.pack()).unwrap();
    LAYOUT.unpack(&pack, &Vec::from_iter(0..configs), 0)
}

#[test]
fn validation_loss_is_weighted_by_samples_and_not_by_batches() {
    // Given 100 samples of loss 1 and 20 samples of loss 4.
    let mut sums = accumulators(1, 1);
    for (samples, loss) in [(100, 1.0), (20, 4.0)] {
        let losses = Tensor::full([1, samples], loss, (Kind::Float, test_device()));
        let is_correct = Tensor::ones([1, samples], (Kind::Bool, test_device()));
        sums.add_rows(&losses, &is_correct, 0).unwrap();
    }

    let main = read(&sums, 1).configs[0];

    assert_eq!(main.loss(120), 1.5);
    assert_eq!(main.accuracy_percent(120), 100.0);
}

#[test]
fn counts_stay_exact_beyond_the_integers_of_f32() {
    // Given 2^24 correct samples so far.
    let mut sums = accumulators(1, 1);
    let _ = sums.columns(LAYOUT.val_correct()).fill_(f64::from(1 << 24));

    let row = Tensor::zeros([1, 1], (Kind::Float, test_device()));
    sums.add_rows(&row, &row.eq(0.0), 0).unwrap();

    assert_eq!(read(&sums, 1).configs[0].correct, 16_777_217);
}

#[test]
fn training_batches_with_a_non_finite_loss_are_counted_and_left_out() {
    // Given three batches of two samples, predicted as class 1, the second with a NaN loss.
    let mut sums = accumulators(3, 2);
    let logits = on_device(Tensor::from_slice2(&[[0.0f32, 1.0], [0.0, 1.0]])).set_requires_grad(true);
    for (batch, loss) in [1.0, f32::NAN, 4.0].into_iter().enumerate() {
        let loss = on_device(Tensor::from(loss));
        sums.record_train(batch, 0, &logits, &loss).unwrap();
    }

    let labels = on_device(Tensor::from_slice(&[1i64, 1, 1, 0, 0, 0]));
    sums.finish_train(&labels).unwrap();

    let numbers = read(&sums, 1);
    assert_eq!((numbers.loss_sum, numbers.finite_units), (10.0, 4));
    assert_eq!((numbers.nonfinite_batches, numbers.correct), (1, 3));
    assert_eq!(numbers.train_loss(), 2.5);
}

#[test]
fn micro_batches_add_up_to_their_batch() {
    // Given a batch of four in parts of three and one.
    let mut sums = accumulators(1, 4);
    let logits = on_device(Tensor::from_slice2(&[[1.0f32, 0.0], [1.0, 0.0], [0.0, 1.0]]));
    let [first, second] = [2.0_f32, 6.0].map(|loss| on_device(Tensor::from(loss)));
    sums.record_train(0, 0, &logits, &first).unwrap();
    let last = logits.narrow(0, 0, 1);
    sums.record_train(0, 3, &last, &second).unwrap();

    let labels = on_device(Tensor::from_slice(&[0i64, 0, 1, 1]));
    sums.finish_train(&labels).unwrap();

    let numbers = read(&sums, 1);
    assert_eq!((numbers.train_loss(), numbers.correct), (3.0, 3));
}

#[test]
fn a_new_step_starts_from_zero_in_the_same_storage() {
    let mut sums = accumulators(1, 1);
    let storage = sums.pack().data_ptr();
    let _ = sums.columns(LAYOUT.host_group().gradients).fill_(3.0);

    sums.zero().unwrap();

    assert_eq!(read(&sums, 1).host.gradients.sum_squares, 0.0);
    assert_eq!(sums.pack().data_ptr(), storage);
    // Without any batch there is no training loss.
    assert!(read(&sums, 1).train_loss().is_nan());
}

#[test]
fn agreement_with_the_main_configuration_is_counted_per_configuration() {
    let mut sums = accumulators(1, 1);
    let is_correct = Tensor::from_slice2(&[[true, true, true, false], [false, true, false, true]]);
    let losses = Tensor::zeros([2, 4], (Kind::Float, test_device()));

    sums.add_rows(&losses, &on_device(is_correct), 0).unwrap();

    let without = read(&sums, 2).configs[1];
    assert_eq!((without.only_main_correct, without.only_this_correct), (2, 1));
}

/// Training and validation of three batches, one of them in parts: everything that the pack holds.
fn summed(kernels: Kernels) -> Vec<f64> {
    let backend = Backend::new(Device::Cpu, kernels);
    let mut sums = Accumulators::new(backend, LAYOUT, 3, (4, 1)).unwrap();
    sums.zero().unwrap();
    let logits = ((Tensor::arange(24, (Kind::Float, Device::Cpu)) * 0.7).sin() * 3.0).view([8, 3]);
    let labels = Tensor::from_slice(&[0i64, 0, 2, 2]);
    for batch in 0..3 {
        for (first, rows) in if batch == 1 { vec![(0, 3), (3, 1)] } else { vec![(0, 4)] } {
            let (part, of_part) = (logits.narrow(0, first + batch, rows), labels.narrow(0, first, rows));
            let place = (batch as usize, first as usize);
            let objective = sums.train_loss(place, &part, &of_part, 0.1).unwrap();
            assert!(f64::try_from(objective).unwrap().is_finite());
        }
    }
    sums.finish_train(&labels.repeat([3])).unwrap();
    sums.add_val(&logits, &labels, 0).unwrap();
    Vec::<f64>::try_from(sums.pack()).unwrap()
}

#[test]
fn own_kernels_add_up_what_libtorch_s_operators_do() {
    let (own, libtorch) = (summed(Kernels::Own), summed(Kernels::Libtorch));

    assert!(libtorch[PackLayout::CORRECT] > 0.0 && libtorch[LAYOUT.val_both_correct().start] > 0.0);
    for (column, (own, libtorch)) in own.iter().zip(&libtorch).enumerate() {
        let bound = 1e-6 * libtorch.abs();
        assert!((own - libtorch).abs() <= bound, "column {column}: {own} and {libtorch}");
    }
}

fn logits() -> Tensor {
    on_device(Tensor::from_slice2(&[[1.0f32, 2.0, 0.5], [0.0, 0.0, 0.0]]))
}

fn targets(classes: [i64; 2]) -> Tensor {
    on_device(Tensor::from_slice(&classes))
}

fn close(tensor: &Tensor, expected: f64) {
    let found = f64::try_from(tensor).unwrap();
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

#[test]
fn the_loss_is_the_mean_of_logsumexp_minus_the_targets_logit() {
    // ln(e + e² + e^0.5) − 2 = 0.4643688; ln 3 = 1.0986123.
    let (objective, mean) = train_loss(&logits(), &targets([1, 2]), 0.0).unwrap();

    close(&mean, 0.781_490_5);
    close(&objective, 0.781_490_5);
}

#[test]
fn smoothing_changes_the_objective_and_not_the_report() {
    // Mean over classes of logsumexp − z_k: 2.4643688 − 3.5/3 = 1.2977021 and ln 3.
    let logits = logits().set_requires_grad(true);

    let (objective, mean) = train_loss(&logits, &targets([1, 2]), 0.1).unwrap();

    close(&mean, 0.781_490_5);
    close(&objective, 0.9 * 0.781_490_5 + 0.1 * 1.198_157_2);
    assert!(objective.requires_grad() && !mean.requires_grad());
}

#[test]
fn half_precision_logits_are_evaluated_in_f32() {
    let halves = logits().to_kind(Kind::BFloat16);

    let (losses, _) = evaluate_rows(&halves, &targets([1, 2])).unwrap();

    assert_eq!(losses.kind(), Kind::Float);
    close(&losses.get(0).get(1), 1.098_612_3);
}

#[test]
fn rows_of_every_configuration_meet_the_same_targets() {
    let both = Tensor::cat(&[logits(), logits().flip([1])], 0);

    let (losses, is_correct) = evaluate_rows(&both, &targets([1, 0])).unwrap();

    assert_eq!(losses.size(), [2, 2]);
    close(&losses.get(0).get(0), 0.464_368_8);
    // A tie goes to the lowest index, so the constant row is right about class 0.
    assert_eq!(Vec::<bool>::try_from(is_correct.view(-1)).unwrap(), [true; 4]);
    let (_, is_correct) = evaluate_rows(&both, &targets([2, 1])).unwrap();
    assert_eq!(Vec::<bool>::try_from(is_correct.view(-1)).unwrap(), [false; 4]);
}
