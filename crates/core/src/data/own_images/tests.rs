use super::*;
use crate::scenario::SynthImages;

fn settle(source: &DataSource, family: &str) -> Result<OwnImages, String> {
    ImagesOnDisk::default().settle(source, None, family)
}

fn permilles(own: &OwnImages) -> (u64, u64) {
    (own.split.val_permille, own.split.test_permille)
}

#[test]
fn classes_size_parts_and_batches_are_those_of_the_data() {
    let digits = settle(&DataSource::Digits, "cnn").unwrap();

    let cnn = CnnSpec {
        in_channels: 1,
        base_channels: 4,
        pool_layers: 3,
        input_hw: 8,
        ..CnnSpec::default()
    };
    assert_eq!((digits.classes, &digits.host), (10, &Some(HostChoice::Cnn(cnn))));
    assert_eq!((digits.batch_size, digits.batches_per_step), (64, BatchesPerStep::Full));
    assert_eq!(permilles(&digits), (200, 100));

    let brings_parts = SynthImages {
        classes: 4,
        train: 4000,
        val: 40,
        test: 40,
        ..SynthImages::default()
    };
    let large = settle(&DataSource::SynthImages(brings_parts), "resnet").unwrap();

    let resnet = ResnetSpec {
        in_channels: 3,
        input_hw: 32,
        ..ResnetSpec::default()
    };
    assert_eq!((large.classes, &large.host), (4, &Some(HostChoice::Resnet(resnet))));
    assert_eq!(large.batches_per_step, BatchesPerStep::Count(50));
    assert_eq!(permilles(&large), (0, 0));
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

    assert!(why.contains("images are 32x40 pixels, but hosts read squares"), "{why}");
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

    let (path, size) = ("photos".into(), Some(32));
    assert_eq!(
        (&found.data, found.classes),
        (&DataSource::ImageFolder { path, size }, 2)
    );
    assert_eq!(again, found);
}
