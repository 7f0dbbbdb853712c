use tch::Kind;

use super::*;
use crate::torch::fixtures::on_device;
use crate::torch::{HostSyncCounter, read_f64};

/// f32 takes the flat path on CPU, f64 libtorch's operators, as on CUDA.
const BOTH_PATHS: [Kind; 2] = [Kind::Float, Kind::Double];

fn guarded(kind: Kind) -> (FiniteGuard, Vec<Tensor>) {
    let tensor = |values: &[f64]| on_device(Tensor::from_slice(values).to_kind(kind));
    let tensors = [[1.0, 2.0].as_slice(), &[3.0]].map(tensor);
    let handles = tensors.iter().map(Tensor::shallow_clone).collect();
    (FiniteGuard::new(handles).expect("memory"), tensors.into())
}

fn read(tensors: &[Tensor]) -> Vec<Vec<f64>> {
    let counter = HostSyncCounter::default();
    let values = |tensor: &Tensor| read_f64(tensor, &counter).expect("read");
    tensors.iter().map(values).collect()
}

#[test]
fn finite_values_stay_as_they_have_become_and_one_that_is_not_finite_takes_all_tensors_back() {
    for (kind, spoilt) in BOTH_PATHS.into_iter().zip([f64::NAN, f64::NEG_INFINITY]) {
        let (guard, mut tensors) = guarded(kind);
        let _ = tensors[0].fill_(5.0);
        guard.keep().expect("keep");
        let storage = tensors[0].data_ptr();
        let _ = tensors[0].fill_(7.0);

        guard.restore_unless_finite().expect("restore");
        assert_eq!(read(&tensors), [vec![7.0, 7.0], vec![3.0]]);

        let _ = tensors[1].fill_(spoilt);
        guard.restore_unless_finite().expect("restore");
        assert_eq!(read(&tensors), [vec![5.0, 5.0], vec![3.0]]);
        assert_eq!(tensors[0].data_ptr(), storage);
    }
}

#[test]
fn finite_or_not_all_tensors_go_back_to_what_was_kept_last_or_earlier() {
    for kind in BOTH_PATHS {
        let (guard, mut tensors) = guarded(kind);
        guard.keep().expect("keep");
        let earlier = guard.kept().expect("memory");
        let _ = tensors[0].fill_(5.0);
        guard.keep().expect("keep");
        let _ = tensors[0].fill_(7.0);

        guard.restore(None).expect("restore");
        assert_eq!(read(&tensors), [vec![5.0, 5.0], vec![3.0]]);

        guard.restore(Some(&earlier)).expect("restore");
        assert_eq!(read(&tensors), [vec![1.0, 2.0], vec![3.0]]);
    }
}
