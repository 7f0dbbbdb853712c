use super::*;

const NEEDS: Needs = Needs {
    on_device: 400 << 20,
    on_host: 100 << 20,
    is_in_files: true,
};

fn chosen(needs: &Needs, device_mib: u128, host_mib: u128) -> Residency {
    needs.choose(Some(device_mib << 20), Some(host_mib << 20)).residency
}

#[test]
fn the_first_place_with_room_is_taken_and_the_device_where_free_memory_is_unknown() {
    assert_eq!(chosen(&NEEDS, 1600, 100), Residency::Device);
    assert_eq!(chosen(&NEEDS, 1599, 200), Residency::Host);
    assert_eq!(chosen(&NEEDS, 1599, 199), Residency::Stream);
    assert_eq!(NEEDS.choose(None, None).residency, Residency::Device);
}

#[test]
fn what_is_in_memory_anyway_stays_there() {
    let loaded = Needs {
        is_in_files: false,
        ..NEEDS
    };

    assert_eq!(chosen(&loaded, 1599, 199), Residency::Host);
}

#[test]
fn the_reason_names_what_it_takes_and_not_what_happened_to_be_left() {
    let reasons = [1600, 1599].map(|device| NEEDS.choose(Some(device << 20), Some(200 << 20)).reason);

    let expected = [
        "as its 400.0 MiB take at most a quarter of what each device has left",
        "as its 400.0 MiB would take more than a quarter of what a device has left, and 100.0 MiB take at most half of what \
         the machine has left",
    ];
    assert_eq!(reasons, expected);
}
