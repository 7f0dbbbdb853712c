//! Tables of images in Parquet files: a column of labels, and one of images, as image files or as lists of bytes.

use std::fmt::Display;
use std::fs::File;
use std::io::Cursor;
use std::ops::Range;
use std::path::{Path, PathBuf};

use image::ImageReader;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::Found;
use super::decode::{self, DEEP, Failures, VALID};
use crate::data::DataError;
use crate::data::error::listed;
use crate::data::part::{Part, Pool, room_for};
use crate::data::shape::Shape;
use crate::files;
use crate::scenario::ParquetTable;

/// Value that means 1.0.
const SCALE: f64 = 255.0;
/// Remedy for a faulty row.
const CORRECT: &str = "correct it, or leave its row out";

/// Reads a table, and one of the test part if there is one, as `columns` says.
///
/// # Errors
/// A file that is damaged, or has no images, a column that is missing or of another type, or a row without an image or a label.
pub fn read(train: &Path, test: Option<PathBuf>, columns: &ParquetTable) -> Result<Found, DataError> {
    let mut notes = Vec::new();
    let train = pool(train, columns, &mut notes)?;
    Ok(Found {
        test: test.map(|path| pool(&path, columns, &mut notes)).transpose()?,
        notes,
        ..Found::of("parquet", SCALE, train)
    })
}

fn pool(path: &Path, columns: &ParquetTable, notes: &mut Vec<String>) -> Result<Pool, DataError> {
    let table = Table::open(path)?;
    let labels = table.labels(&table.column(&columns.label)?)?;
    if labels.is_empty() {
        return Err(DataError::no_images(table.file));
    }
    let column = table.column(&columns.image)?;
    let shape = columns.shape.map(|shape| Shape {
        channels: shape.channels,
        height: shape.height,
        width: shape.width,
    });
    let (shape, images) = match shape {
        Some(shape) => (shape, table.lists(&column, shape)?),
        None => decoded(&column, &table.files(&column)?, notes)?,
    };
    let images = images.into();
    Ok(Pool::of(shape, Part { images, labels }))
}

/// An open file.
struct Table {
    /// As errors name it.
    file: String,
    reader: SerializedFileReader<File>,
}

/// A column, and what it takes to read it.
struct Column<'a> {
    file: &'a str,
    name: &'a str,
    index: usize,
    /// Level of a value that is there.
    present: i16,
    /// Depth of nested lists. 0 if a row is a value.
    depth: i16,
}

/// A column's values in a row group.
struct Cells<T> {
    values: Vec<T>,
    /// Number of values in each row. Only for lists.
    lengths: Vec<usize>,
    /// The first row without a value, or a list with a hole.
    hole: Option<usize>,
}

/// An image as a file in a row of a group.
struct ImageCell {
    group: usize,
    row: usize,
    bytes: ByteArray,
}

impl Column<'_> {
    fn wrong_kind(&self, valid: &str) -> DataError {
        let fault = format!("table {}: column '{}' is of another type", self.file, self.name);
        DataError::new(fault, format!("valid: {valid}"))
    }

    fn cell(&self, group: usize, row: usize, fault: impl Display, remedy: &str) -> DataError {
        let (file, name) = (self.file, self.name);
        let place = format!("table {file}: row {row} of row group {group}, column '{name}'");
        DataError::new(format!("{place}, {fault}"), remedy)
    }
}

impl Table {
    fn open(path: &Path) -> Result<Self, DataError> {
        let file = files::open(path).map_err(|cause| DataError::io(path, cause))?;
        let name = path.display().to_string();
        match SerializedFileReader::new(file) {
            Ok(reader) => Ok(Self { file: name, reader }),
            Err(cause) => Err(damaged(&name, &cause)),
        }
    }

    /// The column of that name, or the one inside it: lists are stored as `name.list.element`.
    fn column<'a>(&'a self, name: &'a str) -> Result<Column<'a>, DataError> {
        let columns = self.reader.metadata().file_metadata().schema_descr().columns();
        let paths: Vec<String> = columns.iter().map(|column| column.path().string()).collect();
        let is_inside = |path: &str| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let inside: Vec<usize> = (0..paths.len()).filter(|&index| is_inside(&paths[index])).collect();
        let exact = paths.iter().position(|path| path == name);
        match (exact, &inside[..]) {
            (Some(index), _) | (None, &[index]) => Ok(Column {
                file: &self.file,
                name,
                index,
                present: columns[index].max_def_level(),
                depth: columns[index].max_rep_level(),
            }),
            _ => Err(DataError::new(
                format!("table {}: there is no column '{name}'", self.file),
                format!("valid: {}", listed(paths)),
            )),
        }
    }

