use super::*;
use crate::scenario::SynthImages;

fn settle(source: &DataSource, family: &str) -> Result<String, String> {
    ImagesOnDisk::default().settle(source, None, family)
}

#[track_caller]
fn assert_has(settled: &str, parts: &[&str]) {
    for part in parts {
        assert!(settled.contains(part), "{part} is missing in {settled}");
    }
}

#[test]
fn classes_size_parts_and_batches_are_those_of_the_data() {
    let digits = settle(&DataSource::Digits, "cnn").unwrap();

    let host = "in_channels: 1, base_channels: 4, pool_layers: 3, input_hw: 8";
    let batches = "batch_size: 64,\n        batches_per_step: full,";
    let parts = "val_permille: 200, test_permille: 100";
    assert_has(&digits, &["classes: 10,", host, parts, batches]);

    let brings_parts = SynthImages {
        classes: 4,
        train: 4000,
        val: 40,
        test: 40,
        ..SynthImages::default()
    };
    let large = settle(&DataSource::SynthImages(brings_parts), "resnet").unwrap();

    let host = "classes: 4,\n        host: resnet((in_channels: 3, input_hw: 32)),";
    let parts = "val_permille: 0, test_permille: 0";
    assert_has(&large, &[host, parts, "batches_per_step: count(50),"]);
}

#[test]
fn images_that_no_host_reads_are_refused() {
    let wide = SynthImages {
        width: 40,
        train: 20,
        val: 10,
        test: 10,
        ..SynthImages::default()
    };

    let why = settle(&DataSource::SynthImages(wide), "cnn").unwrap_err();

    assert_has(&why, &["images are 32x40 pixels, and hosts read squares"]);
}

#[test]
fn a_folder_of_files_is_cropped_to_squares_and_looked_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for class in ["ant", "bee"] {
        let class = folder.path().join("photos").join(class);
        std::fs::create_dir_all(&class).unwrap();
        image::GrayImage::new(40, 30).save(class.join("1.png")).unwrap();
    }
    let (path, size) = ("photos".into(), None);
    let source = DataSource::ImageFolder { path, size };
    let images = ImagesOnDisk::default();

    let found = images.settle(&source, Some(folder.path()), "cnn").unwrap();
    std::fs::remove_dir_all(folder.path().join("photos")).unwrap();
    let again = images.settle(&source, Some(folder.path()), "cnn").unwrap();

    let data = "data: image_folder(path: \"photos\", size: Some(32)),";
    assert_has(&found, &[data, "classes: 2,"]);
    assert_eq!(again, found);
}
