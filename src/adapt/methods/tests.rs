use super::*;
use crate::host::Conv;

#[test]
fn each_method_leaves_as_it_was_given_what_it_does_not_train() {
    let plan = HostPlan::new(1, 8).layer("a", Conv::new(4, 3)).slot(0, 0);
    let plan = plan.layer("b", Conv::new(4, 3)).head(3);
    let room = Room {
        slots: &[SlotId::new(0, 0)],
        blueprints: &BlueprintRegistry::default(),
        budget: 1e6,
    };
    let parts = Parts::of(&plan, &room).unwrap();
    // The texts of a field.
    let texts = |method: Method, name: &str| {
        let sets = parts.variant(method, 0.1, 10).sets;
        let field = sets.into_iter().find(|(path, _)| *path == name);
        let (_, value) = field.unwrap_or_default();
        value.split('"').skip(1).step_by(2).collect::<Vec<_>>().join(" ")
    };

    let (body, norms) = (
        "a.conv.weight b.conv.weight",
        "a.norm.weight a.norm.bias b.norm.weight b.norm.bias",
    );
    for (method, frozen) in [
        (Method::Given, "all".to_owned()),
        (Method::Head, "a b".into()),
        (Method::Statistics, format!("{body} {norms} head.weight head.bias")),
        (Method::StatisticsAndHead, format!("{body} {norms}")),
        (Method::Norms, body.into()),
        (Method::Seeds(Width::Middle), "b.conv.weight".into()),
        (Method::CopyKept, "statistics".into()),
        (Method::Copy, String::new()),
    ] {
        assert_eq!(texts(method, "task.freeze"), frozen, "{method:?}");
    }
    assert_eq!(
        texts(Method::Seeds(Width::Middle), "initial_topology"),
        "r0c0 conv_rank4"
    );
    assert!(parts.widths().eq([Width::Middle]), "others would be the same");
    let head = 4 * 3 + 3;
    assert_eq!(parts.head_size, head as u64);
}

#[test]
fn one_slot_after_another_has_the_largest_seed_for_which_the_budget_has_room() {
    let plan = HostPlan::new(1, 8).layer("a", Conv::new(8, 3)).slot(0, 0);
    let plan = plan.layer("b", Conv::new(16, 3)).slot(0, 1).head(3);
    let seeds = |most, own| {
        let slots = [SlotId::new(0, 0), SlotId::new(0, 1)];
        let (slots, blueprints) = (slots.as_slice(), &BlueprintRegistry::default());
        let room = Room {
            slots,
            blueprints,
            budget: 0.0,
        };
        let seeds = room.seeds(&plan, most, own).into_iter();
        seeds
            .map(|seed| format!("{} {}", seed.slot, seed.blueprint))
            .collect::<Vec<_>>()
            .join(", ")
    };
    // Sizes are 18Cr + 2r.
    assert_eq!(seeds(1_168 + 580 + 7, 7), "r0c0 conv_full, r0c1 conv_rank2");
    assert_eq!(seeds(1_167, 0), "r0c0 conv_rank4, r0c1 conv_rank2");
    assert_eq!(seeds(291, 0), "");
}
