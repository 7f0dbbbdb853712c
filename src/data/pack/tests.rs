use super::*;

#[test]
fn three_slots_and_eight_configurations_take_47_columns() {
    let layout = PackLayout { configs: 8, slots: 3 };

    assert_eq!(layout.columns(), 47);
    assert_eq!(layout.val_both_correct(), 22..30);
    assert_eq!(layout.host_gradients(), 30..32);
    assert_eq!(layout.slot_gradients(2), 42..46);
    assert_eq!(layout.slot_skipped(2), 46);
}

#[test]
fn discordant_counts_follow_from_agreement() {
    // Given a main configuration with 9400 of 10 000 right and one without a seed with 9280, agreeing on 9080.
    let layout = PackLayout { configs: 4, slots: 0 };
    let mut pack = vec![0.0; layout.columns()];
    pack[layout.val_correct()].copy_from_slice(&[9400.0, 9280.0, 0.0, 0.0]);
    pack[layout.val_both_correct()].copy_from_slice(&[9400.0, 9080.0, 0.0, 0.0]);

    let numbers = layout.unpack(&pack, 2, 0);

    let (main, without) = (numbers.configs[0], numbers.configs[1]);
    assert_eq!((main.only_main_correct, main.only_this_correct), (0, 0));
    assert_eq!((without.only_main_correct, without.only_this_correct), (320, 200));
    assert_eq!(without.accuracy_percent(10_000), 92.8);
}
