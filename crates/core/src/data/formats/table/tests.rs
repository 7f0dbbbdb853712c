use std::fs;
use std::sync::Arc;

use image::{DynamicImage, ImageFormat, Luma, Rgb};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::FixedLenByteArray;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;

/// Images of 1x2 pixels, one channel.
const PAIRS: Columns = Columns {
    image: "image",
    label: "label",
    shape: Some(Shape {
        channels: 1,
        height: 1,
        width: 2,
    }),
};
const FILES: Columns = Columns { shape: None, ..PAIRS };

const LISTS: &str = "message m {
    optional group image (LIST) { repeated group list { required int32 element; } }
    required int64 label; }";
const BYTES: &str = "message m { optional binary image; required int32 label; }";
const FIXED: &str = "message m { required fixed_len_byte_array(2) image; optional int64 label; }";

/// Values of a column with the levels of definition and repetition.
enum Values {
    Int32(Vec<i32>, Vec<i16>, Vec<i16>),
    Int64(Vec<i64>, Vec<i16>),
    Bytes(Vec<Vec<u8>>, Vec<i16>),
    Fixed(Vec<Vec<u8>>),
}

impl Values {
    fn write(&self, column: &mut ColumnWriter) {
        let levels = |levels: &Vec<i16>| (!levels.is_empty()).then(|| levels.clone());
        let written = match (self, column) {
            (Self::Int32(values, presence, lists), ColumnWriter::Int32ColumnWriter(writer)) => {
                writer.write_batch(values, levels(presence).as_deref(), levels(lists).as_deref())
            }
            (Self::Int64(values, presence), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, levels(presence).as_deref(), None)
            }
            (Self::Bytes(rows, presence), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                let rows: Vec<ByteArray> = rows.iter().cloned().map(ByteArray::from).collect();
                writer.write_batch(&rows, levels(presence).as_deref(), None)
            }
            (Self::Fixed(rows), ColumnWriter::FixedLenByteArrayColumnWriter(writer)) => {
                let rows: Vec<_> = rows
                    .iter()
                    .cloned()
                    .map(ByteArray::from)
                    .map(FixedLenByteArray::from)
                    .collect();
                writer.write_batch(&rows, None, None)
            }
            _ => panic!("the values are of another type"),
        };
        written.unwrap();
    }
}

