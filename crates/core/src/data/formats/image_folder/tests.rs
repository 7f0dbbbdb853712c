use std::io::Cursor;

use image::{GrayImage, ImageBuffer, ImageFormat, Luma, LumaA, Rgb, RgbImage};

use super::*;
use crate::data::locate::tests::{assert_refused, folder_of};

fn save(folder: &tempfile::TempDir, name: &str, image: impl Into<image::DynamicImage>) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    image.into().save(path).unwrap();
}

/// A new folder with only this image.
fn folder_with(name: &str, image: impl Into<image::DynamicImage>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    save(&folder, name, image);
    folder
}

fn colour(red: u8) -> RgbImage {
    RgbImage::from_fn(4, 2, |x, y| Rgb([red, x as u8, y as u8]))
}

fn two_classes() -> tempfile::TempDir {
    let folder = folder_with("cat/b.png", colour(2));
    save(&folder, "cat/a.png", colour(1));
    save(&folder, "ant/z.PNG", colour(3));
    folder
}

/// All pixels of the training part, and its rows, columns and channels.
fn pixels(folder: &tempfile::TempDir, size: Option<usize>) -> (Vec<u8>, [usize; 3]) {
    let Pool { shape, part, .. } = read(folder.path(), size).unwrap().train;
    let sizes = [shape.height, shape.width, shape.channels];
    (part.pixels().unwrap().to_vec(), sizes)
}

#[test]
fn classes_and_images_stand_in_the_order_of_their_names() {
    let folder = two_classes();

    let found = read(folder.path(), None).unwrap();

    assert_eq!(found.class_names, ["ant", "cat"]);
    assert_eq!(found.train.part.labels, [0, 1, 1]);
    let (bytes, sizes) = pixels(&folder, None);
    assert_eq!(sizes, [2, 4, 3]);
    // The first pixel of each image, and the last of the first one: row 1, column 3.
    assert_eq!([bytes[0], bytes[24], bytes[48]], [3, 1, 2]);
    assert_eq!(bytes[21..24], [3, 3, 1]);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

#[test]
fn parts_in_folders_share_the_classes_of_the_training_part() {
    let folder = folder_with("train/cat/1.png", colour(9));
    for name in ["train/dog/1.png", "valid/dog/1.png", "test/cat/1.png"] {
        save(&folder, name, colour(9));
    }

    let found = read(folder.path(), None).unwrap();

    assert_eq!(found.val.unwrap().part.labels, [1]);
    assert_eq!(found.test.unwrap().part.labels, [0]);
    save(&folder, "test/cow/1.png", colour(9));
    let unknown = "test/cow is a class that the training part doesn't have";
    assert_refused(read(folder.path(), None), unknown);
}

#[test]
fn five_of_the_images_that_are_none_or_cut_short_are_named() {
    let folder = two_classes();
    let whole = fs::read(folder.path().join("cat/a.png")).unwrap();
    for bytes in [&b"no image at all"[..], &whole[..40], b""] {
        fs::write(folder.path().join("cat/c.png"), bytes).unwrap();
        assert_refused(read(folder.path(), None), "cat/c.png cannot be read (");
    }
    for name in ["c", "d", "e", "f", "g", "h", "i"] {
        fs::write(folder.path().join(format!("cat/{name}.png")), &whole[..50]).unwrap();
    }
    let text = read(folder.path(), None).unwrap_err().to_string();
    assert_eq!(text.matches(".png cannot be read (").count(), 5, "{text}");
    assert!(text.contains(") and 2 more; valid: "), "{text}");
}

/// No two adjacent pixels are alike.
fn photograph(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        Rgb([x * 37 + y * 101, x * y * 7, x ^ (y * 59)].map(|value| value as u8))
    })
}

fn jpeg(image: &RgbImage) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
    bytes.into_inner()
}

