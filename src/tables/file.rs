//! A Parquet file that is written row by row: cells wait in memory until they are a row group.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::Value;

use super::schema::{CellKind, Column};
use crate::storage;

/// Rows of a group: some megabytes a table.
const GROUP_ROWS: u64 = 4096;
/// Name of the writer in files; a version follows.
const CREATOR: &str = "simic-engine ";

/// Returns whether a file was written by this program, of any version.
pub(super) fn is_own(path: &Path) -> bool {
    let file = crate::files::open(path).map_err(ParquetError::from);
    let reader = file.and_then(SerializedFileReader::new);
    let creator = reader.map(|reader| reader.metadata().file_metadata().created_by().map(str::to_owned));
    creator.is_ok_and(|creator| creator.is_some_and(|creator| creator.starts_with(CREATOR)))
}

/// A table on its way to disk.
pub(super) struct TableFile {
    pub(super) path: PathBuf,
    pub(super) rows: u64,
    /// Columns with the cells that wait.
    columns: Vec<(Column, Vec<Value>)>,
    writer: SerializedFileWriter<storage::File>,
}

impl TableFile {
    pub(super) fn create(path: PathBuf, columns: Vec<Column>) -> Result<Self, ParquetError> {
        let fields: Result<Vec<_>, _> = columns.iter().map(field).collect();
        let schema = Type::group_type_builder("table").with_fields(fields?).build()?;
        let properties = WriterProperties::builder()
            .set_created_by(format!("{CREATOR}{}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::SNAPPY)
            .build();
        let file = storage::File::create(&path)?;
        Ok(Self {
            rows: 0,
            writer: SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?,
            columns: columns.into_iter().map(|column| (column, Vec::new())).collect(),
            path,
        })
    }

    pub(super) fn push(&mut self, row: &Value) -> Result<(), ParquetError> {
        for (column, cells) in &mut self.columns {
            cells.push(column.of(row).clone());
        }
        self.rows += 1;
        if self.rows.is_multiple_of(GROUP_ROWS) {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (column, cells) in &mut self.columns {
            if let Some(writer) = group.next_column()? {
                write(column.kind, writer, cells)?;
            }
            cells.clear();
        }
        group.close()?;
        Ok(())
    }

    /// Writes what waits and the footer, and waits for the device.
    pub(super) fn finish(mut self) -> Result<(), ParquetError> {
        if !self.rows.is_multiple_of(GROUP_ROWS) {
            self.write_group()?;
        }
        Ok(self.writer.into_inner()?.sync()?)
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.kind {
        CellKind::Integer => (Physical::INT64, None),
        CellKind::Number => (Physical::DOUBLE, None),
        CellKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        CellKind::Flag => (Physical::BOOLEAN, None),
    };
    let builder = Type::primitive_type_builder(&column.name, physical);
    let builder = builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
    builder.build().map(Arc::new)
}

fn write(kind: CellKind, writer: SerializedColumnWriter<'_>, cells: &[Value]) -> Result<(), ParquetError> {
    match kind {
        CellKind::Integer => put::<Int64Type>(writer, cells, Value::as_i64),
        CellKind::Number => put::<DoubleType>(writer, cells, number),
        CellKind::Text => put::<ByteArrayType>(writer, cells, text),
        CellKind::Flag => put::<BoolType>(writer, cells, Value::as_bool),
    }
}

/// A number, or the text that events use for one that is not finite.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// A text, or the JSON of anything else.
fn text(value: &Value) -> Option<ByteArray> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (!value.is_null()).then(|| text.into_bytes().into())
}

/// Writes the cells from which `read` has a value; the others are empty.
fn put<T: DataType>(
    mut writer: SerializedColumnWriter<'_>,
    cells: &[Value],
    read: fn(&Value) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = cells.iter().map(read).collect();
    let presence: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    writer.typed::<T>().write_batch(&values, Some(&presence), None)?;
    writer.close()
}
