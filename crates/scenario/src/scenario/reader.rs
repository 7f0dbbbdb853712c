//! Reads RON text into a [`Node`] tree with positions. Stops at the first syntax error; keys given twice are noted.

use std::collections::HashSet;

use super::problem::{BYTE_ORDER_MARK, Problem};
use super::tree::{Name, Node, Span, Value};

/// Nesting beyond this is refused, so that hostile text cannot exhaust the stack.
const MAX_DEPTH: usize = 64;

/// A tree, and its keys that are given twice.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    pub root: Node,
    pub noted: Vec<Problem>,
}

/// Reads the whole of `text`, which is source number `source`.
pub fn read(text: &str, source: usize) -> Read<Document> {
    let mut reader = Reader {
        text,
        at: text.len() - text.trim_start_matches(BYTE_ORDER_MARK).len(),
        source,
        noted: Vec::new(),
    };
    reader.skip_space()?;
    while reader.rest().starts_with("#!") {
        reader.attribute()?;
    }
    let root = reader.node(0)?;
    if reader.peek().is_some() {
        return Err(reader.error_here("expected the end of the text"));
    }
    Ok(Document {
        root,
        noted: reader.noted,
    })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    source: usize,
    noted: Vec<Problem>,
}

type Read<T> = Result<T, Problem>;

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn span_from(&self, start: usize) -> Span {
        Span {
            source: self.source,
            start,
            end: self.at,
        }
    }

    fn error_from(&self, start: usize, message: impl Into<String>) -> Problem {
        Problem::error(self.span_from(start), "", message)
    }

    fn error_here(&self, expectation: &str) -> Problem {
        let found = match self.peek() {
            Some(next) => format!("found `{next}`"),
            None => "the text ends".into(),
        };
        let mut error = self.error_from(self.at, format!("{expectation}, but {found}"));
        error.span.end += self.peek().map_or(0, char::len_utf8);
        error
    }

    /// Skips white space, `// …` and nested `/* … */`.
    fn skip_space(&mut self) -> Read<()> {
        loop {
            let trimmed = self.rest().trim_start();
            self.at = self.text.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.block_comment()?;
            } else {
                return Ok(());
            }
        }
    }

    fn block_comment(&mut self) -> Read<()> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.at += 2;
            } else if self.bump().is_none() {
                return Err(self.error_from(start, "this comment is not closed with `*/`"));
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// `#![enable(…)]`: accepted and ignored, since what it could enable is always on here.
    fn attribute(&mut self) -> Read<()> {
        let start = self.at;
        match self.rest().find(']') {
            Some(end) => self.at += end + 1,
            None => return Err(self.error_from(start, "this attribute is not closed with `]`")),
        }
        self.skip_space()
    }

    fn accept(&mut self, wanted: char) -> Read<bool> {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
            self.skip_space()?;
        }
        Ok(found)
    }

    /// One value and the space after it.
    fn node(&mut self, depth: usize) -> Read<Node> {
        let start = self.at;
        if depth > MAX_DEPTH {
            return Err(self.error_from(start, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let node = match self.peek() {
            Some('(') => return self.group(None, start, depth),
            Some('[') => return self.list(start, depth),
            Some('"') => self.quoted()?,
            Some('r') if self.rest().starts_with("r\"") || self.rest().starts_with("r#\"") => self.raw_string()?,
            Some('+' | '-' | '.' | '0'..='9') => self.number()?,
            Some(c) if is_name_start(c) => return self.named(depth),
            _ => return Err(self.error_here("expected a value")),
        };
        let node = Node::new(node, self.span_from(start));
        self.skip_space()?;
        Ok(node)
    }

    fn name(&mut self) -> Name {
        let start = self.at;
        let rest = self.rest();
        self.at += rest.find(|c| !is_name_part(c)).unwrap_or(rest.len());
        Name::new(&self.text[start..self.at], self.span_from(start))
    }

    /// `true`, `None`, `word`, `name(…)`.
    fn named(&mut self, depth: usize) -> Read<Node> {
        let start = self.at;
        let name = self.name();
        let span = name.span;
        self.skip_space()?;
        if self.peek() == Some('(') {
            let node = self.group(Some(name), start, depth)?;
            return Ok(unwrap_some(node));
        }
        let value = match name.text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "inf" => Value::Float(f64::INFINITY),
            "NaN" => Value::Float(f64::NAN),
            _ => Value::Word(name.text),
        };
        Ok(Node::new(value, span))
    }

    fn list(&mut self, start: usize, depth: usize) -> Read<Node> {
        self.accept('[')?;
        let mut items = Vec::new();
        while self.peek() != Some(']') {
            items.push(self.node(depth + 1)?);
            if !self.accept(',')? && self.peek() != Some(']') {
                return Err(self.error_here("expected `,` or `]`"));
            }
        }
        self.at += 1;
        let node = Node::new(Value::List(items), self.span_from(start));
        self.skip_space()?;
        Ok(node)
    }

    /// `(a, b)` or `(key: a)`, with the reader at the parenthesis.
    fn group(&mut self, name: Option<Name>, start: usize, depth: usize) -> Read<Node> {
        self.accept('(')?;
        let mut items = Vec::new();
        let mut fields: Vec<(Name, Node)> = Vec::new();
        let mut known = HashSet::new();
        while self.peek() != Some(')') {
            if items.is_empty() && self.at_key() {
                let key = self.name();
                self.skip_space()?;
                self.accept(':')?;
                let value = self.node(depth + 1)?;
                if !known.insert(key.text.clone()) {
                    let message = format!("`{}` is given twice", key.text);
                    self.noted.push(Problem::error(key.span, "", message));
                }
                fields.push((key, value));
            } else if fields.is_empty() {
                items.push(self.node(depth + 1)?);
            } else {
                return Err(self.error_here("expected a key followed by `:`"));
            }
            if !self.accept(',')? && self.peek() != Some(')') {
                return Err(self.error_here("expected `,` or `)`"));
            }
        }
        self.at += 1;
        let value = if fields.is_empty() {
            Value::Tuple(name, items)
        } else {
            Value::Record(name, fields)
        };
        let node = Node::new(value, self.span_from(start));
        self.skip_space()?;
        Ok(node)
    }

    /// Returns whether a name and a colon come next.
    fn at_key(&self) -> bool {
        let mut ahead = Reader {
            noted: Vec::new(),
            ..*self
        };
        ahead.peek().is_some_and(is_name_start) && {
            ahead.name();
            ahead.skip_space().is_ok() && ahead.peek() == Some(':')
        }
    }

    fn number(&mut self) -> Read<Value> {
        let start = self.at;
        let rest = self.rest();
        let mut previous = ' ';
        let length = rest
            .find(|c: char| {
                let in_exponent = matches!(previous, 'e' | 'E') && matches!(c, '+' | '-');
                let part = is_name_part(c) || c == '.' || in_exponent || (previous == ' ' && "+-".contains(c));
                previous = c;
                !part
            })
            .unwrap_or(rest.len());
        self.at += length;
        let text = self.text[start..self.at].replace('_', "");
        parse_number(&text).ok_or_else(|| self.error_from(start, format!("`{text}` isn't a number")))
    }

    fn quoted(&mut self) -> Read<Value> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.bump() {
                Some('"') => return Ok(Value::Text(text)),
                Some('\\') => text.push(self.escape()?),
                Some(c) => text.push(c),
                None => return Err(self.error_from(start, "this text is not closed with `\"`")),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        let start = self.at;
        let unknown = "unknown escape; known: \\n \\r \\t \\0 \\\\ \\\" \\' \\x41 \\u{1F331}";
        let code = match self.bump() {
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some('0') => return Ok('\0'),
            Some(c @ ('\\' | '"' | '\'')) => return Ok(c),
            Some('x') => {
                let digits = self.rest().get(..2).unwrap_or_default();
                self.at += digits.len();
                digits
            }
            Some('u') => {
                let digits = self
                    .rest()
                    .strip_prefix('{')
                    .and_then(|rest| rest.split_once('}'))
                    .map_or("", |(digits, _)| digits);
                self.at += if digits.is_empty() { 0 } else { digits.len() + 2 };
                digits
            }
            _ => "",
        };
        u32::from_str_radix(code, 16)
            .ok()
            .and_then(char::from_u32)
            .ok_or_else(|| self.error_from(start, unknown))
    }

    /// `r"…"`, `r#"…"#`.
    fn raw_string(&mut self) -> Read<Value> {
        let start = self.at;
        let hashes = usize::from(self.rest().starts_with("r#"));
        self.at += 2 + hashes;
        let close = if hashes == 1 { "\"#" } else { "\"" };
        let Some(end) = self.rest().find(close) else {
            return Err(self.error_from(start, format!("this text is not closed with `{close}`")));
        };
        let text = self.rest()[..end].into();
        self.at += end + close.len();
        Ok(Value::Text(text))
    }
}

fn unwrap_some(node: Node) -> Node {
    match node.value {
        Value::Tuple(Some(name), mut items) if name.text == "Some" && items.len() == 1 => items.remove(0),
        value => Node::new(value, node.span),
    }
}

fn parse_number(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let signed = |value: i128| Value::Integer(if negative { -value } else { value });
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = digits.strip_prefix(prefix) {
            return u64::from_str_radix(digits, radix)
                .ok()
                .map(|value| signed(value.into()));
        }
    }
    match digits {
        "inf" => Some(Value::Float(if negative { f64::NEG_INFINITY } else { f64::INFINITY })),
        _ if digits.starts_with(['+', '-']) => None,
        _ => digits.parse().ok().map(signed).or_else(|| {
            let plain = digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
            let value: f64 = plain.then(|| digits.parse().ok())??;
            Some(Value::Float(if negative { -value } else { value }))
        }),
    }
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