#[test]
fn a_jpeg_that_is_cut_short_or_damaged_is_named_and_bytes_after_its_end_are_ignored() {
    let folder = folder_with("a/1.jpg", photograph(64, 64));
    let path = folder.path().join("a/1.jpg");
    let (whole, expected) = (fs::read(&path).unwrap(), pixels(&folder, None));
    // With a preview, which is a whole JPEG, in a segment of its own.
    let preview = jpeg(&photograph(8, 8));
    let length = (preview.len() as u16 + 2).to_be_bytes();
    let with_preview = [&whole[..2], &[0xff, 0xe2], &length, &preview, &whole[2..]].concat();

    for percent in [5, 20, 40, 60, 80, 99] {
        for bytes in [&whole, &with_preview] {
            fs::write(&path, &bytes[..bytes.len() * percent / 100]).unwrap();
            assert_refused(read(folder.path(), None), "a/1.jpg cannot be read (");
        }
    }
    fs::write(&path, &with_preview[..with_preview.len() - 2]).unwrap();
    assert_refused(read(folder.path(), None), "a/1.jpg cannot be read (it is cut short: ");
    let mut damaged = whole.clone();
    let middle = whole.len() * 3 / 4;
    damaged[middle..middle + 2].copy_from_slice(&[0xff, 0xc8]);
    fs::write(&path, damaged).unwrap();
    assert_refused(read(folder.path(), None), "a/1.jpg cannot be read (it is damaged: ");
    for whole in [[&with_preview[..], b"\xff\xd8 and a video"].concat(), with_preview] {
        fs::write(&path, whole).unwrap();
        assert_eq!(pixels(&folder, None), expected);
    }
}

#[test]
fn formats_are_recognised_by_their_content_and_images_of_other_formats_are_named() {
    for name in ["a/1.bmp", "a/1.webp", "a/1.gif"] {
        let folder = folder_with(name, colour(9));
        let path = folder.path().join(name);
        assert_eq!(pixels(&folder, None).0, colour(9).into_raw(), "{name}");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert_refused(read(folder.path(), None), &format!("{name} cannot be read ("));
        fs::remove_file(path).unwrap();
        fs::write(folder.path().join("a/download"), whole).unwrap();
        assert_eq!(pixels(&folder, None).0, colour(9).into_raw(), "{name}");
    }
    let folder = folder_with("a/1.png", colour(9));
    fs::create_dir(folder.path().join("b")).unwrap();
    for name in ["1.tif", "2.AVIF"] {
        fs::write(folder.path().join("b").join(name), "II").unwrap();
    }
    let other = "images of a format that is not read (save them as PNG)";
    let none = format!("/b/1.tif and the like are {other}) holds no image");
    assert_refused(read(folder.path(), None), &none);
    save(&folder, "b/3.png", colour(8));
    let named = format!("image_folder: 2 entries were skipped, as they are {other}: b/1.tif, b/2.AVIF");
    assert_eq!(notes_of(&folder), [named]);
}

/// Notes of `read`, without the place of the folder.
fn notes_of(folder: &tempfile::TempDir) -> Vec<String> {
    let place = format!("{}/", folder.path().display());
    let notes = read(folder.path(), None).unwrap().notes;
    notes.iter().map(|note| note.replace(&place, "")).collect()
}

#[test]
fn everything_next_to_the_parts_is_named_with_the_reason() {
    let folder = folder_with("train/cat/1.png", colour(9));
    for name in [
        "validation/cat/1.png",
        "extra/cat/1.png",
        "test/1.png",
        "train/loose.png",
        "train/cat/old/1.png",
        "__MACOSX/cat/1.png",
        ".cache/1.png",
    ] {
        save(&folder, name, colour(9));
    }
    fs::write(folder.path().join("labels.csv"), "").unwrap();

    let expected = [
        &format!("1 entries were skipped, as they are {INNER}: train/cat/old"),
        "2 entries were skipped, as they are hidden, or created by a system: .cache, __MACOSX",
        "1 entries were skipped, as they are named like a part, but without folders of classes: test",
        "3 entries were skipped, as they are next to the folders that are read: train/loose.png, extra, labels.csv",
    ];
    assert_eq!(notes_of(&folder), expected.map(|note| format!("image_folder: {note}")));
    assert!(read(folder.path(), None).unwrap().val.is_some());

    save(&folder, "Val/cat/1.png", colour(9));
    assert_refused(read(folder.path(), None), "/Val and ");
    let twice = "/validation name the same part";
    assert_refused(read(folder.path(), None), twice);
}

#[test]
fn parts_have_the_names_that_published_sets_give_them() {
    let of_intel = ["seg_train/seg_train", "seg_test/seg_test"];
    for [train, test] in [["Training", "Testing"], of_intel, ["TRAIN", "Test"]] {
        let folder = folder_with(&format!("{train}/cat/1.png"), colour(9));
        save(&folder, &format!("{test}/cat/1.png"), colour(9));

        let found = read(folder.path(), None).unwrap();

        assert_eq!(found.class_names, ["cat"], "{train}");
        assert!(found.test.is_some() && found.notes.is_empty(), "{:?}", found.notes);
    }
}

