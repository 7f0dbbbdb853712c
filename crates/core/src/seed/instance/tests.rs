use std::sync::Arc;

use tch::{Kind, TchError, Tensor};

use crate::engine::built_in_names;
use crate::fixtures::{assert_close, largest, perturb};
use crate::growth::{AlphaAlgorithm, Topology};
use crate::nn::{Mode, ParamSet};
use crate::random::{Domain, RunRng};
use crate::scenario::BlueprintEntry;
use crate::seed::{
    Amplitude, BlendError, Blueprint, BlueprintError, BlueprintRegistry, FIRST_PLUGIN_INDEX, GateNetwork, Residual,
    SeedInstance, SeedModule,
};
use crate::torch::Backend;
use crate::torch::fixtures::{on_device, test_backend, test_device};

/// δ is the function of the input.
struct Formula {
    delta: fn(&Tensor) -> Tensor,
    params: ParamSet,
}

impl SeedModule for Formula {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        Ok(Some((self.delta)(x)))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }
}

fn seed(delta: fn(&Tensor) -> Tensor) -> SeedInstance {
    let params = ParamSet::new(test_backend());
    SeedInstance::new(Box::new(Formula { delta, params }), None)
}

fn vector<const N: usize>(values: [f32; N]) -> Tensor {
    on_device(Tensor::from_slice(&values))
}

fn values(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor).unwrap()
}

#[test]
fn operators_blend_by_their_formulas() {
    let h = vector([1.0, 2.0]);
    let delta = || vector([0.5, -1.0]);
    let half = vector([0.5]);
    for (algorithm, gate, expected) in [
        (AlphaAlgorithm::Add, None, [1.2, 1.6]),
        (AlphaAlgorithm::Multiply, None, [1.184_846_9, 1.390_724_7]),
        (AlphaAlgorithm::Gate, Some(&half), [1.1, 1.8]),
    ] {
        for amplitude in [
            Amplitude::Number(0.4),
            Amplitude::OnDevice(&on_device(Tensor::from(0.4f32))),
        ] {
            let residual = Residual::new(delta(), amplitude, algorithm, gate).unwrap();
            let blended = values(&residual.apply(&h).unwrap()).into_iter().map(f64::from);
            assert_close(&blended.collect::<Vec<_>>(), &expected, 1e-6);
        }
    }
    let gateless = Residual::new(delta(), Amplitude::Number(0.4), AlphaAlgorithm::Gate, None);
    assert!(matches!(gateless, Err(BlendError::NoGate)));
}

#[test]
fn amplitude_zero_leaves_the_features_for_any_values_of_the_seed() {
    let broken = seed(|_| vector([f32::INFINITY, f32::NAN]));
    let h = vector([1.0, 2.0]);

    for algorithm in [AlphaAlgorithm::Add, AlphaAlgorithm::Multiply, AlphaAlgorithm::Gate] {
        let y = broken.blend(&h, 0.0, algorithm, false, Mode::Eval).unwrap();
        assert_eq!(values(&y), [1.0, 2.0]);
    }
}

/// The direct path keeps its full gradient at any amplitude.
#[test]
fn isolation_cuts_only_the_path_through_the_seed() {
    let halver = seed(|x| x * 0.5);
    let run = |alpha: f64, isolated: bool| {
        let w = vector([2.0]).set_requires_grad(true);
        let h = &w * 3.0;
        let y = halver
            .blend(&h, alpha, AlphaAlgorithm::Add, isolated, Mode::Train)
            .unwrap();
        y.backward();
        (values(&y)[0], values(&w.grad())[0])
    };

    assert_eq!(run(1.0, true), (9.0, 3.0));
    let (y, gradient) = run(0.3, true);
    assert!((y - 6.9_f32).abs() < 1e-6 && gradient == 3.0);
    assert_eq!(run(1.0, false), (9.0, 4.5));
}

#[test]
fn a_module_that_changes_the_shape_is_named() {
    let stretcher = seed(|x| Tensor::cat(&[x, x], 0));
    let h = vector([1.0, 2.0]);

    let result = stretcher.blend(&h, 1.0, AlphaAlgorithm::Add, true, Mode::Train);
    assert!(matches!(result, Err(BlendError::ShapeMismatch { .. })));
}

