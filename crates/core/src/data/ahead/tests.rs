use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tch::Kind;

use super::*;
use crate::data::dataset::tests::FIRST_STEP;
use crate::data::locate::tests::assert_refused;
use crate::data::plan::StepKey;
use crate::data::{FeedArithmetic, Sharing};
use crate::torch::fixtures::test_device;

const ROWS: usize = 3;
const BATCHES: usize = 5;
const NEXT: StepKey = StepKey { step: 2, ..FIRST_STEP };

/// Outcome of reading the row at a position.
type Deed = fn(i64) -> Result<(), DataError>;

/// Rows of two bytes: their position, and one more.
struct Numbers(Deed);

impl Debug for Numbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("numbers")
    }
}

impl Rows for Numbers {
    fn read(&self, position: i64, row: &mut [u8], _: &mut Vec<u8>) -> Result<(), DataError> {
        (self.0)(position)?;
        row.copy_from_slice(&[position as u8, position as u8 + 1]);
        Ok(())
    }
}

fn readers(workers: usize, prefetch: usize) -> Readers {
    let config = DataConfig {
        workers,
        prefetch,
        ..DataConfig::default()
    };
    Readers::new(config).unwrap()
}

fn broken(how: &str) -> Result<(), DataError> {
    Err(DataError::new(how, "bring it back"))
}

fn ring(readers: &Readers, deed: Deed) -> Ring {
    let rows: Arc<dyn Rows> = Arc::new(Numbers(deed));
    Ring::new(readers, &rows, 2, test_device(), 4)
}

/// A plan whose first step, the only one, was drawn, and its order.
fn plan() -> (FeedPlan, Vec<u8>) {
    let arithmetic = FeedArithmetic {
        sharing: Sharing::PerEnv,
        n_train: ROWS * BATCHES,
        n_val: 1,
        batch_size: ROWS,
        batches: BATCHES,
        batches_per_pass: BATCHES,
        val_batch_size: 1,
        val_batches: 1,
        units_per_sample: 1,
    };
    let mut plan = FeedPlan::of_order(arithmetic, 4);
    let order = begin(&mut plan, FIRST_STEP, None);
    (plan, order)
}

/// Draws a step and returns its order.
fn begin(plan: &mut FeedPlan, key: StepKey, upcoming: Option<StepKey>) -> Vec<u8> {
    let order = plan.draw(key, upcoming);
    order.iter().map(|&sample| sample as u8).collect()
}

fn buffer() -> Tensor {
    Tensor::zeros([ROWS as i64, 2], (Kind::Uint8, test_device()))
}

/// First bytes of the rows of batches 0 to `count`.
fn fetched(ring: &mut Ring, plan: &mut FeedPlan, count: usize) -> Result<Vec<u8>, DataError> {
    let to = buffer();
    let mut firsts = Vec::new();
    for batch in 0..count {
        ring.fetch(batch, plan, &to)?;
        firsts.extend(Vec::<u8>::try_from(to.select(1, 0)).unwrap());
    }
    Ok(firsts)
}

/// Some rows take longer than others.
fn unevenly(position: i64) -> Result<(), DataError> {
    thread::sleep(Duration::from_millis(position as u64 * 7 % 5));
    Ok(())
}

#[test]
fn batches_are_those_of_the_plan_for_any_timing_and_after_a_step_that_was_broken_off() {
    let (mut plan, order) = plan();
    for (workers, prefetch) in [(1, 1), (1, 3), (4, 2), (3, 9)] {
        let mut ring = ring(&readers(workers, prefetch), unevenly);
        ring.fetch(0, &mut plan, &buffer()).unwrap();
        for _ in 0..2 {
            let firsts = fetched(&mut ring, &mut plan, BATCHES).unwrap();
            assert_eq!(firsts, order, "{workers}, {prefetch}");
        }
        assert!(ring.free.len() <= prefetch, "buffers are kept");
    }
}

