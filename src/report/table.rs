//! Tables of plain text.

use std::fmt::Write;

/// Spaces before every column.
const GAP: usize = 2;
/// The smallest width of a cut text.
const SHORTEST: usize = 8;

/// Columns as wide as their widest cell, two spaces apart, with a rule under the head.
pub struct Table {
    head: Vec<String>,
    /// Number of columns with texts; columns with numbers follow.
    texts: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these rows: columns of texts, aligned to the left, then those of numbers, aligned to the right. Cells left out
    /// at the end of a row are empty.
    pub fn of(texts: &[&str], numbers: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        let head: Vec<String> = texts.iter().chain(numbers).map(ToString::to_string).collect();
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.iter_mut().for_each(|row| row.resize(head.len(), String::new()));
        let texts = texts.len();
        Self { head, texts, rows }
    }

    /// The table in lines of at most `width` characters: columns of those headed as in `droppable` go, in this order, as
    /// long as there is no room for them, then the widest texts are cut short. Numbers are never cut.
    pub fn render_within(mut self, width: usize, droppable: &[&str]) -> String {
        for head in droppable {
            if self.width() <= width {
                break;
            }
            self.drop_column(head);
        }
        let excess = self.width().saturating_sub(width);
        if excess > 0 {
            self.cut_texts(excess);
        }
        self.render()
    }

    /// Characters of a line.
    fn width(&self) -> usize {
        self.widths().iter().map(|width| width + GAP).sum()
    }

    fn widths(&self) -> Vec<usize> {
        let rows = || std::iter::once(&self.head).chain(&self.rows);
        let widest = |column: usize| rows().map(|row| row[column].chars().count()).max();
        (0..self.head.len()).filter_map(widest).collect()
    }

    /// The table without a column.
    pub fn without(mut self, head: &str) -> Self {
        self.drop_column(head);
        self
    }

    fn drop_column(&mut self, head: &str) {
        let Some(column) = self.head.iter().position(|name| name == head) else {
            return;
        };
        self.texts -= usize::from(column < self.texts);
        for row in std::iter::once(&mut self.head).chain(&mut self.rows) {
            row.remove(column);
        }
    }

    /// Takes `excess` characters from the widest column of texts, as far as it has them.
    fn cut_texts(&mut self, excess: usize) {
        let widths = self.widths();
        let Some(column) = (0..self.texts).max_by_key(|&column| widths[column]) else {
            return;
        };
        let limit = widths[column].saturating_sub(excess).max(SHORTEST);
        for row in std::iter::once(&mut self.head).chain(&mut self.rows) {
            let cell = &mut row[column];
            if cell.chars().count() > limit {
                *cell = cell.chars().take(limit - 1).chain(['…']).collect();
            }
        }
    }

    /// Heads of the columns, the number of columns with texts, and the rows, for a page.
    pub fn parts(self) -> (Vec<String>, usize, Vec<Vec<String>>) {
        (self.head, self.texts, self.rows)
    }

    /// One line a row, columns two spaces apart.
    pub fn render(&self) -> String {
        let widths = self.widths();
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

#[cfg(test)]
mod tests;
