use super::*;
use crate::scenario::SynthImages;

fn settle(source: &DataSource, family: &str) -> Result<String, String> {
    ImagesOnDisk::default().settle(source, None, family)
}

#[test]
fn classes_size_parts_and_batches_are_those_of_the_data() {
    let digits = settle(&DataSource::Digits, "cnn").unwrap();

    assert!(digits.contains("classes: 10,"), "{digits}");
    assert!(
        digits.contains("in_channels: 1, base_channels: 4, pool_layers: 3, input_hw: 8"),
        "{digits}"
    );
    assert!(digits.contains("val_permille: 200, test_permille: 100"), "{digits}");
    assert!(
        digits.contains("batch_size: 64,\n        batches_per_step: full,"),
        "{digits}"
    );

    let brings_parts = SynthImages {
        classes: 4,
        train: 4000,
        val: 40,
        test: 40,
        ..SynthImages::default()
    };
    let large = settle(&DataSource::SynthImages(brings_parts), "resnet").unwrap();

    assert!(
        large.contains("classes: 4,\n        host: resnet((in_channels: 3, input_hw: 32)),"),
        "{large}"
    );
    assert!(large.contains("val_permille: 0, test_permille: 0"), "{large}");
    assert!(large.contains("batches_per_step: count(50),"), "{large}");
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

    let error = settle(&DataSource::SynthImages(wide), "cnn").unwrap_err();

    assert!(
        error.contains("images are 32x40 pixels, and hosts read squares"),
        "{error}"
    );
}

#[test]
fn a_folder_of_files_is_cropped_to_squares_and_looked_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for class in ["ant", "bee"] {
        let class = folder.path().join("photos").join(class);
        std::fs::create_dir_all(&class).unwrap();
        image::GrayImage::new(40, 30).save(class.join("1.png")).unwrap();
    }
    let source = DataSource::ImageFolder {
        path: "photos".into(),
        size: None,
    };
    let images = ImagesOnDisk::default();

    let found = images.settle(&source, Some(folder.path()), "cnn").unwrap();
    std::fs::remove_dir_all(folder.path().join("photos")).unwrap();
    let again = images.settle(&source, Some(folder.path()), "cnn").unwrap();

    assert!(
        found.contains("data: image_folder(path: \"photos\", size: Some(32)),"),
        "{found}"
    );
    assert!(found.contains("classes: 2,"), "{found}");
    assert_eq!(again, found);
}
