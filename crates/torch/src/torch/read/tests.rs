use super::*;
use crate::torch::fixtures::test_device;

#[test]
fn elements_of_any_layout_arrive_in_row_order_and_each_read_counts_once() {
    let counter = HostSyncCounter::default();
    let table = Tensor::arange(6, (Kind::Int64, test_device())).reshape([2, 3]);

    let turned = read_f64(&table.transpose(0, 1), &counter).expect("read");
    let rows = read_f64(&table, &counter).expect("read");
    let empty = read_f32(&table.narrow(0, 0, 0), &counter).expect("read");

    assert_eq!(turned, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    assert_eq!(rows, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert!(empty.is_empty());
    assert_eq!(counter.count(), 3);
}

#[test]
#[cfg(debug_assertions)]
fn a_read_in_a_forbidden_phase_panics_and_afterwards_reads_are_free_again() {
    let counter = HostSyncCounter::default();
    let tensor = Tensor::ones([1], (Kind::Float, test_device()));

    counter.forbid();
    assert!(catch(|| read_f64(&tensor, &counter)).is_err());
    counter.allow();
    assert_eq!(read_f64(&tensor, &counter), Ok(vec![1.0]));
    assert_eq!(counter.count(), 1);
}
