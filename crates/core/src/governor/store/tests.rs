use tch::Tensor;

use super::{CapturedNetwork, GovernorError, SnapshotStore};
use crate::env::SeedSlots;
use crate::fixtures::perturb;
use crate::host::{self, Host};
use crate::random::{Domain, RunRng};
use crate::scenario::CnnSpec;
use crate::torch::fixtures::{test_backend, test_device};
use crate::unfinished::UnfinishedRound;

fn host(base_channels: i64) -> Box<dyn Host> {
    let spec = CnnSpec {
        in_channels: 1,
        base_channels,
        input_hw: 8,
        ..CnnSpec::default()
    };
    let mut rng = RunRng::new(1, Domain::HostInit, &[0, 0]);
    host::build(&spec, 10, &mut rng, test_backend()).unwrap()
}

fn no_slots() -> SeedSlots {
    SeedSlots::new(&[])
}

fn capture(store: &mut SnapshotStore, host: &dyn Host) {
    let live = CapturedNetwork::of(host, &mut no_slots());
    store.capture(live, test_device()).unwrap();
}

/// All values of a host, and where they lie.
fn state(host: &dyn Host) -> Vec<(usize, Vec<f32>)> {
    let of = |tensor: &Tensor| {
        let flat = tensor.detach().contiguous().view(-1);
        (tensor.data_ptr().addr(), Vec::try_from(&flat).unwrap())
    };
    host.params().all().map(|param| of(&param.tensor)).collect()
}

fn count(store: &mut SnapshotStore) -> Option<f64> {
    store.take_count().map(|count| f64::try_from(count).unwrap())
}

/// Includes channels-last weights and running statistics, which must return to their old place.
#[test]
fn a_restore_puts_back_every_value_of_the_capture_that_was_promoted_last() {
    let (host, mut store) = (host(4), SnapshotStore::default());
    let first = state(&*host);
    capture(&mut store, &*host);
    store.promote();
    perturb(host.params().all());
    let second = state(&*host);
    assert_ne!(first, second);
    capture(&mut store, &*host);

    // Not promoted: the first state comes back, time and again.
    for _ in 0..2 {
        perturb(host.params().all());
        store.restore(&*host, &mut no_slots()).unwrap();
        assert_eq!(state(&*host), first);
    }

    store.promote();
    store.restore(&*host, &mut no_slots()).unwrap();
    assert_eq!(state(&*host), second);
}

#[test]
fn values_that_arent_finite_are_counted_once_per_capture() {
    let (host, mut store) = (host(4), SnapshotStore::default());
    capture(&mut store, &*host);
    assert_eq!((count(&mut store), count(&mut store)), (Some(0.0), None));

    let buffer = host.params().all().last().unwrap().tensor.shallow_clone();
    let _ = buffer.get(0).fill_(f64::INFINITY);
    let _ = buffer.get(1).fill_(f64::NAN);
    capture(&mut store, &*host);

    assert_eq!(count(&mut store), Some(2.0));
}

#[test]
fn another_network_is_refused_and_left_unchanged() {
    let mut store = SnapshotStore::default();
    let unknown = store.restore(&*host(4), &mut no_slots()).unwrap_err();
    assert_eq!(unknown.cause(), Some(&GovernorError::NoSnapshot));
    capture(&mut store, &*host(4));
    store.promote();
    let other = host(6);
    let before = state(&*other);

    let error = store.restore(&*other, &mut no_slots()).unwrap_err();

    let Some(GovernorError::SnapshotMismatch { missing, unexpected }) = error.cause() else {
        panic!("{error}");
    };
    assert!(!missing.is_empty() && !unexpected.is_empty());
    assert!(error.to_string().contains("nothing was written"));
    assert_eq!(state(&*other), before);
}

#[test]
fn a_buffer_that_is_not_on_probation_isnt_part_of_a_checkpoint() {
    let (host, mut store) = (host(4), SnapshotStore::default());
    capture(&mut store, &*host);
    store.promote();
    capture(&mut store, &*host);
    let restored = |has_probation: bool| {
        let mut round = UnfinishedRound::default();
        store.save("env0", has_probation, &mut round).unwrap();
        let mut restored = SnapshotStore::default();
        restored.restore_kept("env0", &round, test_device()).unwrap();
        (restored.known_good.is_some(), restored.other.is_some())
    };

    assert_eq!(restored(true), (true, true));
    assert_eq!(restored(false), (true, false));
}
