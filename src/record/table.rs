//! Tables of plain text.

use std::fmt::Write;

/// Side to which a column is aligned.
#[derive(Clone, Copy)]
pub enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// Columns as wide as their widest cell, two spaces apart, with a rule under the head.
pub struct Table {
    head: Vec<String>,
    align: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            head: columns.iter().map(|(name, _)| (*name).into()).collect(),
            align: columns.iter().map(|(_, align)| *align).collect(),
            rows: Vec::new(),
        }
    }

    /// Cells left out at the end are empty.
    pub fn push(&mut self, mut row: Vec<String>) {
        row.resize(self.head.len(), String::new());
        self.rows.push(row);
    }

    /// One line a row, columns two spaces apart.
    pub fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                std::iter::once(&self.head)
                    .chain(&self.rows)
                    .map(|row| row[column].chars().count())
                    .max()
                    .unwrap_or_default()
            })
            .collect();
        let rule = widths.iter().map(|width| "─".repeat(*width)).collect();
        let mut text = String::new();
        for row in [&self.head, &rule].into_iter().chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .zip(&self.align)
                .map(|((cell, &width), align)| match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                })
                .collect();
            _ = writeln!(text, "  {}", cells.join("  ").trim_end());
        }
        text
    }
}