#[test]
fn the_first_batches_of_the_upcoming_step_are_on_their_way_before_it_begins() {
    let (mut plan, first) = plan();
    let second = begin(&mut plan, NEXT, None);
    for (prefetch, expected) in [(1, 1), (2, 2), (3 * BATCHES, BATCHES)] {
        let mut ring = ring(&readers(2, prefetch), unevenly);

        assert_eq!(begin(&mut plan, FIRST_STEP, Some(NEXT)), first);
        assert_eq!(fetched(&mut ring, &mut plan, BATCHES).unwrap(), first);
        let on_their_way = ring.asked.len();
        begin(&mut plan, NEXT, None);
        ring.turn_to(0, &mut plan).unwrap();

        assert_eq!(on_their_way, expected);
        assert_eq!(fetched(&mut ring, &mut plan, BATCHES).unwrap(), second);
        assert!(ring.asked.is_empty(), "no step follows");
    }
}

#[test]
fn another_step_than_the_announced_one_gets_its_own_batches() {
    let (mut plan, first) = plan();
    let mut ring = ring(&readers(2, 2), unevenly);

    begin(&mut plan, NEXT, Some(StepKey { round: 1, ..FIRST_STEP }));
    fetched(&mut ring, &mut plan, BATCHES).unwrap();
    begin(&mut plan, FIRST_STEP, None);

    assert_eq!(fetched(&mut ring, &mut plan, BATCHES).unwrap(), first);
}

/// The place in the order of the row at a position.
fn place_of(position: i64) -> Option<usize> {
    let (_, order) = plan();
    order.iter().position(|&sample| i64::from(sample) == position)
}

/// A row of batch 2.
const BAD: Option<usize> = Some(2 * ROWS + 1);

#[test]
fn a_batch_that_could_not_be_read_is_reported_when_it_is_due() {
    let cut_short = |position| match place_of(position) {
        BAD => broken("cut short"),
        _ => Ok(()),
    };
    let (mut plan, order) = plan();
    let mut ring = ring(&readers(2, 4), cut_short);

    assert_eq!(fetched(&mut ring, &mut plan, 2).unwrap(), order[..2 * ROWS]);

    assert_refused(ring.fetch(2, &mut plan, &buffer()), "cut short; bring it back");
}

#[test]
fn a_batch_that_can_be_read_the_second_time_is_as_it_would_have_been() {
    static ATTEMPTS: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
    let (mut plan, order) = plan();
    let mut shaky = ring(&readers(2, 4), |position| {
        let is_first = |attempt: usize| !ATTEMPTS[attempt].swap(true, Ordering::Relaxed);
        match place_of(position) {
            Some(0) if is_first(0) => panic!("the first row panics once"),
            BAD if is_first(1) => broken("away for a moment"),
            _ => Ok(()),
        }
    });

    assert_eq!(fetched(&mut shaky, &mut plan, BATCHES).unwrap(), order);
    assert!(ATTEMPTS.iter().all(|attempt| attempt.load(Ordering::Relaxed)));
}

#[test]
fn a_panic_of_a_thread_is_an_error_of_the_batch_and_the_threads_continue() {
    let (mut plan, order) = plan();
    let readers = readers(1, 4);
    let mut failing = ring(&readers, |position| {
        assert!(place_of(position) != BAD, "position {position} is bad");
        Ok(())
    });

    let lost = "the batch feed of env 4: the thread that gathered the batch was lost (position ";
    assert_refused(fetched(&mut failing, &mut plan, 3), lost);
    let mut sound = ring(&readers, |_| Ok(()));
    assert_eq!(fetched(&mut sound, &mut plan, BATCHES).unwrap(), order);
}

#[test]
fn storage_that_does_not_answer_is_given_up_on() {
    static MAY_END: AtomicBool = AtomicBool::new(false);
    let (mut plan, _) = plan();
    let readers = Readers {
        patience: Duration::from_millis(50),
        ..readers(1, 1)
    };
    let mut stalled = ring(&readers, |_| {
        while !MAY_END.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    });

    let given_up = fetched(&mut stalled, &mut plan, 1);
    MAY_END.store(true, Ordering::Relaxed);

    assert_refused(given_up, "the batch feed of env 4: no batch was read within 0.05 s");
}

#[test]
fn threads_end_with_the_last_feed() {
    let readers = readers(2, 2);
    let pool = Arc::downgrade(&readers.pool);
    let ring = ring(&readers, |_| Ok(()));
    drop(readers);

    assert!(pool.upgrade().is_some());
    drop(ring);
    assert!(pool.upgrade().is_none());
}
