use super::*;

#[test]
fn three_slots_and_eight_configurations_take_57_columns() {
    let layout = PackLayout { configs: 8, slots: 3 };

    assert_eq!(layout.columns(), 57);
    assert_eq!(layout.val_both_correct(), 22..30);
    let host = layout.host_group();
    assert_eq!((host.gradients, host.skipped, host.streak), (30..35, 35, None));
    let last = layout.slot_group(2);
    assert_eq!((last.gradients, last.skipped, last.streak), (48..53, 53, Some(56)));
}

#[test]
fn each_group_is_read_from_the_columns_that_it_writes() {
    let layout = PackLayout { configs: 1, slots: 2 };
    let mut pack = vec![0.0; layout.columns()];
    let seed = layout.slot_group(1);
    pack[seed.gradients].copy_from_slice(&[2.5, 1.0, 2.0, 3.0, 40.0]);
    pack[seed.skipped] = 4.0;
    pack[seed.streak.expect("seeds have one")] = 5.0;
    pack[layout.host_group().skipped] = 6.0;

    let numbers = layout.unpack(&pack, &[0], 0);

    let seed = numbers.slots[1];
    let sums = seed.group.gradients;
    assert_eq!((sums.sum_squares, sums.vanishing, sums.exploding), (2.5, 1, 2));
    assert_eq!((sums.tensors, sums.elements), (3, 40));
    assert_eq!((seed.group.skipped_updates, seed.nonfinite_streak), (4, 5));
    assert_eq!(numbers.slots[0].group, GroupNumbers::default());
    assert_eq!(numbers.host.skipped_updates, 6);
}

#[test]
fn discordant_counts_follow_from_agreement() {
    // Given a main configuration with 9400 of 10 000 right and one without a seed with 9280, agreeing on 9080.
    let layout = PackLayout { configs: 4, slots: 0 };
    let mut pack = vec![0.0; layout.columns()];
    pack[layout.val_correct()].copy_from_slice(&[9400.0, 9280.0, 0.0, 0.0]);
    pack[layout.val_both_correct()].copy_from_slice(&[9400.0, 9080.0, 0.0, 0.0]);

    let numbers = layout.unpack(&pack, &[0, 1], 0);

    let (main, without) = (numbers.configs[0], numbers.configs[1]);
    assert_eq!((main.only_main_correct, main.only_this_correct), (0, 0));
    assert_eq!((without.only_main_correct, without.only_this_correct), (320, 200));
    assert_eq!(without.accuracy_percent(10_000), 92.8);
}

/// The blocks of a coalition tree leave it in another order.
#[test]
fn configurations_are_named_by_their_places() {
    let layout = PackLayout { configs: 3, slots: 0 };
    let mut pack = vec![0.0; layout.columns()];
    pack[layout.val_loss_sum()].copy_from_slice(&[30.0, 10.0, 20.0]);
    pack[layout.val_correct()].copy_from_slice(&[3.0, 9.0, 6.0]);
    pack[layout.val_both_correct()].copy_from_slice(&[2.0, 0.0, 6.0]);

    let numbers = layout.unpack(&pack, &[1, 2, 0], 0);

    let row = |config: &ConfigNumbers| (config.loss_sum, config.only_main_correct, config.only_this_correct);
    let configs: Vec<_> = numbers.configs.iter().map(row).collect();
    assert_eq!(configs, [(10.0, 0, 0), (20.0, 3, 0), (30.0, 7, 1)]);
}
