//! The Python sources of exports. Each export gets the parts that it uses.

/// Imports.
pub(super) const HEAD: &str = include_str!("../../assets/export/head.py");
/// Classes of layers and seeds, each after those that it uses.
const LAYERS: &str = include_str!("../../assets/export/layers.py");
/// Reading files of tensors.
pub(super) const READ: &str = include_str!("../../assets/export/read.py");
/// A network with its weights.
pub(super) const LOAD: &str = include_str!("../../assets/export/load.py");
/// The program in the file.
pub(super) const MAIN: &str = include_str!("../../assets/export/main.py");
/// A network with its domains, and the proof that the given one is unchanged.
pub(super) const DOMAINS: &str = include_str!("../../assets/export/domains.py");
/// Reading of photographs, where pixels are bytes.
pub(super) const PHOTOGRAPH: &str = include_str!("../../assets/export/photograph.py");
/// Samples of images.
pub(super) const IMAGES: &str = include_str!("../../assets/export/images.py");
/// Samples of texts.
pub(super) const TEXTS: &str = include_str!("../../assets/export/texts.py");
/// The check against data.
pub(super) const CHECK: &str = include_str!("../../assets/export/check.py");

/// Imports of a policy.
pub(super) const POLICY_HEAD: &str = include_str!("../../assets/export/policy_head.py");
/// The network of a policy, and how it decides.
pub(super) const POLICY: &str = include_str!("../../assets/export/policy.py");

/// The classes and functions that `code` uses, and those that they use.
pub(super) fn classes_for(code: &str) -> String {
    let mut used: Vec<&str> = Vec::new();
    let sections: Vec<&str> = LAYERS.trim_end().split("\n\n\n").collect();
    for &section in sections.iter().rev() {
        let users = std::iter::once(code).chain(used.iter().copied());
        if mentions(users, name_of(section)) {
            used.push(section);
        }
    }
    used.reverse();
    used.join("\n\n\n")
}

/// The name that a section defines.
fn name_of(section: &str) -> &str {
    let head = section.trim_start_matches("class ").trim_start_matches("def ");
    head.split(['(', ':']).next().unwrap_or(head)
}

/// Returns whether one of the texts calls `name`, or derives from it.
fn mentions<'a>(mut texts: impl Iterator<Item = &'a str>, name: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_' || character == '.';
    texts.any(|text| {
        text.match_indices(name).any(|(place, _)| {
            let before = text[..place].chars().next_back();
            let after = text[place + name.len()..].chars().next();
            !before.is_some_and(is_part) && matches!(after, Some('(' | ')'))
        })
    })
}
