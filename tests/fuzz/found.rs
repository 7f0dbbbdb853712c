//! Files in a folder of their own, one of which is damaged at a time.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use proptest::sample::Index;
use tempfile::TempDir;

use super::damage::{Damage, damaged, damages};

/// A file as it should be.
pub struct Whole {
    /// Inside the folder.
    pub name: String,
    /// Before they are packed.
    pub bytes: Vec<u8>,
    pub is_packed: bool,
}

impl Whole {
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        let (name, is_packed) = (name.into(), false);
        Self { name, bytes, is_packed }
    }

    pub fn packed(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        let (name, is_packed) = (name.into(), true);
        Self { name, bytes, is_packed }
    }

    fn content(&self) -> Vec<u8> {
        self.content_of(&self.bytes)
    }

    fn content_of(&self, bytes: &[u8]) -> Vec<u8> {
        if self.is_packed { gzip(bytes) } else { bytes.to_vec() }
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

/// The file that is damaged, and how: a packed file before or after its packing.
#[derive(Clone, Debug)]
pub struct Harm {
    which: Index,
    damages: Vec<Damage>,
    is_inside: bool,
}

pub fn harms() -> impl Strategy<Value = Harm> {
    (any::<Index>(), damages(), any::<bool>()).prop_map(|(which, damages, is_inside)| Harm {
        which,
        damages,
        is_inside,
    })
}

/// A folder with files.
pub struct Folder {
    place: TempDir,
    files: Vec<Whole>,
}

/// A damaged file; whole again when this is dropped.
pub struct Damaged<'a> {
    pub path: PathBuf,
    /// The size of all files, without their packing.
    pub bytes: usize,
    whole: &'a Whole,
}

impl Folder {
    pub fn of(files: Vec<Whole>) -> Self {
        let place = tempfile::tempdir().expect("a temporary folder");
        for file in &files {
            let path = place.path().join(&file.name);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
            fs::write(path, file.content()).expect("it is written");
        }
        Self { place, files }
    }

    /// All files below a folder that is there already.
    pub fn taken(place: TempDir, root: &Path) -> Self {
        let mut files = Vec::new();
        take_files(root, place.path(), &mut files);
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Self { place, files }
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    pub fn damage(&self, harm: &Harm) -> Damaged<'_> {
        let whole = &self.files[harm.which.index(self.files.len())];
        let content = match harm.is_inside {
            true => whole.content_of(&damaged(&whole.bytes, &harm.damages)),
            false => damaged(&whole.content(), &harm.damages),
        };
        let path = self.path().join(&whole.name);
        fs::write(&path, &content).expect("it is written");
        Damaged {
            path,
            bytes: content.len() + self.files.iter().map(|file| file.bytes.len()).sum::<usize>(),
            whole,
        }
    }
}

fn take_files(folder: &Path, place: &Path, files: &mut Vec<Whole>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let kind = entry.file_type().expect("it is there");
        if kind.is_dir() {
            take_files(&path, place, files);
        } else if kind.is_file() {
            let name = path.strip_prefix(place).expect("it is in there").to_string_lossy();
            files.push(Whole::new(name, fs::read(&path).expect("it is read")));
        }
    }
}

impl Drop for Damaged<'_> {
    fn drop(&mut self) {
        fs::write(&self.path, self.whole.content()).expect("it is repaired");
    }
}
