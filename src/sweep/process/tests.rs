use super::*;

#[test]
fn this_process_knows_when_it_started() {
    assert!(!cfg!(target_os = "linux") || Worker::this().started.is_some());
}

#[test]
fn a_file_tells_by_its_name_whose_it_is() {
    let this = Worker::this().mark();
    for mark in [Worker::this().mark(), Worker::of(1).mark(), Worker::of(u32::MAX).mark()] {
        assert_eq!(Mark::of(&format!("trials.csv.{mark}")).as_ref(), Some(&mark));
        assert_eq!(mark == this, mark.0.pid == this.0.pid);
    }
    for name in [
        "trials.csv",
        "0123456789abcdef.0001",
        "a.0123456789abcdef-1",
        "a.0123456789abcdef-1-2-3",
        "a.x-1-2",
    ] {
        assert_eq!(Mark::of(name), None, "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_is_gone_when_another_has_its_number() {
    let this = Worker::this();
    let earlier = Worker {
        started: this.started.map(|started| started - 1),
        ..this.clone()
    };
    let elsewhere = Worker {
        machine: "0123456789abcdef".into(),
        ..earlier.clone()
    };
    assert!(earlier.is_gone(&this) && !this.is_gone(&this) && !elsewhere.is_gone(&this));
}
