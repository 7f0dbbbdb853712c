//! Parameters of a network in a fixed order, allocated once and from then on only written in place.
//!
//! Optimizers, snapshots and streams hold handles to these tensors for the whole run, so a fresh episode draws new
//! values into the old storage. Convolution weights are channels-last.

use tch::{Device, Kind, TchError, Tensor};

use crate::random::Draw;
use crate::torch::{Backend, FiniteGuard, NoGrad};

/// The initial values of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// U(−1/√fan_in, +1/√fan_in).
    FanIn(i64),
    /// N(0, deviation²).
    Normal(f64),
    /// A matrix with orthogonal rows (columns, if there are more rows than columns), times this gain.
    Orthogonal(f64),
    /// The same value everywhere.
    Constant(f32),
}

impl Init {
    /// Orthogonal weights of a hidden layer: keeps the scale of activations through a ReLU.
    pub const HIDDEN: Self = Self::Orthogonal(std::f64::consts::SQRT_2);
}

/// A tensor with its name and its initial law.
#[derive(Debug)]
pub struct Param {
    /// Name, unique in its set.
    pub name: String,
    /// The live tensor: any shape, f32, on the set's device.
    pub tensor: Tensor,
    init: Init,
    /// Position among the parameters of its set, frozen or not: values are drawn in this order.
    position: usize,
}

/// Trainable tensors, frozen ones and buffers, each list in construction order; tied tensors appear once.
#[derive(Debug)]
pub struct ParamSet {
    trainable: Vec<Param>,
    frozen: Vec<Param>,
    buffers: Vec<Param>,
    /// Guard of all buffers; `None` without any.
    guard: Option<FiniteGuard>,
    backend: Backend,
}

impl ParamSet {
    /// An empty set whose tensors will be on `backend`'s device.
    pub fn new(backend: Backend) -> Self {
        Self {
            trainable: Vec::new(),
            frozen: Vec::new(),
            buffers: Vec::new(),
            guard: None,
            backend,
        }
    }

    /// Adds all tensors of another set, under names that begin with `name` and a dot.
    ///
    /// # Errors
    /// libtorch's, when memory runs out.
    pub fn adopt(&mut self, name: &str, other: &Self) -> Result<(), TchError> {
        for param in &other.trainable {
            self.push(format!("{name}.{}", param.name), &param.tensor, param.init);
        }
        let named = |param: &Param| Param {
            name: format!("{name}.{}", param.name),
            tensor: param.tensor.shallow_clone(),
            ..*param
        };
        self.buffers.extend(other.buffers.iter().map(named));
        self.watch_buffers()
    }

    fn push(&mut self, name: String, tensor: &Tensor, init: Init) {
        self.trainable.push(Param {
            name,
            tensor: tensor.shallow_clone(),
            init,
            position: self.trainable.len() + self.frozen.len(),
        });
    }

    /// Freezes the tensors that were added after the first `kept` trainable ones and whose name `is_frozen`: they take no
    /// gradient, and training does not optimise them.
    ///
    /// # Errors
    /// libtorch's.
    pub fn freeze_after(&mut self, kept: usize, is_frozen: impl Fn(&str) -> bool) -> Result<(), TchError> {
        let (frozen, trained): (Vec<_>, Vec<_>) =
            self.trainable.drain(kept..).partition(|param| is_frozen(&param.name));
        self.trainable.extend(trained);
        for param in frozen {
            let _ = param.tensor.f_set_requires_grad(false)?;
            self.frozen.push(param);
        }
        Ok(())
    }

    /// Adds a trainable tensor of any shape, f32, on the set's device, and returns a second handle to it. Its values are undefined until
    /// [`initialise`](Self::initialise).
    pub fn add(&mut self, name: impl Into<String>, shape: &[i64], init: Init) -> Result<Tensor, TchError> {
        let tensor = allocate(shape, self.backend.device)?.f_set_requires_grad(true)?;
        self.push(name.into(), &tensor, init);
        Ok(tensor)
    }

    /// Adds a tensor of any shape, f32, on the set's device, that training does not optimise, and returns a second handle to it.
    pub fn add_buffer(&mut self, name: impl Into<String>, shape: &[i64], value: f32) -> Result<Tensor, TchError> {
        let tensor = allocate(shape, self.backend.device)?;
        self.buffers.push(Param {
            name: name.into(),
            tensor: tensor.shallow_clone(),
            init: Init::Constant(value),
            position: usize::MAX,
        });
        self.watch_buffers()?;
        Ok(tensor)
    }

