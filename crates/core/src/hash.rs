//! SHA-256, which every language has, for what others write or read as well.

use sha2::{Digest, Sha256};

/// SHA-256 of some bytes, in lower-case hexadecimal.
pub fn sha256(content: &[u8]) -> String {
    sha256_of([content])
}

/// The same of bytes that follow each other.
pub fn sha256_of<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> String {
    let mut hasher = Sha256::new();
    parts.into_iter().for_each(|part| hasher.update(part));
    let digest = hasher.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
