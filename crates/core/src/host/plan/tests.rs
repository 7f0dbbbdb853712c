use std::sync::Arc;

use super::*;
use crate::fixtures::{images, largest};
use crate::host::{Conv, Layer};
use crate::network::HostRegistry;
use crate::nn::Init;
use crate::random::Domain;
use crate::scenario::{HostChoice, HostName};
use crate::torch::fixtures::test_backend;

fn problems(plan: &HostPlan) -> Vec<String> {
    let problems = plan.outline().problems;
    problems.into_iter().map(|problem| problem.message).collect()
}

#[test]
fn the_fault_of_a_line_is_named() {
    let with_block = |plan: HostPlan| plan.layer("block", Conv::new(4, 3));
    let block = || with_block(HostPlan::new(1, 4));
    let table = [
        (HostPlan::new(1, 4).head(10), "the host has 1 op; it needs at least 2"),
        (with_block(block()).head(10), "two ops of the host are called block"),
        (block().pool().pool().pool().head(10), "leaves 4 channels of 0x0 pixels"),
        (
            with_block(HostPlan::new(1, 4).slot(0, 0)).head(10),
            "before its first op",
        ),
        (block().head(10).slot(0, 0), "after its head"),
        (block().slot(0, 0).pool().slot(0, 0).head(10), "two slots r0c0"),
        (block().slot(0, 0).slot(0, 1).head(10), "are after the same op"),
    ];
    for (plan, fault) in table {
        let found = problems(&plan);
        assert!(found.len() == 1 && found[0].contains(fault), "{fault}: {found:?}");
        let built = plan.build(&mut RunRng::new(1, Domain::HostInit, &[]), test_backend());
        assert!(matches!(built, Err(HostError::Broken(_))), "{fault}");
    }
    assert_eq!(problems(&block().slot(0, 0).head(10)), [""; 0]);
}

/// A factor a channel, with the number of parameters that it declares.
struct Factor {
    declared: u64,
    grows: bool,
}

struct FactorLayer(Tensor);

impl LayerDesign for Factor {
    fn output(&self, input: Features) -> Features {
        let channels = input.channels + i64::from(self.grows);
        Features { channels, ..input }
    }

    fn parameters(&self, _: Features) -> u64 {
        self.declared
    }

    fn macs(&self, _: Features) -> u64 {
        0
    }

    fn build(&self, input: Features, name: &str, params: &mut ParamSet) -> Result<Box<dyn Layer>, HostError> {
        let factor = params.add(format!("{name}.factor"), &[input.channels, 1, 1], Init::Constant(1.0))?;
        Ok(Box::new(FactorLayer(factor)))
    }
}

impl Layer for FactorLayer {
    fn forward(&self, x: &Tensor, _: Mode) -> Result<Tensor, HostError> {
        Ok(x.f_mul(&self.0)?)
    }
}

#[test]
fn a_layer_is_held_to_its_design() {
    let build = |declared, grows| {
        let plan = HostPlan::new(3, 4).layer("scale", Factor { declared, grows }).head(2);
        let built = plan.build(&mut RunRng::new(1, Domain::HostInit, &[]), test_backend());
        built.map(|_| ()).map_err(|error| error.to_string())
    };

    assert_eq!(build(3, false), Ok(()));
    for (declared, grows, why) in [
        (4, false, "4 parameters, but has 3"),
        (
            3,
            true,
            "an output of [1, 4, 4, 4] for one sample, but makes [1, 3, 4, 4]",
        ),
    ] {
        let error = format!("the host cannot be built: op scale declares {why}");
        assert_eq!(build(declared, grows), Err(error));
    }
}

#[test]
fn tensors_and_statistics_are_frozen_by_names_of_their_own_and_layers_with_both() {
    // The first tensor that learns, and whether the running statistics follow a batch.
    let learns = |frozen: &str| -> Result<(String, bool), HostError> {
        let plan = HostPlan::new(1, 8).layer("block", Conv::new(4, 3)).head(3);
        let mut rng = RunRng::new(1, Domain::HostInit, &[]);
        let host = plan.frozen(&[frozen.into()]).build(&mut rng, test_backend())?;
        let _ = host.run(0..1, &images(8, 1, 8), Mode::Train)?;
        let (params, first) = (host.params(), host.params().trainable()[0].name.clone());
        let mean = params.all().find(|param| param.name.ends_with("running_mean"));
        Ok((first, largest(&mean.unwrap().tensor) > 0.0))
    };

    for (frozen, first, follow) in [
        ("block.conv", "block.norm.weight", true),
        ("statistics", "block.conv.weight", false),
        ("block", "head.weight", false),
    ] {
        assert_eq!(learns(frozen).unwrap(), (first.into(), follow), "{frozen}");
    }
    let refused = learns("block.cnv").unwrap_err().to_string();
    let expected = "the host has no block.cnv; valid: block.conv.weight, block.norm.weight, block.norm.bias";
    assert!(refused.ends_with(expected), "{refused}");
}

#[test]
fn a_name_is_found_in_either_case() {
    let mut hosts = HostRegistry::default();
    let design = |classes| HostPlan::new(1, 4).layer("block", Conv::new(4, 3)).head(classes);
    hosts.register("mine", "one block", Arc::new(design));

    let named = |name: &str| hosts.of(&HostChoice::Named(HostName(name.into())), None);
    assert_eq!(named("MINE").unwrap().plan(5).outline().parameters, 36 + 8 + 25);
    let unknown = named("yours").map(|_| ()).unwrap_err().to_string();
    let expected = "no host is called `yours`; there are: mine, resnet18";
    assert!(unknown.starts_with(expected), "{unknown}");
}
