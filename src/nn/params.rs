//! Parameters of a network in a fixed order, allocated once and from then on only written in place.
//!
//! Optimizers, snapshots and streams hold handles to these tensors for the whole run, so a fresh episode draws new
//! values into the old storage. Convolution weights are channels-last.

use tch::{Device, Kind, TchError, Tensor};

use crate::random::Draw;
use crate::torch::{Backend, FiniteGuard, NoGrad};

/// How a tensor starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// U(−1/√fan_in, +1/√fan_in).
    FanIn(i64),
    /// N(0, deviation²).
    Normal(f64),
    /// The same value everywhere.
    Constant(f32),
}

/// A tensor with its name and its initial law.
#[derive(Debug)]
pub struct Param {
    /// Unique in its set.
    pub name: String,
    /// The live tensor.
    pub tensor: Tensor,
    init: Init,
}

impl Param {
    fn new(name: impl Into<String>, tensor: &Tensor, init: Init) -> Self {
        let (name, tensor) = (name.into(), tensor.shallow_clone());
        Self { name, tensor, init }
    }

    /// Takes over the values that `fill` writes, row-major.
    fn draw(&mut self, fill: impl FnOnce(&mut [f32])) -> Result<(), TchError> {
        let mut values = vec![0.0_f32; self.tensor.numel()];
        fill(&mut values);
        let drawn = Tensor::f_from_slice(&values)?.f_view(self.tensor.size().as_slice())?;
        self.tensor.f_copy_(&drawn)
    }
}

/// Trainable tensors and buffers, each list in construction order; tied tensors appear once.
#[derive(Debug)]
pub struct ParamSet {
    trainable: Vec<Param>,
    buffers: Vec<Param>,
    /// Of all buffers; `None` without any.
    guard: Option<FiniteGuard>,
    backend: Backend,
}

impl ParamSet {
    /// An empty set whose tensors will be on `backend`'s device.
    pub fn new(backend: Backend) -> Self {
        Self {
            trainable: Vec::new(),
            buffers: Vec::new(),
            guard: None,
            backend,
        }
    }

    /// Adds a trainable tensor and returns a second handle to it. Its values are undefined until
    /// [`initialise`](Self::initialise).
    pub fn add(&mut self, name: impl Into<String>, shape: &[i64], init: Init) -> Result<Tensor, TchError> {
        let tensor = allocate(shape, self.backend.device)?.f_set_requires_grad(true)?;
        self.trainable.push(Param::new(name, &tensor, init));
        Ok(tensor)
    }

    /// Adds a tensor that training does not optimise and returns a second handle to it.
    pub fn add_buffer(&mut self, name: impl Into<String>, shape: &[i64], value: f32) -> Result<Tensor, TchError> {
        let tensor = allocate(shape, self.backend.device)?;
        self.buffers.push(Param::new(name, &tensor, Init::Constant(value)));
        let buffers = self.buffers.iter().map(|buffer| buffer.tensor.shallow_clone());
        self.guard = Some(FiniteGuard::new(buffers.collect())?);
        Ok(tensor)
    }

    /// What puts the buffers back where a batch has spoilt them; `None` without buffers.
    pub fn buffer_guard(&self) -> Option<&FiniteGuard> {
        self.guard.as_ref()
    }

    /// Draws all values anew, in place: on the CPU, in order, row-major f32, whatever the device.
    pub fn initialise(&mut self, rng: &mut impl Draw) -> Result<(), TchError> {
        let _no_grad = NoGrad::new();
        for param in self.trainable.iter_mut().chain(&mut self.buffers) {
            match param.init {
                Init::Constant(value) => {
                    let _ = param.tensor.f_fill_(f64::from(value))?;
                }
                Init::FanIn(fan_in) => {
                    param.draw(|values| rng.fill_uniform(values, 1.0 / (fan_in as f64).sqrt()))?;
                }
                Init::Normal(deviation) => param.draw(|values| rng.fill_normal(values, deviation))?,
            }
        }
        Ok(())
    }

    /// What training optimises.
    pub fn trainable(&self) -> &[Param] {
        &self.trainable
    }

    /// Trainable tensors, then buffers: everything that a snapshot must hold.
    pub fn all(&self) -> impl Iterator<Item = &Param> {
        self.trainable.iter().chain(&self.buffers)
    }

    /// Number of trainable values.
    pub fn count(&self) -> u64 {
        self.trainable.iter().map(|param| param.tensor.numel() as u64).sum()
    }

    /// Where the tensors are.
    pub fn device(&self) -> Device {
        self.backend.device
    }

    /// Where the tensors are and what computes on them.
    pub fn backend(&self) -> Backend {
        self.backend
    }
}

/// Uninitialised f32 storage; four dimensions are laid out channels-last.
fn allocate(shape: &[i64], device: Device) -> Result<Tensor, TchError> {
    match *shape {
        [n, c, h, w] => Tensor::f_empty_strided([n, c, h, w], [h * w * c, 1, w * c, c], (Kind::Float, device)),
        _ => Tensor::f_empty(shape, (Kind::Float, device)),
    }
}
