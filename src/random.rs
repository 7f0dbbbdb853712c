//! Seed derivation: every random draw of the engine is `derive(seed, domain, indices)`.
