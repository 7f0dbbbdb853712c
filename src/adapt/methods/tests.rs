use proptest::collection::vec;
use proptest::{prop_assert, proptest};

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

proptest! {
    #[test]
    fn the_first_slots_have_seeds_and_the_first_of_them_the_widest_that_fit(
        steps in vec(vec(1u64..50, 1..5), 0..6),
        room in 0u64..300,
    ) {
        let rising = |steps: &Vec<u64>| steps.iter().scan(0, |size, step| { *size += step; Some(*size) }).collect::<Vec<u64>>();
        let sizes: Vec<Vec<u64>> = steps.iter().map(rising).collect();
        let chosen = fill(&sizes, room);

        let total = |chosen: &[usize]| chosen.iter().zip(&sizes).map(|(&kind, sizes)| sizes[kind]).sum::<u64>();
        prop_assert!(total(&chosen) <= room);
        let least = total(&vec![0; chosen.len()]);
        prop_assert!(sizes.get(chosen.len()).is_none_or(|next| least + next[0] > room), "one more had room");
        for place in 0..chosen.len() {
            let mut wider = chosen.clone();
            wider[place] += 1;
            wider[place + 1..].fill(0);
            prop_assert!(wider[place] == sizes[place].len() || total(&wider) > room, "slot {} had room", place);
        }
    }
}