    fn groups(&self) -> Range<usize> {
        0..self.reader.num_row_groups()
    }

    fn group(&self, group: usize, column: &Column) -> Result<ColumnReader, DataError> {
        let reader = self.reader.get_row_group(group);
        let column = reader.and_then(|group| group.get_column_reader(column.index));
        column.map_err(|cause| damaged(&self.file, &cause))
    }

    /// All rows of a row group.
    fn cells<T: DataType>(
        &self,
        column: &Column,
        group: usize,
        mut reader: ColumnReaderImpl<T>,
    ) -> Result<Cells<T::T>, DataError> {
        let rows = self.reader.metadata().row_group(group).num_rows();
        let rows = usize::try_from(rows).map_err(|cause| damaged(&self.file, &cause))?;
        let (mut values, mut presence, mut lists) = (Vec::new(), Vec::new(), Vec::new());
        let mut found = 0;
        while found < rows {
            let read = reader.read_records(rows - found, Some(&mut presence), Some(&mut lists), &mut values);
            let (records, ..) = read.map_err(|cause| damaged(&self.file, &cause))?;
            if records == 0 {
                let cause = format!("row group {group} has {found} of {rows} rows");
                return Err(damaged(&self.file, &cause));
            }
            found += records;
        }
        let missing = presence.iter().position(|&level| level < column.present);
        if column.depth == 0 {
            return Ok(Cells {
                values,
                lengths: Vec::new(),
                hole: missing,
            });
        }
        // Repetition level 0 begins a list; any other level continues it.
        let starts: Vec<usize> = (0..lists.len()).filter(|&at| lists[at] == 0).collect();
        let ends = starts.iter().skip(1).copied().chain([lists.len()]);
        Ok(Cells {
            values,
            lengths: starts.iter().zip(ends).map(|(start, end)| end - start).collect(),
            hole: missing.map(|at| starts.partition_point(|&start| start <= at) - 1),
        })
    }

    /// Values of a column that has one per row.
    fn flat<T: DataType>(
        &self,
        column: &Column,
        group: usize,
        reader: ColumnReaderImpl<T>,
    ) -> Result<Vec<T::T>, DataError> {
        let cells = self.cells(column, group, reader)?;
        match cells.hole {
            Some(row) => Err(column.cell(group, row, "has no value", CORRECT)),
            None => Ok(cells.values),
        }
    }

    fn labels(&self, column: &Column) -> Result<Vec<i64>, DataError> {
        let mut labels = Vec::new();
        for group in self.groups() {
            match self.group(group, column)? {
                ColumnReader::Int32ColumnReader(reader) if column.depth == 0 => {
                    labels.extend(self.flat(column, group, reader)?.into_iter().map(i64::from));
                }
                ColumnReader::Int64ColumnReader(reader) if column.depth == 0 => {
                    labels.extend(self.flat(column, group, reader)?);
                }
                _ => return Err(column.wrong_kind("integers, one a row")),
            }
        }
        Ok(labels)
    }

    /// Images that are lists of bytes, one after the other.
    fn lists(&self, column: &Column, shape: Shape) -> Result<Vec<u8>, DataError> {
        let mut images = Vec::new();
        for group in self.groups() {
            match self.group(group, column)? {
                ColumnReader::Int32ColumnReader(reader) if column.depth == 1 => {
                    let cells = self.cells(column, group, reader)?;
                    append_lists(column, group, &cells, shape, &mut images)?;
                }
                ColumnReader::ByteArrayColumnReader(reader) if column.depth == 0 => {
                    let rows = self.flat(column, group, reader)?;
                    append_bytes(column, group, rows.iter().map(ByteArray::data), shape, &mut images)?;
                }
                ColumnReader::FixedLenByteArrayColumnReader(reader) if column.depth == 0 => {
                    let rows = self.flat(column, group, reader)?;
                    append_bytes(column, group, rows.iter().map(|row| row.data()), shape, &mut images)?;
                }
                _ => return Err(column.wrong_kind("lists of whole numbers up to 32 bits, or bytes")),
            }
        }
        Ok(images)
    }

