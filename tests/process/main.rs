//! State of the whole process: libtorch's settings, its random generator, the memory of freed tensors. In a program of their
//! own, because these tests would change the arithmetic of others.

mod coalition_randomness;
mod torch_settings;