    fn watch_buffers(&mut self) -> Result<(), TchError> {
        let buffers: Vec<Tensor> = self
            .buffers
            .iter()
            .map(|buffer| buffer.tensor.shallow_clone())
            .collect();
        if !buffers.is_empty() {
            self.guard = Some(FiniteGuard::new(buffers)?);
        }
        Ok(())
    }

    /// Guard that restores the buffers where a batch has spoilt them; `None` without buffers.
    pub fn buffer_guard(&self) -> Option<&FiniteGuard> {
        self.guard.as_ref()
    }

    /// Draws all values again, in place: on the CPU, in order, row-major f32, for parameters on any device. Frozen tensors
    /// make no difference.
    pub fn initialise(&self, rng: &mut impl Draw) -> Result<(), TchError> {
        let _no_grad = NoGrad::new();
        let mut params: Vec<&Param> = self.all().collect();
        params.sort_by_key(|param| param.position);
        for param in params {
            let mut tensor = param.tensor.shallow_clone();
            let size = tensor.size();
            let values = match param.init {
                Init::Constant(value) => {
                    let _ = tensor.f_fill_(f64::from(value))?;
                    continue;
                }
                Init::FanIn(fan_in) => drawn(&size, |values| rng.fill_uniform(values, 1.0 / (fan_in as f64).sqrt()))?,
                Init::Normal(deviation) => drawn(&size, |values| rng.fill_normal(values, deviation))?,
                Init::Orthogonal(gain) => orthogonal(&size, gain, rng)?,
            };
            tensor.f_copy_(&values)?;
        }
        Ok(())
    }

    /// The tensors that training optimises.
    pub fn trainable(&self) -> &[Param] {
        &self.trainable
    }

    /// Trainable tensors, then frozen ones, then buffers: everything that a snapshot must hold.
    pub fn all(&self) -> impl Iterator<Item = &Param> {
        self.trainable.iter().chain(&self.frozen).chain(&self.buffers)
    }

    /// The buffers: running statistics.
    pub fn buffers(&self) -> impl Iterator<Item = &Param> {
        self.buffers.iter()
    }

    /// Number of values of all parameters, frozen or not.
    pub fn count(&self) -> u64 {
        let params = self.trainable.iter().chain(&self.frozen);
        params.map(|param| param.tensor.numel() as u64).sum()
    }

    /// The device of the tensors.
    pub fn device(&self) -> Device {
        self.backend.device
    }

    /// The device of the tensors and the kernels that compute on them.
    pub fn backend(&self) -> Backend {
        self.backend
    }
}

/// The values that `fill` writes, row-major.
fn drawn(size: &[i64], fill: impl FnOnce(&mut [f32])) -> Result<Tensor, TchError> {
    let count = size.iter().product::<i64>() as usize;
    let mut values = Vec::new();
    if values.try_reserve_exact(count).is_err() {
        // The message is in libtorch's words.
        return Err(TchError::Torch(format!(
            "can't allocate memory: {count} values are drawn"
        )));
    }
    values.resize(count, 0.0);
    fill(&mut values);
    Tensor::f_from_slice(&values)?.f_view(size)
}

fn orthogonal(size: &[i64], gain: f64, rng: &mut impl Draw) -> Result<Tensor, TchError> {
    let [rows, columns] = *size else {
        return Err(TchError::Shape(format!(
            "only a matrix can be orthogonal, not {size:?}"
        )));
    };
    let (long, short) = (rows.max(columns), rows.min(columns));
    let drawn = drawn(&[long, short], |values| rng.fill_normal(values, 1.0))?.f_to_kind(Kind::Double)?;
    let (q, r) = Tensor::f_linalg_qr(&drawn, "reduced")?;
    // The signs make the matrix uniform among the orthogonal ones.
    let q = q.f_mul(&r.f_diagonal(0, 0, 1)?.f_sign()?)?.f_mul_scalar(gain)?;
    if rows < columns { q.f_transpose(0, 1) } else { Ok(q) }
}

/// Uninitialised f32 storage; four dimensions are laid out channels-last.
fn allocate(shape: &[i64], device: Device) -> Result<Tensor, TchError> {
    match *shape {
        [n, c, h, w] => Tensor::f_empty_strided([n, c, h, w], [h * w * c, 1, w * c, c], (Kind::Float, device)),
        _ => Tensor::f_empty(shape, (Kind::Float, device)),
    }
}
