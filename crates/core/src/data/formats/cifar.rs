//! CIFAR-10 and CIFAR-100 in their binary versions (Krizhevsky 2009): the published archive, or the folder in it.
//!
//! A record is one label (CIFAR-100: coarse, then fine) and 32×32 pixels as a red, a green and a blue plane, each row by
//! row. The files of the training part are joined by their numbers, for any order in the archive.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::Found;
use crate::data::DataError;
use crate::data::locate::{open, open_unpacked, up_to};
use crate::data::part::{Images, Part, Pool};
use crate::data::records::{RecordFile, Records, Source};
use crate::data::shape::Shape;
use crate::files;

/// The address at which both sets are published.
pub const ORIGIN: &str = "https://www.cs.toronto.edu/~kriz/cifar.html";

const SHAPE: Shape = Shape {
    channels: 3,
    height: 32,
    width: 32,
};
const PLANE: usize = 32 * 32;
const PIXELS: usize = 3 * PLANE;
/// The beginning of a Python pickle.
pub const PICKLE: [u8; 1] = [0x80];
/// Names of classes are a few bytes each. A longer file isn't a list of them.
const LONGEST_NAMES: u64 = 1 << 16;

/// One of the two sets: how its records look and what its files are called.
#[derive(Debug)]
pub struct Cifar {
    pub name: &'static str,
    /// Classes that each label of a record distinguishes. The last label is the one that is learnt.
    labels: &'static [i64],
    /// Files of the training part, in order.
    train: &'static [&'static str],
    test: &'static str,
    class_names: &'static str,
    /// The published archive.
    archive: &'static str,
    /// The folder in the archive.
    folder: &'static str,
    /// Images of the published training and test parts.
    published: [usize; 2],
}

/// 10 classes.
pub static CIFAR10: Cifar = Cifar {
    name: "cifar10",
    labels: &[10],
    train: &[
        "data_batch_1.bin",
        "data_batch_2.bin",
        "data_batch_3.bin",
        "data_batch_4.bin",
        "data_batch_5.bin",
    ],
    test: "test_batch.bin",
    class_names: "batches.meta.txt",
    archive: "cifar-10-binary.tar.gz",
    folder: "cifar-10-batches-bin",
    published: [50_000, 10_000],
};

/// 100 fine classes in 20 coarse ones.
pub static CIFAR100: Cifar = Cifar {
    name: "cifar100",
    labels: &[20, 100],
    train: &["train.bin"],
    test: "test.bin",
    class_names: "fine_label_names.txt",
    archive: "cifar-100-binary.tar.gz",
    folder: "cifar-100-binary",
    published: [50_000, 10_000],
};

impl Cifar {
    /// Bytes of a record.
    fn record(&self) -> usize {
        self.labels.len() + PIXELS
    }

    /// Returns whether a file of this name and size belongs to the set.
    pub fn owns(&self, file: &str, bytes: u64) -> bool {
        let is_member = self.members().any(|member| member == file) && self.is_whole(bytes);
        is_member || self.pickles().any(|pickle| pickle == file)
    }

    /// Returns whether that many bytes are records: others call their files train.bin and test.bin as well.
    fn is_whole(&self, bytes: u64) -> bool {
        bytes > 0 && bytes.is_multiple_of(self.record() as u64)
    }

    /// Returns whether the folder is the set's, or has it in it.
    pub fn is_in(&self, folder: &Path) -> bool {
        let is_member = |name: &str| match open_unpacked(&folder.join(name)) {
            Ok(Some(file)) => file.metadata().is_ok_and(|metadata| self.is_whole(metadata.len())),
            // Only the name of a packed file is known.
            Ok(None) => true,
            Err(_) => false,
        };
        let is_pickle = |name: &str| {
            let mut start = PICKLE.map(|_| 0);
            let read = files::open(&folder.join(name)).and_then(|mut file| file.read_exact(&mut start));
            read.is_ok() && start == PICKLE
        };
        folder.join(self.folder).is_dir() || self.members().any(is_member) || self.pickles().any(is_pickle)
    }

