use super::*;
use crate::host::HostDesign;
use crate::scenario::CnnSpec;
use crate::seed::BlueprintRegistry;

fn seed(slot: SlotId, channels: i64) -> SeedGraph {
    SeedGraph {
        slot,
        blueprint: "norm".into(),
        channels,
        module: ModuleGraph::Norm,
        operator: AlphaAlgorithm::Add,
        amplitude: 1.0,
    }
}

#[test]
fn a_second_seed_of_a_slot_follows_the_first_and_the_slot_follows_both() {
    let host = CnnSpec::default().plan(10).graph();
    let slot = SlotId::new(0, 0);

    let (grown, first) = host.clone().with_seed(seed(slot, 32));
    let (grown, second) = grown.with_seed(seed(slot, 32));

    let names: Vec<&str> = grown.layers.iter().map(|named| named.name.as_str()).take(5).collect();
    assert_eq!((first.as_str(), second.as_str()), ("r0c0", "r0c0_2"));
    assert_eq!(names, ["block0", "r0c0", "r0c0_2", "pool", "block1"]);
    let slots = [(slot, 3), (SlotId::new(1, 0), 4), (SlotId::new(0, 1), 5)];
    assert_eq!(grown.slots[..3], slots);
}

#[test]
fn sizes_and_costs_of_seed_modules_are_those_of_the_built_ones() {
    use crate::growth::Topology;
    use crate::random::{Domain, RunRng};
    use crate::torch::Backend;
    let mut blueprints = BlueprintRegistry::default();
    for topology in Topology::ALL {
        blueprints.serve(topology);
        for (_, blueprint) in blueprints.iter() {
            let graph = blueprint.graph(8);
            let mut rng = RunRng::new(0, Domain::SeedInit, &[]);
            let module = blueprint.build(8, &mut rng, Backend::CPU).unwrap();
            assert_eq!(graph.parameters(8), module.params().count(), "{}", blueprint.id());
            assert_eq!(graph.macs(8, 49), module.macs(49), "{}", blueprint.id());
        }
    }
}