/// A table with these row groups, each of one image and one label column.
fn table(schema: &str, groups: &[[Values; 2]]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    for columns in groups {
        let mut group = writer.next_row_group().unwrap();
        for values in columns {
            let mut column = group.next_column().unwrap().unwrap();
            values.write(column.untyped());
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    (folder, path)
}

fn found(schema: &str, groups: &[[Values; 2]], columns: Columns) -> Result<Found, DataError> {
    let (_folder, path) = table(schema, groups);
    read(&path, None, columns)
}

/// The error without the folder of the table.
fn message(schema: &str, groups: &[[Values; 2]], columns: Columns) -> String {
    let text = found(schema, groups, columns).unwrap_err().to_string();
    let (_, after) = text.split_once("/a.parquet").unwrap();
    format!("a.parquet{after}")
}

/// Two lists in one row group, with the given values in the second.
fn lists(second: &[i32]) -> [[Values; 2]; 1] {
    let values = [&[1, 2], second].concat();
    let mut continues = vec![0, 1];
    continues.extend((0..second.len()).map(|at| i16::from(at > 0)));
    [[
        Values::Int32(values.clone(), vec![2; values.len()], continues),
        Values::Int64(vec![0, 1], Vec::new()),
    ]]
}

fn png(image: DynamicImage) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

fn gray(value: u8, width: u32) -> Vec<u8> {
    png(image::GrayImage::from_pixel(width, 1, Luma([value])).into())
}

fn files(rows: Vec<Vec<u8>>) -> [Values; 2] {
    let labels = (0..rows.len() as i32).collect();
    let present = vec![1; rows.len()];
    [
        Values::Bytes(rows, present),
        Values::Int32(labels, Vec::new(), Vec::new()),
    ]
}

#[test]
fn lists_of_numbers_bytes_and_bytes_of_fixed_length_are_the_same_images() {
    let present = || vec![1, 1];
    let bytes = || vec![vec![1, 2], vec![3, 255]];
    let of_lists = found(LISTS, &lists(&[3, 255]), PAIRS).unwrap();
    let of_bytes = [[
        Values::Bytes(bytes(), present()),
        Values::Int32(vec![0, 1], Vec::new(), Vec::new()),
    ]];
    let of_fixed = [[Values::Fixed(bytes()), Values::Int64(vec![0, 1], present())]];

    assert_eq!(of_lists.train.part.pixels().unwrap()[..], [1, 2, 3, 255]);
    assert_eq!(of_lists.train.part.labels, [0, 1]);
    assert_eq!(found(BYTES, &of_bytes, PAIRS).unwrap(), of_lists);
    assert_eq!(found(FIXED, &of_fixed, PAIRS).unwrap(), of_lists);
}

#[test]
fn rows_of_all_groups_are_read_in_order_and_gray_files_among_coloured_ones_get_three_channels() {
    let coloured = png(image::RgbImage::from_pixel(2, 1, Rgb([1, 2, 3])).into());
    let groups = [files(vec![gray(7, 2)]), files(vec![coloured, gray(9, 2)])];

    let train = found(BYTES, &groups, FILES).unwrap().train;

    assert_eq!((train.shape.channels, train.shape.height, train.shape.width), (3, 1, 2));
    assert_eq!(
        *train.part.pixels().unwrap(),
        [7, 7, 7, 7, 7, 7, 1, 2, 3, 1, 2, 3, 9, 9, 9, 9, 9, 9]
    );
    assert_eq!(train.part.labels, [0, 0, 1]);
}

#[test]
fn deep_images_are_noted() {
    let deep = png(image::ImageBuffer::from_pixel(2, 1, Luma([0x0102_u16])).into());

    let found = found(BYTES, &[files(vec![deep])], FILES).unwrap();

    assert_eq!(found.notes.len(), 1);
    assert!(found.notes[0].ends_with("1 images of more than 8 bits a channel are kept in 8"));
}

#[test]
fn what_is_wrong_is_told_with_file_group_row_and_column() {
    let good = || gray(1, 2);
    let damaged = || [files(vec![good()]), files(vec![good(), b"no image".to_vec()])];
    let other_size = [files(vec![good(), gray(1, 3)])];
    let absent = || Columns {
        label: "class",
        ..PAIRS
    };
    let hole = [[
        Values::Bytes(vec![good()], vec![1, 0]),
        Values::Int32(vec![0, 1], Vec::new(), Vec::new()),
    ]];
    let no_label = [[
        Values::Fixed(vec![vec![1, 2], vec![3, 4]]),
        Values::Int64(vec![0], vec![1, 0]),
    ]];
    let empty_list = [[
        Values::Int32(vec![1, 2], vec![2, 2, 1], vec![0, 1, 0]),
        Values::Int64(vec![0, 1], Vec::new()),
    ]];
    let messages = [
        message(LISTS, &lists(&[3, 256]), PAIRS),
        message(LISTS, &lists(&[3, 4, 5]), PAIRS),
        message(LISTS, &empty_list, PAIRS),
        message(LISTS, &lists(&[3, 4]), absent()),
        message(LISTS, &lists(&[3, 4]), FILES),
        message(BYTES, &damaged(), FILES),
        message(BYTES, &damaged(), PAIRS),
        message(BYTES, &other_size, FILES),
        message(BYTES, &hole, FILES),
        message(FIXED, &no_label, PAIRS),
        message(BYTES, &[], FILES),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_file_that_is_cut_short_is_damaged() {
    let (_folder, path) = table(BYTES, &[files(vec![gray(1, 2)])]);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();

    let error = read(&path, None, FILES).unwrap_err();

    assert!(
        matches!(&error, DataError::Table { file, .. } if file.ends_with("a.parquet")),
        "{error}"
    );
}
