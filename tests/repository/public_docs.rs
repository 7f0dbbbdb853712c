//! Tensors of the public interface are documented where they stand: shape, kind and device, as in "`[batch, channels, height,
//! width]`, f32, on the env's device". Checked are fields of structs that `prelude` and `extend` name.

use std::fs;

use super::words::files;

const NAMES: &str = concat!(
    include_str!("../../crates/core/src/prelude.rs"),
    include_str!("../../crates/core/src/extend.rs")
);

/// Kinds of values by which the documentation of a tensor names its own.
const KINDS: [&str; 7] = ["f32", "f16", "bf16", "i64", "bool", "u8", "kind"];

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty())
}

/// The name of a public field that has tensors.
fn tensor(code: &str) -> Option<&str> {
    let (name, of) = code.strip_prefix("pub ")?.split_once(": ")?;
    let is_field = words(name).count() == 1 && words(of).any(|word| word == "Tensor");
    is_field.then_some(name)
}

/// Properties of a tensor that its documentation leaves out.
fn missing(docs: &str) -> Vec<&'static str> {
    // A list in brackets between backticks, as in `f32 [N, D]`.
    let mut code = docs.split('`').skip(1).step_by(2);
    let has_list = code.any(|code| code.contains('[') && code.contains(']'));
    let has_shape = has_list || docs.to_ascii_lowercase().contains("any shape");
    let has_kind = words(docs).any(|word| KINDS.contains(&word));
    let has_device = docs.contains("device") || docs.contains("CPU");
    let mut missing = vec!["shape", "kind", "device"];
    let mut said = [has_shape, has_kind, has_device].into_iter();
    missing.retain(|_| said.next() == Some(false));
    missing
}

#[test]
fn a_tensor_in_a_public_struct_says_its_shape_its_kind_and_its_device() {
    let (mut seen, mut silent) = (0, Vec::new());
    let sources = files().into_iter().filter(|file| file.starts_with("crates"));
    for file in sources.filter(|file| file.extension().is_some_and(|kind| kind == "rs")) {
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (mut of, mut docs) = ("", String::new());
        for line in text.lines() {
            if line.starts_with("pub ") || line.starts_with('}') {
                let item = line.strip_prefix("pub struct ").unwrap_or_default();
                of = words(item).next().unwrap_or_default();
            }
            match line.trim_start() {
                comment if comment.starts_with("///") => docs += comment,
                attribute if attribute.starts_with("#[") => {}
                code => {
                    if let Some(field) = tensor(code).filter(|_| words(NAMES).any(|name| name == of)) {
                        seen += 1;
                        let place = format!("{}: {of}.{field}", file.display());
                        silent.extend(missing(&docs).into_iter().map(|what| format!("{place}: no {what}")));
                    }
                    docs.clear();
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} tensors were found");
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}
