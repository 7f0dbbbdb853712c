use std::fs;
use std::sync::Arc;

use image::{DynamicImage, ImageFormat, Luma, Rgb};
use parquet::data_type::{ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;

use super::*;
use crate::data::locate::tests::assert_refused;
use crate::scenario::ListedShape;

/// Images of 1x2 pixels, one channel.
const PAIRS: Columns = Columns {
    label: "label",
    shape: Some(ListedShape {
        height: 1,
        width: 2,
        channels: 1,
    }),
};
const FILES: Columns = Columns { shape: None, ..PAIRS };

/// The label column of a table, and the shape of its images where it is listed.
#[derive(Clone, Copy)]
struct Columns {
    label: &'static str,
    shape: Option<ListedShape>,
}

impl From<Columns> for ParquetTable {
    fn from(columns: Columns) -> Self {
        Self {
            label: columns.label.into(),
            shape: columns.shape,
            ..Self::default()
        }
    }
}

const LISTS: &str = "message m {
    optional group image (LIST) { repeated group list { required int32 element; } }
    required int64 label; }";
const BYTES: &str = "message m { optional binary image; required int32 label; }";
const FIXED: &str = "message m { required fixed_len_byte_array(2) image; optional int64 label; }";

/// Writes the values of a column.
type Values = Box<dyn Fn(&mut SerializedColumnWriter)>;

/// With their levels of definition and repetition, where they have some.
fn values<T: DataType<T: 'static>>(values: Vec<T::T>, levels: [&[i16]; 2]) -> Values {
    let [presence, lists] = levels.map(|levels| (!levels.is_empty()).then(|| levels.to_vec()));
    Box::new(move |column| {
        let column = column.typed::<T>();
        let written = column.write_batch(&values, presence.as_deref(), lists.as_deref());
        written.unwrap();
    })
}

/// The levels of values none of which can be absent.
const PRESENT: [&[i16]; 2] = [&[], &[]];

/// A table with these row groups, each of one image and one label column.
fn table(schema: &str, groups: &[[Values; 2]]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(&path).unwrap(), schema, Arc::default()).unwrap();
    for columns in groups {
        let mut group = writer.next_row_group().unwrap();
        for write in columns {
            let mut column = group.next_column().unwrap().unwrap();
            write(&mut column);
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    (folder, path)
}

fn found(schema: &str, groups: &[[Values; 2]], columns: Columns) -> Result<Found, DataError> {
    let (_folder, path) = table(schema, groups);
    read(&path, None, &columns.into())
}

/// The error without the folder of the table.
fn message(schema: &str, groups: &[[Values; 2]], columns: Columns) -> String {
    let text = found(schema, groups, columns).unwrap_err().to_string();
    let (_, after) = text.split_once("/a.parquet").unwrap();
    format!("a.parquet{after}")
}

/// Two lists in one row group, with the given values in the second.
fn lists(second: &[i32]) -> [[Values; 2]; 1] {
    let numbers = [&[1, 2], second].concat();
    let mut continues = vec![0, 1];
    continues.extend((0..second.len()).map(|at| i16::from(at > 0)));
    let levels = [&vec![2; numbers.len()][..], &continues];
    let labels = values::<Int64Type>(vec![0, 1], PRESENT);
    [[values::<Int32Type>(numbers, levels), labels]]
}

fn png(image: DynamicImage) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

fn gray(value: u8, width: u32) -> Vec<u8> {
    png(image::GrayImage::from_pixel(width, 1, Luma([value])).into())
}

fn fixed(rows: Vec<Vec<u8>>) -> Values {
    let rows = rows.into_iter().map(FixedLenByteArray::from).collect();
    values::<FixedLenByteArrayType>(rows, PRESENT)
}

fn files(rows: Vec<Vec<u8>>) -> [Values; 2] {
    let labels = (0..rows.len() as i32).collect();
    let present = vec![1; rows.len()];
    let rows = rows.into_iter().map(ByteArray::from).collect();
    let labels = values::<Int32Type>(labels, PRESENT);
    [values::<ByteArrayType>(rows, [&present, &[]]), labels]
}

#[test]
fn lists_of_numbers_bytes_and_bytes_of_fixed_length_are_the_same_images() {
    let bytes = || vec![vec![1, 2], vec![3, 255]];
    let of_lists = found(LISTS, &lists(&[3, 255]), PAIRS).unwrap();
    let of_bytes = [files(bytes())];
    let of_fixed = [[fixed(bytes()), values::<Int64Type>(vec![0, 1], [&[1, 1], &[]])]];

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
    let pixels = [7, 7, 7, 7, 7, 7, 1, 2, 3, 1, 2, 3, 9, 9, 9, 9, 9, 9];
    assert_eq!(train.part.pixels().unwrap()[..], pixels);
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
fn faults_are_reported_with_file_group_row_and_column() {
    let good = || gray(1, 2);
    let damaged = || [files(vec![good()]), files(vec![good(), b"no image".to_vec()])];
    let other_size = [files(vec![good(), gray(1, 3)])];
    let absent = Columns {
        label: "class",
        ..PAIRS
    };
    let [_, labels] = files(vec![good(), good()]);
    let hole = [[values::<ByteArrayType>(vec![good().into()], [&[1, 0], &[]]), labels]];
    let one_label = values::<Int64Type>(vec![0], [&[1, 0], &[]]);
    let no_label = [[fixed(vec![vec![1, 2], vec![3, 4]]), one_label]];
    let empty = values::<Int32Type>(vec![1, 2], [&[2, 2, 1], &[0, 1, 0]]);
    let empty_list = [[empty, values::<Int64Type>(vec![0, 1], PRESENT)]];
    let messages = [
        message(LISTS, &lists(&[3, 256]), PAIRS),
        message(LISTS, &lists(&[3, 4, 5]), PAIRS),
        message(LISTS, &empty_list, PAIRS),
        message(LISTS, &lists(&[3, 4]), absent),
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

    assert_refused(read(&path, None, &FILES.into()), "a.parquet cannot be read (");
}
