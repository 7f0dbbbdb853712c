use super::*;
use crate::host::Conv;

#[test]
fn each_method_leaves_as_it_was_given_what_it_does_not_train() {
    let plan = HostPlan::new(1, 8).layer("a", Conv::new(4, 3)).slot(0, 0);
    let plan = plan.layer("b", Conv::new(4, 3)).head(3);
    let parts = Parts::of(&plan, &[SlotId::new(0, 0)]).unwrap();
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
        (Method::Seeds("conv_half"), body.into()),
        (Method::CopyKept, "statistics".into()),
        (Method::Copy, String::new()),
    ] {
        assert_eq!(texts(method, "task.freeze"), frozen, "{method:?}");
    }
    assert_eq!(texts(Method::Seeds("conv_half"), "initial_topology"), "r0c0 conv_half");
}