#[test]
fn a_class_that_is_called_train_is_a_class_next_to_others() {
    let folder = folder_with("train/1.png", colour(9));
    for name in ["bus/1.png", "car/1.png", "train/steam/1.png"] {
        save(&folder, name, colour(9));
    }

    assert_eq!(read(folder.path(), None).unwrap().class_names, ["bus", "car", "train"]);
    let inner = format!("image_folder: 1 entries were skipped, as they are {INNER}: train/steam");
    assert_eq!(notes_of(&folder), [inner]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_those_that_lead_nowhere_are_named() {
    let link = |to: &str, at: &Path| std::os::unix::fs::symlink(to, at).unwrap();
    for name in ["cat/c.png", "cow", "cat/notes"] {
        let folder = two_classes();
        link("a.png", &folder.path().join("cat/d.png"));
        assert_eq!(read(folder.path(), None).unwrap().train.part.len(), 4);

        link("nothing", &folder.path().join(name));

        assert_refused(
            read(folder.path(), None),
            &format!("{name} is a link that leads nowhere ("),
        );
    }
}

#[test]
fn transparent_pixels_are_refused_and_opaque_ones_taken() {
    let with_alpha = |alpha: u8| folder_with("a/1.png", ImageBuffer::from_pixel(2, 2, LumaA([7, alpha])));

    assert_eq!(pixels(&with_alpha(255), None).0, [7; 4]);
    assert_refused(read(with_alpha(254).path(), None), "transparent pixels");
}

#[test]
fn unusual_files_are_noted() {
    let folder = two_classes();
    save(&folder, "cat/gray.png", GrayImage::from_pixel(4, 2, Luma([8])));
    let deep: ImageBuffer<Rgb<u16>, Vec<u16>> = ImageBuffer::from_pixel(4, 2, Rgb([0xffff, 0, 0x8080]));
    save(&folder, "cat/deep.png", deep);
    fs::write(folder.path().join("cat/README.txt"), "BM, in a text of cats").unwrap();
    fs::write(folder.path().join("cat/.hidden"), "").unwrap();

    let notes = read(folder.path(), None).unwrap().notes;

    let [names, depths, channels] = &notes[..] else {
        panic!("{notes:?}");
    };
    assert!(names.starts_with("image_folder: 1 entries were skipped, as they are not PNG, JPEG, WebP, BMP or GIF: "));
    assert!(names.ends_with("cat/README.txt"));
    assert!(depths.starts_with("image_folder: 1 images of more than 8 bits a channel"));
    let gray = "image_folder: 1 gray images among coloured ones have three equal channels";
    assert_eq!(channels, gray);
    // ant/z, cat/a, cat/b, cat/deep, cat/gray
    let (bytes, _) = pixels(&folder, None);
    assert_eq!(bytes.len(), 5 * 24);
    assert_eq!(bytes[3 * 24..][..3], [255, 0, 128]);
    assert_eq!(bytes[4 * 24..][..3], [8, 8, 8]);

    let notes = notes_of(&folder_with("a/1.png", ImageBuffer::from_pixel(4, 2, Luma([4095_u16]))));
    assert!(notes[1].contains("as if files of 16 bits held 12"), "{notes:?}");
}

#[test]
fn folders_without_classes_or_images_are_refused() {
    let folder = folder_of([("file", "")]);
    assert_refused(read(folder.path(), None), " has no folders of classes");
    assert_refused(read(&folder.path().join("file"), None), "file isn't a folder");
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert_refused(read(folder.path(), None), "empty holds no image");
    let folder = folder_with("a/images/1.png", colour(1));
    fs::write(folder.path().join("a/boxes.txt"), "").unwrap();
    assert_refused(read(folder.path(), None), &format!("a/images and the like are {INNER}"));
}

#[test]
fn a_decoder_that_panics_is_a_reason_why_an_image_cannot_be_read() {
    let lost = decode::each(0..3, |index| match index {
        1 => panic!("a strange file"),
        _ => Ok(index),
    });

    let failures = lost.unwrap_err();
    let [(1, cause)] = &failures[..] else {
        panic!("one image is lost");
    };
    assert!(cause.ends_with(" panicked: a strange file"), "{cause}");
}

#[test]
fn a_header_that_claims_more_pixels_than_its_file_or_the_memory_can_hold_is_refused_before_room_is_made() {
    let folder = folder_with("cat/a.png", colour(1));
    let path = folder.path().join("cat/a.png");
    let mut bytes = fs::read(&path).unwrap();
    let few = format!(
        "claims 9000x9000 pixels, for which its {} bytes are too few",
        bytes.len()
    );
    let large = "claims 30000x30000 pixels, 2700000000 bytes when they are decoded; valid: at most 268435456";
    for (side, expected) in [
        (9000_u32, &*few),
        (30_000, large),
        (65_535, "claims 65535x65535 pixels"),
    ] {
        // Width and height in the header, and its checksum.
        bytes[16..20].copy_from_slice(&side.to_be_bytes());
        bytes[20..24].copy_from_slice(&side.to_be_bytes());
        let mut checksum = flate2::Crc::new();
        checksum.update(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&checksum.sum().to_be_bytes());
        fs::write(&path, &bytes).unwrap();

        assert_refused(read(folder.path(), None), "a.png");
        assert_refused(read(folder.path(), None), expected);
    }
}

#[test]
fn an_image_of_one_colour_is_not_taken_for_a_claim_and_large_images_of_one_size_are_scaled() {
    let folder = folder_with("cat/a.png", GrayImage::from_pixel(2000, 1000, Luma([7])));

    assert_eq!(pixels(&folder, None), (vec![7; 32 * 32], [32, 32, 1]));
    let note = "image_folder: the images have one size, 2000x1000 (width x height); 1 were cropped to their central \
                square and scaled to 32x32";
    assert_eq!(notes_of(&folder), [note]);
    assert_eq!(pixels(&folder, Some(600)).1, [600, 600, 1]);
    let kept = folder_with("cat/a.png", GrayImage::from_pixel(512, 4, Luma([7])));
    assert_eq!(pixels(&kept, None).1, [4, 512, 1]);
}

#[test]
fn images_of_several_sizes_are_cropped_to_their_centres_and_scaled() {
    let folder = two_classes();
    // Red at both ends, green in the square between.
    let (red, green) = (Rgb([200, 0, 0]), Rgb([0, 200, 0]));
    let wide = RgbImage::from_fn(120, 40, |x, _| if (40..80).contains(&x) { green } else { red });
    save(&folder, "cat/wide.png", wide);
    let small = RgbImage::from_fn(32, 32, |x, y| Rgb([x as u8, y as u8, 7]));
    save(&folder, "cat/zip.png", small);

    let notes = read(folder.path(), None).unwrap().notes;

    let (bytes, sizes) = pixels(&folder, None);
    assert_eq!(sizes, [32, 32, 3]);
    let image = |index: usize| &bytes[index * 3072..(index + 1) * 3072];
    assert_eq!(image(3), [0, 200, 0].repeat(1024));
    // An image of that size already keeps its bytes.
    assert_eq!(image(4)[3 * 33..3 * 34], [1, 1, 7]);
    assert_eq!(image(4)[3069..], [31, 31, 7]);
    let note = "image_folder: the images have 3 sizes, from 4x2 to 120x40 (width x height); 4 were cropped to \
                their central square and scaled to 32x32";
    assert_eq!(notes, [note]);
    assert_eq!(pixels(&folder, Some(5)).1, [5, 5, 3]);
}

#[test]
fn scaled_pixels_are_the_same_on_every_machine() {
    let image = RgbImage::from_fn(61, 47, |x, y| Rgb([(x * 4) as u8, (y * 5) as u8, (x * y) as u8]));
    let folder = folder_with("a/1.png", image);

    let hash = |size| blake3::hash(&pixels(&folder, Some(size)).0).to_hex()[..16].to_string();

    assert_eq!([hash(16), hash(64)], ["4c2446b3afd20bda", "f337d4519cd68adf"]);
}

#[test]
fn images_stand_as_their_cameras_were_held() {
    // Black on the left, white on the right.
    let image = GrayImage::from_fn(16, 8, |x, _| Luma([if x < 8 { 0 } else { 255 }]));
    let folder = folder_with("a/1.jpg", image);
    let path = folder.path().join("a/1.jpg");
    let bytes = fs::read(&path).unwrap();
    // The tag 0x0112 is 6: to be turned clockwise by 90 degrees.
    let exif = b"\xff\xe1\0\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    fs::write(&path, [&bytes[..2], exif, &bytes[2..]].concat()).unwrap();

    let (bytes, sizes) = pixels(&folder, None);

    assert_eq!(sizes, [16, 8, 1]);
    assert_eq!((&bytes[..8], &bytes[15 * 8..]), (&[0; 8][..], &[255; 8][..]));
}
