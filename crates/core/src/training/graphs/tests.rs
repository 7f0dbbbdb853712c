//! A recorder takes the place of the device: it repeats the work that it recorded, whether or not that is still right.

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use smallvec::smallvec;
use tch::Device;

use super::*;
use crate::growth::AlphaAlgorithm;

/// A batch's work: its topology, and whether statistics are taken.
type Work = (u64, bool);

thread_local! {
    static DONE: RefCell<Vec<Work>> = const { RefCell::new(Vec::new()) };
    static RECORDED: Cell<u32> = const { Cell::new(0) };
    static FAILS: Cell<bool> = const { Cell::new(false) };
}

struct Recorder(Vec<Work>);

impl Recording for Recorder {
    fn record(_: Option<&Self>, batch: &mut dyn FnMut() -> Result<(), Failure>) -> Result<Self, Failure> {
        let before = DONE.with_borrow(Vec::len);
        batch()?;
        let recorded = DONE.with_borrow_mut(|done| done.split_off(before));
        if FAILS.get() {
            return Err(Failure::message("no graph"));
        }
        RECORDED.set(RECORDED.get() + 1);
        Ok(Self(recorded))
    }

    fn replay(&self) -> Result<(), Failure> {
        DONE.with_borrow_mut(|done| done.extend(&self.0));
        Ok(())
    }
}

fn topology(revision: u64) -> TrainingTopology {
    TrainingTopology {
        samples: 0,
        precision: None,
        slots: smallvec![SlotTopology {
            revision,
            stage: None,
            kind: None,
            trains: true,
        }],
    }
}

/// Returns how often each of `batches` was refused, and the work done; with `fails` nothing can be recorded.
fn played(batches: &[Work], fails: bool) -> (Vec<bool>, Vec<Work>) {
    DONE.take();
    RECORDED.set(0);
    FAILS.set(fails);
    let mut graphs = Graphs::<TrainingTopology, Recorder>::default();
    let mut play = |work: &Work| {
        let batch = || {
            DONE.with_borrow_mut(|done| done.push(*work));
            Ok(())
        };
        let refused = graphs.play(topology(work.0), work.1, batch);
        refused.expect("the batch is played").is_some()
    };
    let refused = batches.iter().map(&mut play).collect();
    (refused, DONE.take())
}

proptest! {
    #[test]
    fn every_batch_does_its_own_work_once_recorded_or_not(
        batches in prop::collection::vec((0..3u64, any::<bool>()), 0..60),
        fails: bool,
    ) {
        prop_assert_eq!(played(&batches, fails).1, batches);
    }
}

#[test]
fn a_topology_is_recorded_once_a_kind_and_again_when_it_comes_back() {
    let batches = [[(0, false); 10], [(0, true); 10], [(1, false); 10], [(0, false); 10]].concat();

    played(&batches, false);

    assert_eq!(RECORDED.get(), 4);
}

#[test]
fn batches_of_a_kind_that_cannot_be_recorded_are_played_as_usual_and_say_so() {
    let (refused, done) = played(&[(0, false); 5], true);

    assert_eq!(refused, [false, false, true, true, true]);
    assert_eq!(done, [(0, false); 5]);
}

#[test]
fn a_batch_that_fails_as_usual_fails_and_one_that_fails_only_recorded_does_not() {
    let mut graphs = Graphs::<TrainingTopology, Recorder>::default();
    let failing = || Err(Failure::message("no memory"));
    for _ in 0..WARM_UP {
        assert!(graphs.play(topology(0), false, failing).is_err());
    }
    let mut calls = 0;
    let recovers = || {
        calls += 1;
        if calls == 1 { failing() } else { Ok(()) }
    };

    let refused = graphs.play(topology(0), false, recovers).expect("played as usual");

    assert_eq!(refused, Some("no memory"));
}

#[test]
fn samples_stay_where_they_are_and_targets_are_brought_to_one_place() {
    let mut graphs = Graphs::<TrainingTopology, Recorder>::default();
    let batch = |first: i64| Batch {
        x: Tensor::zeros([2, 3], (Kind::Float, Device::Cpu)),
        y: Tensor::from_slice(&[first, first + 1]),
        n: 2,
    };
    let (one, two) = (batch(1), batch(5));

    let first = graphs.in_place(&one).expect("copied");
    let second = graphs.in_place(&two).expect("copied");

    assert_eq!(second.x.data_ptr(), two.x.data_ptr());
    assert_eq!(second.y.data_ptr(), first.y.data_ptr());
    assert_eq!(second.y, two.y);
}

#[test]
fn an_amplitude_isnt_part_of_a_topology_and_the_work_of_a_seed_is() {
    let blend = |alpha, isolated| GraftKind::Blend {
        alpha,
        algorithm: AlphaAlgorithm::Add,
        isolated,
    };
    let of = |kind: GraftKind| Some(kind.at_amplitude(1.0));

    assert_eq!(of(blend(0.2, true)), of(blend(0.7, true)));
    assert_ne!(of(blend(0.2, true)), of(blend(0.2, false)));
    assert_ne!(of(GraftKind::StraightThrough), of(blend(0.2, true)));
}
