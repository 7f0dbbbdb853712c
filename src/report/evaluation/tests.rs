use super::*;
use crate::growth::SlotId;

#[test]
fn a_slot_tells_the_most_frequent_blueprint_first_and_nothing_last() {
    let slot = |column, blueprints: &[(&str, u32)], nothing| SlotCommits {
        slot: SlotId::new(0, column),
        blueprints: blueprints.iter().map(|&(name, count)| (name.into(), count)).collect(),
        nothing,
    };
    let commits = PolicyCommits {
        name: "policy (greedy)".into(),
        slots: vec![
            slot(0, &[("conv_light", 9), ("conv_heavy", 31)], 8),
            slot(1, &[("norm", 48)], 0),
        ],
    };

    let wide = "  policy (greedy): episodes with a commit of\n  \
                r0c0  conv_heavy 31, conv_light 9, nothing 8\n  \
                r0c1  norm 48\n";
    assert_eq!(commits_text(&commits, 80), wide);
    // Text without room continues below.
    let narrow = commits_text(&commits, 32);
    assert_eq!(narrow.lines().nth(2), Some("        conv_light 9, nothing 8"));
}
