use tch::{TchError, Tensor};

use super::*;
use crate::nn::{Init, Mode, ParamSet};
use crate::random::RunRng;
use crate::seed::SeedModule;
use crate::torch::TorchError;
use crate::torch::fixtures::test_backend;

/// A blueprint of modules that multiply by a weight, with at most one flaw.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Sound,
    Changes,
    Miscounts,
    Crops,
    /// A module whose second weight never gets a gradient.
    HalfDead,
    Writes,
}

struct ScaleModule {
    weights: Vec<Tensor>,
    params: ParamSet,
    blueprint: Scale,
}

impl SeedModule for ScaleModule {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        let scaled = |x: &Tensor| x.f_mul(&self.weights[0]);
        Ok(Some(match self.blueprint {
            Scale::Sound | Scale::Changes | Scale::Miscounts => scaled(x)?,
            Scale::Crops => scaled(&x.f_narrow(2, 0, 1)?)?,
            Scale::HalfDead => scaled(x)?.f_add(&self.weights[1].f_relu()?.f_mul(&self.weights[1])?)?,
            Scale::Writes => scaled(&x.shallow_clone().f_relu_()?)?,
        }))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }
}

impl Blueprint for Scale {
    fn id(&self) -> &'static str {
        "scale"
    }

    fn summary(&self) -> &'static str {
        "one factor"
    }

    fn param_count(&self, _: i64) -> u64 {
        match self {
            Self::Miscounts => 9,
            Self::HalfDead => 2,
            _ => 1,
        }
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        // A convolution's weight that fits widths divisible by four.
        if dim % 4 != 0 {
            return Err(TorchError::Other("the width isn't a multiple of 4".into()).into());
        }
        let mut params = ParamSet::new(backend);
        let first = if *self == Self::Changes { 0.5 } else { 0.0 };
        let mut weights = vec![params.add("weight", &[1], Init::Constant(first))?];
        if *self == Self::HalfDead {
            weights.push(params.add("dead", &[1], Init::Constant(0.0))?);
        }
        params.initialise(rng)?;
        let blueprint = *self;
        Ok(Box::new(ScaleModule {
            weights,
            params,
            blueprint,
        }))
    }
}

#[test]
fn a_seed_module_that_breaks_the_contract_is_named_with_the_width_and_the_breach() {
    let checked = |blueprint: Scale, dim: i64| {
        let mut registry = BlueprintRegistry::default();
        registry.register(Arc::new(blueprint));
        let checked = registry.check(&[dim], test_backend(), &HostSyncCounter::default());
        checked.map_err(|error| error.to_string())
    };
    let assert_unfit = |blueprint, dim, why: &str| {
        let error = format!("blueprint `scale` cannot grow in a slot of {dim} channels: {why}");
        assert_eq!(checked(blueprint, dim), Err(error));
    };

    assert_eq!(checked(Scale::Sound, 8), Ok(()));
    assert_unfit(Scale::Sound, 6, "the width isn't a multiple of 4");
    assert_unfit(Scale::Miscounts, 8, "it declares 9 parameters, but has 1");
    let why = "it changes the network at initialisation; its residual must start at exactly 0";
    assert_unfit(Scale::Changes, 8, why);
    let why = "it turns Float [1, 8, 8, 8] into Float [1, 8, 1, 8]; a seed must keep its input's shape and type";
    assert_unfit(Scale::Crops, 8, why);
    let why = "no gradient reaches `dead` within 3 steps of SGD; a seed must be alive at initialisation";
    assert_unfit(Scale::HalfDead, 8, why);
    let why = "it writes to its input; a seed must leave its input unchanged";
    assert_unfit(Scale::Writes, 8, why);
}

#[test]
fn blueprints_on_request_follow_those_of_plugins_which_cannot_take_their_names() {
    let mut registry = BlueprintRegistry::default();
    registry.register(Arc::new(Scale::Sound));
    let own = |registry: &BlueprintRegistry| -> Vec<(usize, &'static str)> {
        let all = registry.iter().map(|(index, blueprint)| (index, blueprint.id()));
        all.filter(|(index, _)| *index >= FIRST_PLUGIN_INDEX).collect()
    };
    assert_eq!(own(&registry), [(13, "scale")]);

    registry.request(|id| id.starts_with("conv_rank")).unwrap();

    assert_eq!(own(&registry), [(13, "scale"), (14, "conv_rank2"), (15, "conv_rank4")]);
    registry.register(registry.on_request[0].clone());
    let refused = registry.refused().map(ToString::to_string);
    let taken = "the blueprint name `conv_quarter` is taken; register yours under another";
    assert_eq!(refused.as_deref(), Some(taken));
}
