//! Data sets of images, in every format that is read.

use std::io::{Cursor, Write};
use std::path::Path;

use image::{ExtendedColorType, ImageFormat};
use proptest::collection::vec;
use proptest::prelude::*;
use simic_engine::internals::data::{DataRegistry, DataSet, Known, Part, load, survey};
use simic_engine::internals::scenario::{ArrayLayout, DataSource};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::found::{Folder, Whole, harms};
use super::harness::{fuzz, in_bounds, task};

/// Images of two classes, those of one part after those of the other.
#[derive(Clone, Debug)]
struct Drawn {
    /// Height, width, channels.
    sizes: [usize; 3],
    /// Training, validation, test.
    parts: [Part; 3],
}

impl Drawn {
    /// Values of an image.
    fn size(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Returns whether it is the same set.
    fn is_read(&self, set: &DataSet) -> bool {
        let mut parts = [&*set.train, &set.val, &set.test].into_iter().zip(&self.parts);
        sizes(set) == self.sizes && parts.all(|(read, part)| is_same(read, part))
    }
}

fn sizes(set: &DataSet) -> [usize; 3] {
    [set.shape.height, set.shape.width, set.shape.channels]
}

fn part(size: usize) -> impl Strategy<Value = Part> {
    vec((vec(any::<u8>(), size), 0_i64..2), 2..6).prop_map(|samples| {
        let (images, mut labels): (Vec<_>, Vec<_>) = samples.into_iter().unzip();
        // Each class has to be there, and folders of classes have theirs in order.
        (labels[0], labels[1]) = (0, 1);
        labels.sort_unstable();
        let images = images.concat().into();
        Part { images, labels }
    })
}

fn drawn() -> impl Strategy<Value = Drawn> {
    (1_usize..5, 1_usize..5, prop_oneof![Just(1_usize), Just(3)]).prop_flat_map(|(height, width, channels)| {
        let sizes = [height, width, channels];
        let part = || part(sizes.iter().product());
        [part(), part(), part()].prop_map(move |parts| Drawn { sizes, parts })
    })
}

/// The same in every run.
fn example() -> Drawn {
    let parts = [7, 11, 13].map(|first: u8| {
        let pixels: Vec<u8> = (0..4 * 4 * 4 * 3).map(|index: u8| index.wrapping_mul(first)).collect();
        let (images, labels) = (pixels.into(), vec![0, 0, 1, 1]);
        Part { images, labels }
    });
    let sizes = [4, 4, 3];
    Drawn { sizes, parts }
}

fn read(source: DataSource, folder: &Path) -> Result<DataSet, String> {
    let set = load(&task(2, source), Some(folder), &DataRegistry::default());
    set.map_err(|error| error.to_string())
}

/// With any damage to a file, the set is read or the error says what is wrong and where; `entry` and `labels` are what a
/// user names, `format` what a scenario calls it.
fn holds(files: Vec<Whole>, entry: &str, labels: Option<&str>, format: &str, source: &DataSource) {
    let folder = Folder::of(files);
    let path = folder.path().join(entry);
    let labels = labels.map(|labels| folder.path().join(labels));
    let place = folder.path().display().to_string();
    let look = || survey(&path, labels.as_deref(), Known::default());
    look().expect("the whole set can be read");
    fuzz(harms(), |harm| {
        let damaged = folder.damage(&harm);
        let looked = in_bounds(damaged.bytes, look)?.err().map(|error| error.to_string());
        let loaded = in_bounds(damaged.bytes, || read(source.clone(), folder.path()))?.err();
        for message in [looked, loaded].into_iter().flatten() {
            prop_assert!(message.contains(&place) || message.contains(format), "{message}");
        }
        Ok(())
    });
}

fn record(labels: &[u8]) -> Vec<u8> {
    [labels, &[77; 3 * 32 * 32]].concat()
}

#[test]
fn folders_of_cifar_10() {
    let of_training = (1..=5).map(|number| format!("data_batch_{number}.bin"));
    let names = of_training.chain(["test_batch.bin".into()]);
    let batch: Vec<u8> = (0..10).flat_map(|label| record(&[label])).collect();
    let mut files: Vec<Whole> = names.map(|name| Whole::new(name, batch.clone())).collect();
    files.push(Whole::new("batches.meta.txt", b"airplane\nautomobile\n".to_vec()));
    holds(files, "", None, "cifar10", &DataSource::Cifar10 { path: ".".into() });
}

#[test]
fn archives_of_cifar_100() {
    let mut tar = tar::Builder::new(Vec::new());
    for name in ["fine_label_names.txt", "train.bin", "test.bin"] {
        let mut header = tar::Header::new_ustar();
        let bytes: Vec<u8> = (0..100).flat_map(|label| record(&[0, label])).collect();
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, format!("cifar-100-binary/{name}"), &bytes[..])
            .expect("memory takes it");
    }
    let bytes = tar.into_inner().expect("memory takes it");
    let name = "set.tar.gz";
    let source = DataSource::Cifar100 { path: name.into() };
    holds(vec![Whole::packed(name, bytes)], name, None, "cifar100", &source);
}

