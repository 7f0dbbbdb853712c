use image::{GrayImage, ImageBuffer, Luma, LumaA, Rgb, RgbImage};

use super::*;

fn save(path: &Path, image: impl Into<image::DynamicImage>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    image.into().save(path).unwrap();
}

fn colour(red: u8) -> RgbImage {
    RgbImage::from_fn(4, 2, |x, y| Rgb([red, x as u8, y as u8]))
}

fn two_classes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    save(&folder.path().join("cat/b.png"), colour(2));
    save(&folder.path().join("cat/a.png"), colour(1));
    save(&folder.path().join("ant/z.PNG"), colour(3));
    folder
}

#[test]
fn classes_and_images_stand_in_the_order_of_their_names() {
    let folder = two_classes();

    let found = read(folder.path(), None).unwrap();

    assert_eq!(found.class_names, ["ant", "cat"]);
    assert_eq!(found.train.part.labels, [0, 1, 1]);
    assert_eq!(
        found.train.shape,
        Shape {
            channels: 3,
            height: 2,
            width: 4
        }
    );
    // The first pixel of each image, and the last of the first one: row 1, column 3.
    let firsts: Vec<u8> = found
        .train
        .part
        .pixels()
        .unwrap()
        .chunks(24)
        .map(|image| image[0])
        .collect();
    assert_eq!(firsts, [3, 1, 2]);
    assert_eq!(found.train.part.pixels().unwrap()[21..24], [3, 3, 1]);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

#[test]
fn parts_in_folders_share_the_classes_of_the_training_part() {
    let folder = tempfile::tempdir().unwrap();
    for path in [
        "train/cat/1.png",
        "train/dog/1.png",
        "valid/dog/1.png",
        "test/cat/1.png",
    ] {
        save(&folder.path().join(path), colour(9));
    }

    let found = read(folder.path(), None).unwrap();

    assert_eq!(found.val.unwrap().part.labels, [1]);
    assert_eq!(found.test.unwrap().part.labels, [0]);

    save(&folder.path().join("test/cow/1.png"), colour(9));
    let error = read(folder.path(), None).unwrap_err();
    assert!(
        matches!(&error, DataError::UnknownClass { folder } if folder.ends_with("test/cow")),
        "{error}"
    );
}

#[test]
fn an_image_that_is_none_or_is_cut_short_is_named() {
    let folder = two_classes();
    let path = folder.path().join("cat/c.png");
    let whole = fs::read(folder.path().join("cat/a.png")).unwrap();
    for bytes in [b"no image at all".to_vec(), whole[..40].to_vec(), Vec::new()] {
        fs::write(&path, bytes).unwrap();
        let error = read(folder.path(), None).unwrap_err();
        assert!(
            matches!(&error, DataError::UnreadableImage { file, .. } if *file == path),
            "{error}"
        );
    }
}

#[test]
fn transparent_pixels_are_refused_and_opaque_ones_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/1.png");
    let with_alpha = |alpha: u8| ImageBuffer::from_pixel(2, 2, LumaA([7, alpha]));
    save(&path, with_alpha(255));
    assert_eq!(
        read(folder.path(), None).unwrap().train.part.pixels().unwrap()[..],
        [7; 4]
    );

    save(&path, with_alpha(254));
    let error = read(folder.path(), None).unwrap_err().to_string();
    assert!(error.contains("transparent pixels"), "{error}");
}

#[test]
fn what_is_unusual_is_told() {
    let folder = two_classes();
    save(
        &folder.path().join("cat/gray.png"),
        GrayImage::from_pixel(4, 2, Luma([8])),
    );
    let deep: ImageBuffer<Rgb<u16>, Vec<u16>> = ImageBuffer::from_pixel(4, 2, Rgb([0xffff, 0, 0x8080]));
    save(&folder.path().join("cat/deep.png"), deep);
    fs::write(folder.path().join("cat/README.txt"), "cats").unwrap();
    fs::write(folder.path().join("cat/.hidden"), "").unwrap();

    let found = read(folder.path(), None).unwrap();

    assert_eq!(found.train.part.len(), 5);
    assert_eq!(found.notes.len(), 3, "{:?}", found.notes);
    assert!(found.notes[0].starts_with("image_folder: 1 entries are no PNG or JPEG by their names"));
    assert!(found.notes[1].starts_with("image_folder: 1 images of more than 8 bits a channel"));
    assert_eq!(
        found.notes[2],
        "image_folder: 1 gray images among coloured ones have three equal channels"
    );
    // ant/z, cat/a, cat/b, cat/deep, cat/gray
    assert_eq!(found.train.part.pixels().unwrap()[3 * 24..3 * 24 + 3], [255, 0, 128]);
    assert_eq!(found.train.part.pixels().unwrap()[4 * 24..4 * 24 + 3], [8, 8, 8]);
}

#[test]
fn jpeg_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    // A uniform gray survives the compression.
    save(&folder.path().join("a/1.jpg"), GrayImage::from_pixel(8, 8, Luma([128])));

    assert_eq!(
        read(folder.path(), None).unwrap().train.part.pixels().unwrap()[..],
        [128; 64]
    );
}

