use tch::{TchError, Tensor};

use super::*;
use crate::nn::{Init, Mode, ParamSet};
use crate::random::RunRng;
use crate::seed::SeedModule;
use crate::torch::TorchError;

/// Multiplies by a weight that starts at `birth`, and may lie about its parameters or crop its input.
#[derive(Clone, Copy)]
struct Scale {
    birth: f32,
    declared: u64,
    crops: bool,
}

const SOUND: Scale = Scale {
    birth: 0.0,
    declared: 1,
    crops: false,
};

struct ScaleModule {
    weight: Tensor,
    params: ParamSet,
    crops: bool,
}

impl SeedModule for ScaleModule {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        let rows = if self.crops { 1 } else { x.size()[2] };
        Ok(Some(x.f_narrow(2, 0, rows)?.f_mul(&self.weight)?))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn macs(&self, positions: u64) -> u64 {
        positions
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
        self.declared
    }

    fn build(&self, dim: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let mut params = ParamSet::new(backend);
        // A convolution's weight that fits widths divisible by four.
        if dim % 4 != 0 {
            return Err(TorchError::Other("the width is no multiple of 4".into()).into());
        }
        let weight = params.add("weight", &[1], Init::Constant(self.birth))?;
        params.initialise(rng)?;
        Ok(Box::new(ScaleModule {
            weight,
            params,
            crops: self.crops,
        }))
    }
}

fn checked(blueprint: Scale, dim: i64) -> Result<(), String> {
    let mut registry = BlueprintRegistry::default();
    registry.register(Arc::new(blueprint));
    registry
        .check(&[dim], Backend::CPU, &HostSyncCounter::default())
        .map_err(|error| error.to_string())
}

#[test]
fn a_sound_seed_module_may_grow() {
    assert_eq!(checked(SOUND, 8), Ok(()));
}

#[test]
fn a_seed_module_that_breaks_the_contract_is_named_with_the_width_and_the_breach() {
    let unfit = |blueprint, dim, why: &str| {
        assert_eq!(
            checked(blueprint, dim),
            Err(format!(
                "blueprint `scale` cannot grow in a slot of {dim} channels: {why}"
            ))
        );
    };

    unfit(
        Scale { birth: 0.5, ..SOUND },
        8,
        "it changes the network at birth; its residual must start at exactly 0",
    );
    unfit(Scale { declared: 9, ..SOUND }, 8, "it declares 9 parameters and has 1");
    unfit(
        Scale { crops: true, ..SOUND },
        8,
        "it turns Float [1, 8, 8, 8] into Float [1, 8, 1, 8]; a seed must keep its input's shape and type",
    );
    unfit(SOUND, 6, "the width is no multiple of 4");
}

/// A second factor that no gradient ever reaches, or a module that writes to its input.
#[derive(Clone, Copy)]
enum Flaw {
    Dead,
    Writes,
}

struct FlawedModule {
    weights: [Tensor; 2],
    params: ParamSet,
    flaw: Flaw,
}

impl SeedModule for FlawedModule {
    fn delta(&self, x: &Tensor, _: Mode) -> Result<Option<Tensor>, TchError> {
        let [weight, dead] = &self.weights;
        Ok(Some(match self.flaw {
            Flaw::Dead => x.f_mul(weight)?.f_add(&dead.f_relu()?.f_mul(dead)?)?,
            Flaw::Writes => x.shallow_clone().f_relu_()?.f_mul(weight)?,
        }))
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn macs(&self, positions: u64) -> u64 {
        positions
    }
}

impl Blueprint for Flaw {
    fn id(&self) -> &'static str {
        "flawed"
    }

    fn summary(&self) -> &'static str {
        "breaks the contract"
    }

    fn param_count(&self, _: i64) -> u64 {
        2
    }

    fn build(&self, _: i64, rng: &mut RunRng, backend: Backend) -> Result<Box<dyn SeedModule>, BlueprintError> {
        let mut params = ParamSet::new(backend);
        let weights = [
            params.add("weight", &[1], Init::Constant(0.0))?,
            params.add("dead", &[1], Init::Constant(0.0))?,
        ];
        params.initialise(rng)?;
        Ok(Box::new(FlawedModule {
            weights,
            params,
            flaw: *self,
        }))
    }
}

#[test]
fn a_seed_that_is_dead_at_birth_or_spoils_its_input_is_refused() {
    for (flaw, why) in [
        (
            Flaw::Dead,
            "no gradient reaches `dead` within 3 steps of SGD; a seed must be alive at birth",
        ),
        (Flaw::Writes, "it writes to its input; a seed must leave that as it is"),
    ] {
        let mut registry = BlueprintRegistry::default();
        registry.register(Arc::new(flaw));

        let checked = registry.check(&[8], Backend::CPU, &HostSyncCounter::default());

        let expected = format!("blueprint `flawed` cannot grow in a slot of 8 channels: {why}");
        assert_eq!(checked.map_err(|error| error.to_string()), Err(expected));
    }
}