    /// Images that are files.
    fn files(&self, column: &Column) -> Result<Vec<ImageCell>, DataError> {
        let mut files = Vec::new();
        for group in self.groups() {
            match self.group(group, column)? {
                ColumnReader::ByteArrayColumnReader(reader) if column.depth == 0 => {
                    let rows = self.flat(column, group, reader)?.into_iter().enumerate();
                    files.extend(rows.map(|(row, bytes)| ImageCell { group, row, bytes }));
                }
                _ => return Err(column.wrong_kind("image files; lists of bytes need task.data.shape")),
            }
        }
        Ok(files)
    }
}

fn damaged(file: &str, cause: &dyn Display) -> DataError {
    DataError::new(
        format!("table {file} cannot be read ({cause})"),
        "it isn't a Parquet file, is damaged, or is compressed in an unsupported way",
    )
}

fn append_lists(
    column: &Column,
    group: usize,
    cells: &Cells<i32>,
    shape: Shape,
    images: &mut Vec<u8>,
) -> Result<(), DataError> {
    let size = shape.size();
    let wrong = || cells.lengths.iter().position(|&length| length != size);
    if let Some(row) = cells.hole.or_else(wrong) {
        let fault = format!("isn't a list of {size} values, as {shape} take");
        return Err(column.cell(group, row, fault, CORRECT));
    }
    for (at, &value) in cells.values.iter().enumerate() {
        let Ok(byte) = u8::try_from(value) else {
            let fault = format!("has {value} at place {} of its list", at % size);
            return Err(column.cell(group, at / size, fault, "valid: 0 to 255"));
        };
        images.push(byte);
    }
    Ok(())
}

fn append_bytes<'a>(
    column: &Column,
    group: usize,
    rows: impl Iterator<Item = &'a [u8]>,
    shape: Shape,
    images: &mut Vec<u8>,
) -> Result<(), DataError> {
    for (row, bytes) in rows.enumerate() {
        if bytes.len() != shape.size() {
            let fault = format!("has {} bytes, where {shape} take {}", bytes.len(), shape.size());
            return Err(column.cell(group, row, fault, CORRECT));
        }
        images.extend_from_slice(bytes);
    }
    Ok(())
}

/// Decodes files, which all have the size of the first. Gray ones among coloured ones get three equal channels.
fn decoded(column: &Column, files: &[ImageCell], notes: &mut Vec<String>) -> Result<(Shape, Vec<u8>), DataError> {
    let open = |index: usize| {
        let reader = ImageReader::new(Cursor::new(files[index].bytes.data())).with_guessed_format();
        reader.map_err(|error| error.to_string())
    };
    let refused = |failures: Failures| {
        let (index, cause) = failures.into_iter().next().unwrap_or_default();
        let fault = format!("isn't an image that can be read ({cause})");
        column.cell(files[index].group, files[index].row, fault, VALID)
    };
    let heads = decode::each(0..files.len(), |index| decode::head(open(index)?)).map_err(refused)?;
    let size = heads.first().map_or((0, 0), |first| (first.width, first.height));
    for (file, head) in files.iter().zip(&heads) {
        if (head.width, head.height) != size {
            let fault = format!(
                "has {}x{} pixels (width x height), but the first has {}x{}",
                head.width, head.height, size.0, size.1
            );
            return Err(column.cell(file.group, file.row, fault, "save all images in one size"));
        }
    }
    let deep = heads.iter().filter(|head| head.is_deep).count();
    if deep > 0 {
        let file = column.file;
        notes.push(format!("{file}: {deep} {DEEP}"));
    }
    let shape = Shape {
        channels: decode::channels(&heads),
        height: size.1 as usize,
        width: size.0 as usize,
    };
    let mut images = room_for(files.len(), shape.bytes())?;
    decode::all(files.len(), shape, open, &mut images).map_err(refused)?;
    Ok((shape, images))
}

#[cfg(test)]
mod tests;
