//! The columns of all tables, as the page about them declares them: name, type, unit, meaning, and where the value stands in a row,
//! which is an event or a JSON document like one. A cell is empty where a row has no value, unless the type says what stands for it.

use serde_json::Value;

/// A section a table.
const PAGE: &str = include_str!("../../docs/reference/tables.md");

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellKind {
    Integer,
    Number,
    /// What is no text in a row is one of JSON.
    Text,
    Flag,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: CellKind,
    /// Names of fields, from the outermost on.
    path: Vec<String>,
    /// Stands for a value that is left out.
    default: Value,
}

impl Column {
    /// A column of texts that the page does not know: a row has the value under its name.
    pub(super) fn text(name: &str) -> Self {
        Self {
            name: name.into(),
            kind: CellKind::Text,
            path: vec![name.into()],
            default: Value::Null,
        }
    }

    /// `None` for a line that declares no column.
    fn parse(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line
            .strip_prefix('|')?
            .strip_suffix('|')?
            .split('|')
            .map(str::trim)
            .collect();
        let [name, kind, _unit, _meaning, path] = cells[..] else {
            return None;
        };
        let (kind, default) = kind.split_once(", else ").unwrap_or((kind, "null"));
        Some(Self {
            name: name.trim_matches('`').into(),
            kind: match kind {
                "integer" => CellKind::Integer,
                "number" => CellKind::Number,
                "text" => CellKind::Text,
                "flag" => CellKind::Flag,
                _ => return None,
            },
            path: path.trim_matches('`').split('.').map(str::to_owned).collect(),
            default: serde_json::from_str(default).ok()?,
        })
    }

    /// The value of a row, or null.
    pub(super) fn of<'a>(&'a self, row: &'a Value) -> &'a Value {
        let found = self.path.iter().try_fold(row, |value, field| value.get(field));
        found.unwrap_or(&self.default)
    }
}

/// The columns of a table, in order.
pub(super) fn columns(table: &str) -> Vec<Column> {
    let sections = PAGE.split("\n## ").skip(1);
    let section = sections
        .into_iter()
        .find_map(|section| section.strip_prefix(table)?.strip_prefix('\n'));
    section.unwrap_or_default().lines().filter_map(Column::parse).collect()
}