fn idx(sizes: &[usize], data: Vec<u8>) -> Vec<u8> {
    let sizes: Vec<u8> = sizes.iter().flat_map(|&size| (size as u32).to_be_bytes()).collect();
    [vec![0, 0, 8, sizes.len() as u8 / 4], sizes, data].concat()
}

fn bytes_of(labels: &[i64]) -> Vec<u8> {
    labels.iter().map(|&label| label as u8).collect()
}

/// Images are stored plane by plane.
fn planes(images: &[u8], channels: usize, pixels: usize) -> Vec<u8> {
    let places = (0..channels * pixels).map(|at| at % pixels * channels + at / pixels);
    let images = images.chunks_exact(channels * pixels);
    let planes = images.flat_map(|image| places.clone().map(move |at| image[at]));
    planes.collect()
}

/// The four files that MNIST is published as; what should be validation is not there.
fn idx_files(drawn: &Drawn) -> Vec<Whole> {
    let ([height, width, channels], [train, _, test]) = (drawn.sizes, &drawn.parts);
    let images = |part: &Part| {
        let sizes = [part.len(), channels, height, width];
        idx(&sizes, planes(&pixels(part), channels, height * width))
    };
    let labels = |part: &Part| idx(&[part.len()], bytes_of(&part.labels));
    vec![
        Whole::packed("train-images-idx3-ubyte.gz", images(train)),
        Whole::new("train-labels-idx1-ubyte", labels(train)),
        Whole::new("t10k-images-idx3-ubyte", images(test)),
        Whole::packed("t10k-labels-idx1-ubyte.gz", labels(test)),
    ]
}

fn idx_folder() -> DataSource {
    DataSource::IdxFolder {
        path: ".".into(),
        scale: 255.0,
    }
}

#[test]
fn folders_of_idx_files() {
    holds(idx_files(&example()), "", None, "idx_folder", &idx_folder());
}

#[test]
fn what_is_written_as_idx_is_read() {
    fuzz(drawn(), |mut drawn| {
        // Twice, so that the share for validation has each class.
        let train = drawn.parts[0].clone();
        drawn.parts[0].images = pixels(&train).repeat(2).into();
        drawn.parts[0].labels.extend(&train.labels);
        let folder = Folder::of(idx_files(&drawn));
        let mut task = task(2, idx_folder());
        task.split.val_permille = 500;
        let set = load(&task, Some(folder.path()), &DataRegistry::default()).expect("it was written");
        prop_assert_eq!(sizes(&set), drawn.sizes);
        prop_assert!(is_same(&set.test, &drawn.parts[2]));
        let size = drawn.size();
        prop_assert_eq!(samples([&set.train, &set.val], size), samples([&drawn.parts[0]], size));
        Ok(())
    });
}

fn pixels(part: &Part) -> Vec<u8> {
    part.pixels().expect("they can be read").into_owned()
}

fn is_same(read: &Part, part: &Part) -> bool {
    (pixels(read), &read.labels) == (pixels(part), &part.labels)
}

/// The samples of all parts, sorted.
fn samples<const N: usize>(parts: [&Part; N], size: usize) -> Vec<(i64, Vec<u8>)> {
    let of_part = |part: &Part| -> Vec<_> {
        let images = pixels(part);
        let images = images.chunks_exact(size).map(<[u8]>::to_vec);
        part.labels.iter().copied().zip(images).collect()
    };
    let mut samples: Vec<_> = parts.into_iter().flat_map(of_part).collect();
    samples.sort();
    samples
}

