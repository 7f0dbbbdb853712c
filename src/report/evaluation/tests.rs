use super::*;
use crate::growth::SlotId;

#[test]
fn a_slot_tells_the_most_frequent_blueprint_first_and_nothing_last() {
    let commits = PolicyCommits {
        name: "policy (greedy)".into(),
        slots: vec![
            SlotCommits {
                slot: SlotId::new(0, 0),
                blueprints: [("conv_light".into(), 9), ("conv_heavy".into(), 31)].into(),
                nothing: 8,
            },
            SlotCommits {
                slot: SlotId::new(0, 1),
                blueprints: [("norm".into(), 48)].into(),
                nothing: 0,
            },
        ],
    };

    assert_eq!(
        commits_text(&commits, 80),
        "  policy (greedy): episodes with a commit of\n  \
         r0c0  conv_heavy 31, conv_light 9, nothing 8\n  \
         r0c1  norm 48\n"
    );
    assert_eq!(
        commits_text(&commits, 32).lines().nth(2),
        Some("        conv_light 9, nothing 8"),
        "what has no room is continued below"
    );
}
