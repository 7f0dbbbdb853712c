//! Tables for programs.

/// Comma-separated values as of RFC 4180, with the line ends of Unix.
pub struct Csv(pub String);

impl Csv {
    /// A table of these columns.
    pub fn new(columns: &[&str]) -> Self {
        let mut csv = Self(String::new());
        let columns: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
        csv.push(&columns);
        csv
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[String]) {
        for (index, field) in row.iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            if field.contains([',', '"', '\n', '\r']) {
                self.0.push('"');
                self.0.push_str(&field.replace('"', "\"\""));
                self.0.push('"');
            } else {
                self.0.push_str(field);
            }
        }
        self.0.push('\n');
    }
}

/// A number with all digits, so that the same number is read back. Empty where there is none.
pub(super) fn exact(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests;