fn npy(descr: &str, sizes: &[usize], data: &[u8]) -> Vec<u8> {
    let sizes: String = sizes.iter().map(|size| format!("{size}, ")).collect();
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}\n");
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

/// Images and labels of a part.
fn arrays(drawn: &Drawn, part: &Part) -> [Vec<u8>; 2] {
    let labels: Vec<u8> = part.labels.iter().flat_map(|label| label.to_le_bytes()).collect();
    let [height, width, channels] = drawn.sizes;
    let images = npy("|u1", &[part.len(), height, width, channels], &pixels(part));
    [images, npy("<i8", &[part.len()], &labels)]
}

#[test]
fn pairs_of_npy_files() {
    let drawn = example();
    let [images, labels] = arrays(&drawn, &drawn.parts[0]);
    let floats = pixels(&drawn.parts[1])
        .into_iter()
        .take(64)
        .map(|pixel| f32::from(pixel) / 255.0);
    let floats: Vec<u8> = floats.flat_map(f32::to_le_bytes).collect();
    let files = |images| vec![Whole::new("x.npy", images), Whole::new("y.npy", labels.clone())];
    for images in [images, npy("<f4", &[4, 4, 4], &floats)] {
        let source = DataSource::Npy {
            images: "x.npy".into(),
            labels: "y.npy".into(),
            layout: ArrayLayout::Nhwc,
            scale: 255.0,
        };
        holds(files(images), "x.npy", Some("y.npy"), "npy", &source);
    }
}

fn npz(drawn: &Drawn) -> Vec<Whole> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, part) in ["train", "val", "test"].iter().zip(&drawn.parts) {
        for (letter, array) in ["x", "y"].iter().zip(arrays(drawn, part)) {
            zip.start_file(format!("{letter}_{name}.npy"), SimpleFileOptions::default())
                .expect("memory takes it");
            zip.write_all(&array).expect("memory takes it");
        }
    }
    let archive = zip.finish().expect("memory takes it");
    vec![Whole::new("set.npz", archive.into_inner())]
}

fn npz_source() -> DataSource {
    DataSource::Npz {
        path: "set.npz".into(),
        layout: ArrayLayout::Nhwc,
        scale: 255.0,
    }
}

#[test]
fn archives_of_arrays() {
    holds(npz(&example()), "set.npz", None, "npz", &npz_source());
}

#[test]
fn what_is_written_as_npz_is_read() {
    fuzz(drawn(), |drawn| {
        let folder = Folder::of(npz(&drawn));
        let set = read(npz_source(), folder.path()).expect("it was written");
        prop_assert!(drawn.is_read(&set));
        Ok(())
    });
}

fn image_file(drawn: &Drawn, pixels: &[u8], format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let [height, width, channels] = drawn.sizes.map(|size| size as u32);
    let colour = if channels == 3 {
        ExtendedColorType::Rgb8
    } else {
        ExtendedColorType::L8
    };
    image::write_buffer_with_format(&mut bytes, pixels, width, height, colour, format).expect("memory takes it");
    bytes.into_inner()
}

/// Class folders in folders of parts.
fn image_files(drawn: &Drawn, format: ImageFormat) -> Vec<Whole> {
    let extension = format.extensions_str()[0];
    let size = drawn.size();
    let mut files = Vec::new();
    for (name, part) in ["train", "val", "test"].iter().zip(&drawn.parts) {
        for (index, (image, label)) in pixels(part).chunks_exact(size).zip(&part.labels).enumerate() {
            let path = format!("{name}/class{label}/{index}.{extension}");
            files.push(Whole::new(path, image_file(drawn, image, format)));
        }
    }
    files
}

fn image_folder() -> DataSource {
    DataSource::ImageFolder {
        path: ".".into(),
        size: None,
    }
}

#[test]
fn folders_of_image_files() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Gif] {
        let files = image_files(&example(), format);
        holds(files, "", None, "image_folder", &image_folder());
    }
}

#[test]
fn what_is_written_as_png_is_read() {
    fuzz(drawn(), |drawn| {
        let folder = Folder::of(image_files(&drawn, ImageFormat::Png));
        let set = read(image_folder(), folder.path()).expect("it was written");
        prop_assert!(drawn.is_read(&set));
        Ok(())
    });
}
