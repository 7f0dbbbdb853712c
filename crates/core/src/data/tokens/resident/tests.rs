use super::*;
use crate::data::dataset::tests::{FIRST_STEP, task};
use crate::data::{DataRegistry, TaskData};
use crate::random::{Domain, Draw, RunRng};
use crate::scenario::{BatchesPerStep, DataSource, Kernels, SynthTokens};
use crate::torch::fixtures::{test_backend, test_device};
use crate::training::{Accumulators, PackLayout};

/// Seven short texts to train on, in batches of three.
fn small_set() -> (TokenSet, FeedArithmetic) {
    let mut task = task("synth_tokens");
    task.data = DataSource::SynthTokens(SynthTokens {
        block: 12,
        train: 7,
        val: 5,
        test: 4,
        ..SynthTokens::default()
    });
    (task.batch_size, task.batches_per_step, task.val_batch_size) = (3, BatchesPerStep::Full, Some(4));
    let data = TaskData::load(&task, None, &DataRegistry::default()).unwrap();
    let arithmetic = data.arithmetic(&task, 1).unwrap();
    let TaskData::Tokens(set) = data else {
        panic!("a text isn't an image");
    };
    (set, arithmetic)
}

fn resident(set: &TokenSet) -> ResidentTokens {
    ResidentTokens::upload(set, test_backend(), None).unwrap()
}

fn rows(tensor: &Tensor) -> Vec<Vec<i32>> {
    Vec::<Vec<i32>>::try_from(tensor.to_kind(Kind::Int).contiguous()).unwrap()
}

#[test]
fn batches_are_the_windows_of_the_order_and_the_tokens_after_theirs() {
    let (set, arithmetic) = small_set();
    let resident = resident(&set);
    let mut feed = TokenFeed::new(&resident, arithmetic, 5).unwrap();
    let mut order: Vec<usize> = (0..7).collect();
    RunRng::new(42, Domain::DataOrder, &[0, 5, 1]).shuffle(&mut order);

    feed.begin_step(FIRST_STEP, None).unwrap();

    let mut step_targets = Vec::new();
    for batch in 0..2 {
        let fetched = feed.fetch(batch).unwrap();
        let kinds = (fetched.x.kind(), fetched.y.kind());
        assert_eq!((fetched.n, kinds), (3, (Kind::Int, Kind::Int64)));
        for row in 0..3 {
            let (input, targets) = set.window(order[3 * batch + row]).unwrap();
            assert_eq!((&rows(&fetched.x)[row], &rows(&fetched.y)[row]), (&input, &targets));
            step_targets.extend(targets);
        }
    }
    let labels = feed.step_labels().to_kind(Kind::Int);
    assert_eq!(Vec::<i32>::try_from(labels).unwrap(), step_targets);
    assert_eq!(feed.fetch(0).unwrap().x.data_ptr(), feed.fetch(1).unwrap().x.data_ptr());
}

#[test]
fn validation_and_test_are_their_windows_in_order() {
    let (set, _) = small_set();
    let resident = resident(&set);

    let batches = resident.val.batches(4, 2);

    assert_eq!(batches.iter().map(|batch| batch.n).collect::<Vec<_>>(), [4, 1]);
    let (input, targets) = set.window(11).unwrap();
    assert_eq!((&rows(&batches[1].x)[0], &rows(&batches[1].y)[0]), (&input, &targets));
    assert_eq!(resident.test.batches(10, 1)[0].n, 4);
}

#[test]
fn parts_may_stand_anywhere_in_the_stream() {
    let set = TokenSet::new("apart", 64, 4, 4, (0..31).collect::<Vec<i32>>(), [0..2, 5..7, 3..4]).unwrap();
    let resident = resident(&set);

    let (val, test) = (resident.val.batches(2, 1), resident.test.batches(2, 1));

    assert_eq!(rows(&val[0].x), [[20, 21, 22, 23], [24, 25, 26, 27]]);
    assert_eq!(rows(&val[0].y), [[21, 22, 23, 24], [25, 26, 27, 28]]);
    assert_eq!(rows(&test[0].y), [[13, 14, 15, 16]]);
}

#[test]
fn a_step_counts_tokens_where_it_counts_predictions() {
    let (_, arithmetic) = small_set();

    assert_eq!((arithmetic.batches, arithmetic.train_samples()), (2, 6));
    assert_eq!(arithmetic.train_units(), 72);
    assert_eq!((arithmetic.val_samples(), arithmetic.val_units()), (5, 60));
}

/// Sums of both kinds of kernels over texts, against plain arithmetic.
#[test]
fn sums_are_over_tokens() {
    let (classes, block) = (5_i64, 4_i64);
    let logits = (Tensor::arange(2 * block * classes, (Kind::Float, test_device())) * 1.3).sin();
    let logits = logits.view([2, block, classes]);
    let targets = Tensor::arange(2 * block, (Kind::Int64, test_device())) * 3;
    let targets = targets.remainder(classes).view([2, block]);
    let flat = logits.view([-1, classes]).log_softmax(-1, Kind::Double);
    let losses = -flat.gather(1, &targets.view([-1, 1]), false);
    let value = |of: &Tensor| f64::try_from(of).unwrap();
    let correct = value(&flat.argmax(1, false).eq_tensor(&targets.view([-1])).sum(Kind::Double));
    for kernels in [Kernels::Own, Kernels::Libtorch] {
        let layout = PackLayout { configs: 1, slots: 0 };
        let backend = Backend::new(test_device(), kernels);
        let mut sums = Accumulators::new(backend, layout, 1, (2, block as usize)).unwrap();
        sums.zero().unwrap();

        // Two micro-batches of one text each, then both texts in validation.
        for row in 0..2 {
            let part = |whole: &Tensor| whole.narrow(0, row, 1);
            let objective = sums.train_loss((0, row as usize), &part(&logits), &part(&targets), 0.0);
            let expected = value(&losses.narrow(0, row * block, block).mean(Kind::Double));
            assert!((value(&objective.unwrap()) - expected).abs() < 1e-6);
        }
        sums.finish_train(&targets.view([-1])).unwrap();
        sums.add_val(&logits, &targets, 0).unwrap();

        let pack = Vec::<f64>::try_from(sums.pack()).unwrap();
        let numbers = layout.unpack(&pack, &[0], 0);
        let total = value(&losses.sum(Kind::Double));
        let main = numbers.configs[0];
        assert!((numbers.loss_sum - total).abs() < 1e-5 && (main.loss_sum - total).abs() < 1e-5);
        assert_eq!((numbers.correct as f64, main.correct as f64), (correct, correct));
        assert_eq!(numbers.finite_units, 8);
    }
}