    fn members(&self) -> impl Iterator<Item = &'static str> {
        self.train.iter().copied().chain([self.test])
    }

    /// Files of the version that holds Python pickles.
    pub fn pickles(&self) -> impl Iterator<Item = &'static str> {
        self.members().filter_map(|member| member.strip_suffix(".bin"))
    }

    /// The reason why that version is not read.
    pub fn refusal(&self, path: &Path) -> DataError {
        let (path, format, archive) = (path.display(), self.name, self.archive);
        let pickles = "in its version with Python pickles, which can run any program and are not read";
        DataError::new(
            format!("{path} is the {format} set {pickles}"),
            format!("fetch the binary version, {archive}, from {ORIGIN}"),
        )
    }

    /// Reads an archive, packed or not, or a folder.
    ///
    /// # Errors
    /// Files that are missing, there twice, damaged, cut short or Python pickles, or labels out of range.
    pub fn read(&self, path: &Path) -> Result<Found, DataError> {
        let mut gathered = Gathered {
            set: self,
            batches: BTreeMap::new(),
            class_names: Vec::new(),
            has_pickles: false,
        };
        if path.is_dir() {
            let inner = path.join(self.folder);
            gathered.take_folder(if inner.is_dir() { &inner } else { path })?;
        } else {
            gathered.take_archive(path)?;
        }
        gathered.finish(path)
    }

    /// Reads records to the end of `input`; returns their labels and shows `look` the planes of each.
    ///
    /// # Errors
    /// The place at which the file is cut short or cannot be read, or has a label out of range.
    pub fn read_records(
        &self,
        file: &str,
        input: &mut impl Read,
        mut look: impl FnMut(&[u8]),
    ) -> Result<Vec<i64>, DataError> {
        let mut targets = Vec::new();
        let size = self.record();
        for index in 0.. {
            let start = (index * size) as u64;
            let record = up_to(file, input, size as u64, start)?;
            if record.is_empty() {
                break;
            }
            if record.len() < size {
                return Err(DataError::truncated(file, index, start, [record.len(), size]));
            }
            let (labels, pixels) = record.split_at(self.labels.len());
            for (position, (&label, &classes)) in labels.iter().zip(self.labels).enumerate() {
                if i64::from(label) >= classes {
                    let byte = Some(start + position as u64);
                    return Err(DataError::label(file, index, byte, label.into(), classes));
                }
            }
            targets.extend(labels.last().copied().map(i64::from));
            look(pixels);
        }
        Ok(targets)
    }

    /// Differences from the set as it was published.
    fn notes(&self, train: &Part, test: &Part) -> Vec<String> {
        let parts = [("training", train), ("test", test)].into_iter().zip(self.published);
        let unusual = parts.filter(|((_, part), published)| part.len() != *published);
        unusual
            .map(|((name, part), published)| {
                let (format, found) = (self.name, part.len());
                format!("{format}: {found} {name} images; the published set has {published}")
            })
            .collect()
    }
}

/// The labels of a file, and its images.
type Batch = (Vec<i64>, RecordFile);

/// Files of a set found so far.
struct Gathered<'a> {
    set: &'a Cifar,
    batches: BTreeMap<&'static str, Batch>,
    class_names: Vec<String>,
    has_pickles: bool,
}

