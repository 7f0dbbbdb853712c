//! Tables of plain text.

use std::fmt::Write;

/// Columns as wide as their widest cell, two spaces apart, with a rule under the head.
pub struct Table {
    head: Vec<String>,
    /// So many columns hold texts; numbers follow.
    texts: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows: columns of texts, aligned to the left, then those of numbers, aligned to the right.
    pub fn new(texts: &[&str], numbers: &[&str]) -> Self {
        Self {
            head: texts.iter().chain(numbers).map(ToString::to_string).collect(),
            texts: texts.len(),
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
                .enumerate()
                .map(|(column, (cell, &width))| match column < self.texts {
                    true => format!("{cell:<width$}"),
                    false => format!("{cell:>width$}"),
                })
                .collect();
            _ = writeln!(text, "  {}", cells.join("  ").trim_end());
        }
        text
    }
}
