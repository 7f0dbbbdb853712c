use super::*;

#[test]
fn a_file_tells_by_its_name_whose_it_is() {
    let this = Worker::this().mark();
    for mark in [Worker::this().mark(), Worker::of(1).mark(), Worker::of(u32::MAX).mark()] {
        assert_eq!(Mark::of(&format!("trials.csv.{mark}")).as_ref(), Some(&mark));
        assert_eq!(mark == this, mark.0.pid == this.0.pid);
    }
    for end in ["csv", "0001", "0123456789abcdef-1", "0123456789abcdef-1-2-3", "x-1-2"] {
        assert_eq!(Mark::of(&format!("trials.{end}")), None, "{end}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_is_gone_when_another_has_its_number() {
    let this = Worker::this();
    let mut earlier = this.clone();
    earlier.started = this.started.map(|started| started - 1);
    assert!(earlier.is_gone(&this) && !this.is_gone(&this));
    earlier.machine = "0123456789abcdef".into();
    assert!(!earlier.is_gone(&this));
}