impl Gathered<'_> {
    fn take_folder(&mut self, folder: &Path) -> Result<(), DataError> {
        self.has_pickles = self.set.pickles().any(|pickle| folder.join(pickle).is_file());
        for name in self.set.members().chain([self.set.class_names]) {
            let path = folder.join(name);
            if path.is_file() {
                let size = fs::metadata(&path).map_or(0, |metadata| metadata.len());
                let mut input = open(&path)?;
                let unread = open_unpacked(&path)?;
                self.take(&input.name, name, size, &mut input.bytes, unread)?;
            }
        }
        Ok(())
    }

    fn take_archive(&mut self, path: &Path) -> Result<(), DataError> {
        let input = open(path)?;
        let count = input.bytes.count();
        let damaged = |cause| DataError::unreadable(&input.name, count.get(), cause);
        let mut archive = tar::Archive::new(input.bytes);
        // Raw: names in separate entries may be of any length, and none here needs one.
        for entry in archive.entries().map_err(damaged)?.raw(true) {
            let mut entry = entry.map_err(damaged)?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let base = name.rsplit('/').next().unwrap_or_default();
            let (place, size) = (format!("{}: {base}", path.display()), entry.size());
            self.take(&place, base, size, &mut entry, None)?;
        }
        // The archive ends before the checksum does that tells damage.
        io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(damaged)?;
        Ok(())
    }

    /// Takes a file if it belongs to the set; `size` is what its folder or archive says it has, `unread` where its images
    /// can stay.
    fn take(
        &mut self,
        place: &str,
        name: &str,
        size: u64,
        input: &mut impl Read,
        unread: Option<File>,
    ) -> Result<(), DataError> {
        self.has_pickles |= self.set.pickles().any(|pickle| pickle == name);
        if name == self.set.class_names {
            return self.take_class_names(place, input);
        }
        let Some(member) = self.set.members().find(|member| *member == name) else {
            return Ok(());
        };
        let mut images = Vec::new();
        let labels = self.set.read_records(place, input, |planes| {
            if unread.is_none() {
                images.extend_from_slice(planes);
            }
        })?;
        // An archive may end between two records.
        let found = (labels.len() * self.set.record()) as u64;
        if found < size {
            return Err(DataError::length(place, size.into(), found));
        }
        let (source, first, each) = match unread {
            Some(file) => (Source::File(file), self.set.labels.len(), self.set.record()),
            None => (Source::Memory(images), 0, PIXELS),
        };
        let records = RecordFile {
            name: place.into(),
            source,
            first: first as u64,
            each: each as u64,
            count: labels.len(),
        };
        match self.batches.insert(member, (labels, records)) {
            None => Ok(()),
            Some(_) => Err(DataError::new(format!("{place} is there twice"), "keep one")),
        }
    }

    fn take_class_names(&mut self, place: &str, input: &mut impl Read) -> Result<(), DataError> {
        let text = up_to(place, input, LONGEST_NAMES, 0)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let names = text.lines().map(str::trim).filter(|line| !line.is_empty());
        self.class_names = names.map(String::from).collect();
        Ok(())
    }

    fn finish(mut self, path: &Path) -> Result<Found, DataError> {
        let set = self.set;
        let mut taken = |member: &'static str| match self.batches.remove(member) {
            Some(batch) => Ok(batch),
            None if self.has_pickles => Err(set.refusal(path)),
            None => Err(DataError::missing_member(path, member, set.name, ORIGIN)),
        };
        let batches = set.train.iter().map(|member| taken(member));
        let train = joined(batches.collect::<Result<_, _>>()?);
        let test = joined(vec![taken(set.test)?]);
        if train.is_empty() || test.is_empty() {
            return Err(DataError::no_images(path.display()));
        }
        let mut notes = set.notes(&train, &test);
        let classes = set.labels.last().map_or(0, |&classes| classes as usize);
        if self.class_names.len() != classes && !self.class_names.is_empty() {
            let (file, found) = (set.class_names, self.class_names.len());
            notes.push(format!("{}: {file} names {found} classes, not {classes}", set.name));
            self.class_names.clear();
        }
        let pool = |part| Pool::of(SHAPE, part);
        Ok(Found {
            classes: Some(classes),
            class_names: self.class_names,
            test: Some(pool(test)),
            notes,
            ..Found::of(set.name, 255.0, pool(train))
        })
    }
}

/// One after the other.
fn joined(batches: Vec<Batch>) -> Part {
    let (labels, files): (Vec<Vec<i64>>, Vec<RecordFile>) = batches.into_iter().unzip();
    Part {
        images: Images::Files(Records::new(files, SHAPE, true)),
        labels: labels.concat(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
