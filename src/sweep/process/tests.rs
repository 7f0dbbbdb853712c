use super::*;

#[test]
fn a_file_tells_by_its_name_whose_it_is() {
    let this = Worker::this();
    for worker in [Worker::this(), Worker::of(1), Worker::of(u32::MAX)] {
        let mark = worker.mark();
        assert_eq!(Worker::marked(&format!("trials.csv.{mark}")), Some(worker.hashed()));
        assert_eq!(mark == this.mark(), worker.pid == this.pid);
    }
    for end in ["csv", "0001", "0123456789abcdef-1", "0123456789abcdef-1-2-3", "x-1-2"] {
        assert_eq!(Worker::marked(&format!("trials.{end}")), None, "{end}");
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
