use super::*;

const MEMINFO: &str = "MemTotal:       16384000 kB\nMemFree:          200000 kB\nMemAvailable:    8000000 kB\n";

/// The room on a machine with these files.
fn left_with(files: &[(&str, &str)]) -> Option<Room> {
    left(|path| {
        let found = files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| text.to_string())
    })
}

#[test]
fn what_the_machine_has_left_is_what_linux_calls_available() {
    let room = left_with(&[("/proc/meminfo", MEMINFO)]).unwrap();

    assert_eq!((room.bytes, room.source), (8_192_000_000, RoomSource::Available));
    assert_eq!(room.to_string(), "this machine has 7.6 GiB left");
}

#[test]
fn a_lower_limit_of_a_control_group_counts_in_both_versions_and_at_any_level() {
    let version_2 = left_with(&[
        ("/proc/meminfo", MEMINFO),
        ("/proc/self/cgroup", "0::/job/step\n"),
        ("/sys/fs/cgroup/job/step/memory.max", "max\n"),
        ("/sys/fs/cgroup/job/memory.max", "1073741824\n"),
    ]);
    let version_1 = left_with(&[
        ("/proc/meminfo", MEMINFO),
        ("/proc/self/cgroup", "7:cpu:/x\n4:cpuset,memory:/docker/1f3\n"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n"),
    ]);

    let source = RoomSource::ControlGroup;
    let rooms = [1 << 30, 2 << 30].map(|bytes| Some(Room { bytes, source }));
    assert_eq!([version_2, version_1], rooms);
}

#[test]
fn a_control_group_that_allows_more_than_there_is_does_not_count() {
    let room = left_with(&[
        ("/proc/meminfo", MEMINFO),
        ("/proc/self/cgroup", "4:memory:/\n"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
    ]);

    assert_eq!(room.map(|room| room.source), Some(RoomSource::Available));
}

#[test]
fn room_is_unknown_where_the_system_does_not_say() {
    assert_eq!(left_with(&[]), None);
    assert_eq!(left_with(&[("/proc/meminfo", "MemAvailable: lots\n")]), None);
}

#[test]
fn the_limit_of_a_scenario_stands_for_the_machine() {
    let run = RunConfig {
        memory_limit_gib: Some(0.5),
        ..RunConfig::default()
    };

    let room = Room::now(&run).unwrap();

    assert_eq!((room.bytes, room.source), (1 << 29, RoomSource::Limit));
}

#[test]
fn sizes_are_written_in_the_largest_unit_that_fits() {
    assert_eq!([size(7), size(1536), size(3 << 40)], ["7 bytes", "1.5 KiB", "3.0 TiB"]);
}