#[test]
fn folders_without_classes_or_images_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(read(folder.path(), None), Err(DataError::NoClasses { .. })));
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(matches!(
        read(folder.path(), None),
        Err(DataError::NoImages { place }) if place.ends_with("empty")
    ));
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(read(&file, None), Err(DataError::NotAFolder { .. })));
}

#[test]
fn a_worker_that_panics_is_an_error_that_names_its_image() {
    let lost = |work: fn() -> Result<(), DataError>| guarded(Path::new("cat/a.png"), work).unwrap_err().to_string();

    assert!(
        lost(|| panic!("a strange file"))
            .starts_with("image cat/a.png: the worker that read it panicked (a strange file)")
    );
    assert!(lost(|| panic!("{} chunks", 3)).contains("(3 chunks)"));
}

/// The header of a PNG with other sizes, and its checksum.
fn claim(path: &Path, width: u32, height: u32) {
    let mut bytes = fs::read(path).unwrap();
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let mut checksum = flate2::Crc::new();
    checksum.update(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.sum().to_be_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_header_that_claims_more_pixels_than_its_file_can_hold_is_refused_before_room_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cat/a.png");
    save(&path, colour(1));
    claim(&path, 65_535, 65_535);

    let error = read(folder.path(), None).unwrap_err().to_string();

    assert!(
        error.contains("a.png") && error.contains("claims 65535x65535 pixels"),
        "{error}"
    );
}

#[test]
fn an_image_of_one_colour_is_not_taken_for_a_claim() {
    let folder = tempfile::tempdir().unwrap();
    save(
        &folder.path().join("cat/a.png"),
        GrayImage::from_pixel(2000, 1000, Luma([0])),
    );

    assert_eq!(
        read(folder.path(), None).unwrap().train.part.pixels().unwrap().len(),
        2_000_000
    );
}

/// All pixels of the training part, and its rows, columns and channels.
fn pixels(folder: &Path, size: Option<usize>) -> (Vec<u8>, [usize; 3]) {
    let Pool { shape, part, .. } = read(folder, size).unwrap().train;
    let sizes = [shape.height, shape.width, shape.channels];
    (part.pixels().unwrap().to_vec(), sizes)
}

#[test]
fn images_of_several_sizes_are_cropped_to_their_centres_and_scaled() {
    let folder = two_classes();
    // Red at both ends, green in the square between.
    let wide = RgbImage::from_fn(120, 40, |x, _| {
        Rgb(if (40..80).contains(&x) {
            [0, 200, 0]
        } else {
            [200, 0, 0]
        })
    });
    save(&folder.path().join("cat/wide.png"), wide);
    save(
        &folder.path().join("cat/zip.png"),
        RgbImage::from_fn(32, 32, |x, y| Rgb([x as u8, y as u8, 7])),
    );

    let found = read(folder.path(), None).unwrap();

    let (bytes, sizes) = pixels(folder.path(), None);
    assert_eq!(sizes, [32, 32, 3]);
    let image = |index: usize| &bytes[index * 3072..(index + 1) * 3072];
    assert_eq!(image(3), [0, 200, 0].repeat(1024));
    // An image of that size already keeps its bytes.
    assert_eq!(image(4)[3 * 33..3 * 34], [1, 1, 7]);
    assert_eq!(image(4)[3069..], [31, 31, 7]);
    assert_eq!(
        found.notes,
        [
            "image_folder: the images have 3 sizes, from 4x2 to 120x40 (width x height); 4 were cropped to their central \
             square and scaled to 32x32"
        ]
    );
    assert_eq!(pixels(folder.path(), Some(5)).1, [5, 5, 3]);
}

#[test]
fn scaled_pixels_are_the_same_on_every_machine() {
    let folder = tempfile::tempdir().unwrap();
    let image = RgbImage::from_fn(61, 47, |x, y| Rgb([(x * 4) as u8, (y * 5) as u8, (x * y) as u8]));
    save(&folder.path().join("a/1.png"), image);

    let hash = |size| blake3::hash(&pixels(folder.path(), Some(size)).0).to_hex()[..16].to_string();

    assert_eq!([hash(16), hash(64)], ["4c2446b3afd20bda", "f337d4519cd68adf"]);
    assert_eq!(hash(16), hash(16));
}

#[test]
fn images_stand_as_their_cameras_were_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/1.jpg");
    // Black on the left, white on the right.
    save(
        &path,
        GrayImage::from_fn(16, 8, |x, _| Luma([if x < 8 { 0 } else { 255 }])),
    );
    let bytes = fs::read(&path).unwrap();
    // The tag 0x0112 is 6: to be turned clockwise by 90 degrees.
    let exif = b"\xff\xe1\0\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    fs::write(&path, [&bytes[..2], exif, &bytes[2..]].concat()).unwrap();

    let (bytes, sizes) = pixels(folder.path(), None);

    assert_eq!(sizes, [16, 8, 1]);
    assert_eq!((&bytes[..8], &bytes[15 * 8..]), (&[0; 8][..], &[255; 8][..]));
}
