use std::path::Path;
use std::sync::Arc;

use super::built_in_names;
use crate::scenario::{
    BatchesPerStep, Catalog, CnnSpec, DataSource, HostChoice, Input, KnownImages, Loaded, Override, OwnImages,
    ResnetSpec, SplitSpec, load,
};

/// Knows one data set, and is not to be asked for any other.
#[derive(Debug)]
struct Shapes;

impl KnownImages for Shapes {
    fn settle(&self, source: &DataSource, _: Option<&Path>, family: &str) -> Result<OwnImages, String> {
        match source {
            DataSource::ImageFolder { path, .. } if path == "shapes" => Ok(OwnImages {
                data: source.clone(),
                classes: 3,
                host: Some(match family {
                    "resnet" => HostChoice::Resnet(ResnetSpec {
                        in_channels: 1,
                        input_hw: 24,
                        ..ResnetSpec::default()
                    }),
                    _ => HostChoice::Cnn(CnnSpec {
                        in_channels: 1,
                        input_hw: 24,
                        ..CnnSpec::default()
                    }),
                }),
                split: SplitSpec {
                    seed: 0,
                    val_permille: 150,
                    test_permille: 0,
                },
                batch_size: 16,
                batches_per_step: BatchesPerStep::Count(50),
            }),
            other => Err(format!("{other:?} was looked at")),
        }
    }
}

/// Loads the task with `fields` after the data.
fn loaded(path: &str, fields: &str) -> Result<Loaded, String> {
    overridden(path, fields, &[])
}

fn overridden(path: &str, fields: &str, overrides: &[Override]) -> Result<Loaded, String> {
    let catalog = Catalog {
        images: Some(Arc::new(Shapes)),
        ..built_in_names()
    };
    let text = format!("(task: preset(\"Images\", (data: image_folder(path: \"{path}\"), {fields})))");
    let input = Input {
        label: "x.ron",
        text: &text,
        overrides,
    };
    load(&input, &catalog).map_err(|report| report.to_string())
}

fn slots(loaded: &Loaded) -> String {
    let slots: Vec<String> = loaded.slots.iter().map(ToString::to_string).collect();
    slots.join(" ")
}

#[test]
fn what_the_file_does_not_say_comes_from_the_data() {
    let loaded = loaded("shapes", "").unwrap();

    let (task, host) = (&loaded.task, &loaded.host);
    assert_eq!((task.classes, host.channels, host.side), (3, 1, 24));
    assert_eq!((task.split.val_permille, task.batch_size), (150, 16));
    assert_eq!(task.batches_per_step, BatchesPerStep::Count(50));
    assert_eq!(slots(&loaded), "r0c0 r0c1 r0c2");
    assert_eq!(loaded.origins["task.classes"], "the data");
}

#[test]
fn what_the_file_says_stands_field_by_field() {
    let loaded = loaded("shapes", "batch_size: 8, host: cnn((base_channels: 6, n_blocks: 4))").unwrap();

    let HostChoice::Cnn(host) = &loaded.task.host else {
        panic!("{:?}", loaded.task.host);
    };
    assert_eq!((host.base_channels, host.n_blocks), (6, 4));
    assert_eq!((host.in_channels, host.input_hw), (1, 24));
    assert_eq!((loaded.task.classes, loaded.task.batch_size), (3, 8));
    assert_eq!(slots(&loaded), "r0c0 r0c1 r0c2 r0c3");
}

#[test]
fn a_field_of_the_host_can_be_set_where_the_data_choose_it() {
    let width = Override::flag("--set", "task.host.base_channels", 5);

    let loaded = overridden("shapes", "", &[width]).unwrap();

    assert_eq!((loaded.host.channels, loaded.host.widths()), (1, "1->5,10,20".into()));
}

#[test]
fn slots_are_those_of_the_host_unless_the_file_names_some() {
    let residual = loaded("shapes", "host: resnet((blocks: [1, 2]))").unwrap();
    let named = loaded("shapes", "host: resnet((blocks: [1, 2])), slots: [\"r1c0\"]").unwrap();

    assert_eq!((residual.host.channels, residual.host.side), (1, 24));
    assert_eq!(slots(&residual), "r0c0 r1c1");
    assert_eq!(slots(&named), "r1c0");
}

#[test]
fn data_are_not_looked_at_where_the_file_says_all() {
    let said = loaded("elsewhere", "classes: 5, host: cnn((in_channels: 1, input_hw: 16))").unwrap();
    let asked = loaded("elsewhere", "classes: 5, host: cnn((in_channels: 1))").unwrap_err();

    assert_eq!((said.task.classes, said.host.side), (5, 16));
    assert!(asked.contains("was looked at"), "{asked}");
    assert!(asked.contains("x.ron:1:32"), "{asked}");
}