#[test]
fn a_gate_starts_at_half_and_learns_from_the_first_blended_step() {
    let registry = BlueprintRegistry::default();
    let mut rng = RunRng::new(5, Domain::SeedInit, &[0]);
    let light = registry.names().position(|name| name == "conv_light").unwrap();
    let backend = test_backend();
    let seed = SeedInstance::germinate(&registry, light, 8, AlphaAlgorithm::Gate, &mut rng, backend).unwrap();
    perturb(seed.module.params().trainable());
    let h = Tensor::randn([4, 8, 6, 6], (Kind::Float, test_device()));
    let gate: &GateNetwork = seed.gate.as_ref().unwrap();
    assert_eq!(values(&gate.forward(&h).unwrap().view([-1])), [0.5; 4]);

    let y = seed.blend(&h, 0.2, AlphaAlgorithm::Gate, true, Mode::Train).unwrap();
    y.square().sum(Kind::Float).backward();
    let gradient = |name: &str| {
        let param = seed.params().find(|param| param.name == name).unwrap();
        largest(&param.tensor.grad())
    };
    assert!(gradient("gate.output.weight") > 0.0 && gradient("gate.output.bias") > 0.0);
}

#[test]
fn gate_parameters_follow_the_modules_and_leave_with_the_gate() {
    let registry = BlueprintRegistry::default();
    let mut rng = RunRng::new(5, Domain::SeedInit, &[0]);
    let backend = test_backend();
    let mut seed = SeedInstance::germinate(&registry, 3, 8, AlphaAlgorithm::Add, &mut rng, backend).unwrap();
    let names = |seed: &SeedInstance| seed.params().map(|param| param.name.clone()).collect::<Vec<_>>();
    let storage = |seed: &SeedInstance| seed.params().map(|param| param.tensor.data_ptr()).collect::<Vec<_>>();
    let before = storage(&seed);
    assert_eq!(names(&seed), ["strength", "norm.weight", "norm.bias"]);

    seed.gate = Some(GateNetwork::new(Topology::Image, 8, &mut rng, backend).unwrap());
    assert_eq!(names(&seed).len(), 7);
    assert_eq!(names(&seed)[..3], ["strength", "norm.weight", "norm.bias"]);

    seed.gate = None;
    assert_eq!(storage(&seed), before);
}

#[test]
fn unknown_blueprints_list_what_there_is_by_size() {
    let registry = BlueprintRegistry::default();

    let message = registry.get(8).err().unwrap().to_string();
    assert_eq!(
        message,
        "there is no blueprint with index 8; available are `noop`, `norm`, `attention`, `conv_small`, `bottleneck`, \
         `depthwise`, `conv_light`, `conv_heavy`"
    );
    assert!(registry.get(13).is_err());
    assert_eq!(registry.len(), 13);
}

/// Scenarios are checked against a catalog that knows no tensors.
#[test]
fn the_catalog_of_scenarios_lists_the_registered_blueprints() {
    let registry = BlueprintRegistry::default();
    let built = registry
        .iter()
        .map(|(_, blueprint)| (blueprint.id(), blueprint.param_count(8) > 0));

    let listed = built_in_names().blueprints;
    let is_offered = |entry: &&BlueprintEntry| entry.index.is_some() && entry.grows_in.contains(&Topology::Image);
    let listed = listed.iter().filter(is_offered);
    let listed: Vec<(&str, bool)> = listed.map(|entry| (entry.name.as_str(), entry.selectable)).collect();
    assert_eq!(listed, built.collect::<Vec<_>>());
}

/// There may be any number of it.
struct Idle(&'static str);

impl Blueprint for Idle {
    fn id(&self) -> &'static str {
        self.0
    }

    fn summary(&self) -> &'static str {
        "adds nothing"
    }

    fn param_count(&self, _: i64) -> u64 {
        0
    }

    fn build(&self, _: i64, _: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        Ok(Box::new(Formula {
            delta: Tensor::zeros_like,
            params: ParamSet::new(backend),
        }))
    }
}

#[test]
fn plugins_take_the_free_indices_each_id_once_and_no_more_than_a_mask_holds() {
    let mut registry = BlueprintRegistry::default();
    for index in FIRST_PLUGIN_INDEX..64 {
        let id: &'static str = format!("idle{index}").leak();
        registry.register(Arc::new(Idle(id)));
        assert_eq!(registry.name_of(index), id);
    }
    assert_eq!(registry.refused(), None);
    let refusal = |mut registry: BlueprintRegistry, id| {
        registry.register(Arc::new(Idle(id)));
        let refused = registry.refused().map(ToString::to_string);
        (refused.unwrap_or_default(), registry.len())
    };
    let surplus = "the blueprint \"surplus\" cannot be registered: an action mask holds 64 blueprints; register fewer";
    assert_eq!(refusal(registry, "surplus"), (surplus.to_owned(), 64));
    let taken = "the blueprint name `norm` is taken; register yours under another";
    assert_eq!(refusal(BlueprintRegistry::default(), "norm"), (taken.to_owned(), 13));
}
