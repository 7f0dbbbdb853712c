//! What a tensor of the public interface is, is said where it stands: shape, kind and device, as in
//! "`[batch, channels, height, width]`, f32, on the env's device".
//!
//! Public is what `prelude` and `extend` name, and every type that fields and methods of traits lead to from there. Fields are
//! looked at one by one; of a function with tensors among its arguments or results the documentation has to name a shape, or
//! that it takes any, unless that of its trait does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Fields, ImplItem, Item, Signature, TraitItem, Type, UseTree, Visibility};

const CRATES: [&str; 3] = ["crates/scenario/src", "crates/torch/src", "crates/core/src"];

/// Kinds of values by which the documentation of a tensor names its own.
const KINDS: [&str; 7] = ["f32", "f16", "bf16", "i64", "bool", "u8", "kind"];

/// One place that may speak of a tensor.
struct Spoken {
    name: String,
    file: PathBuf,
    /// Of a trait, which applications implement.
    is_of_trait: bool,
    docs: String,
    /// Documentation around it.
    around: String,
    types: BTreeSet<String>,
}

/// Everything that is public under one name, in any file.
#[derive(Default)]
struct Named {
    fields: Vec<Spoken>,
    methods: Vec<Spoken>,
}

type Index = BTreeMap<String, Named>;

/// Every name of a type in a type.
#[derive(Default)]
struct TypeNames(BTreeSet<String>);

impl Visit<'_> for TypeNames {
    fn visit_path(&mut self, path: &syn::Path) {
        self.0
            .extend(path.segments.last().map(|segment| segment.ident.to_string()));
        visit::visit_path(self, path);
    }
}

fn types_of(of: &Type) -> BTreeSet<String> {
    let mut names = TypeNames::default();
    names.visit_type(of);
    names.0
}

fn types_of_signature(signature: &Signature) -> BTreeSet<String> {
    let mut names = TypeNames::default();
    names.visit_signature(signature);
    names.0
}

fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) if pair.path.is_ident("doc") => Some(text.value()),
            _ => None,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .meta
                .require_list()
                .is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            files(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
}

fn parsed(file: &Path) -> syn::File {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn add(items: &[Item], file: &Path, index: &mut Index) {
    for item in items {
        match item {
            Item::Struct(item) if !is_test(&item.attrs) && !matches!(item.vis, Visibility::Inherited) => {
                let fields = match &item.fields {
                    Fields::Named(fields) => &fields.named,
                    Fields::Unnamed(fields) => &fields.unnamed,
                    Fields::Unit => continue,
                };
                let of = index.entry(item.ident.to_string()).or_default();
                let public = fields
                    .iter()
                    .enumerate()
                    .filter(|(_, field)| matches!(field.vis, Visibility::Public(_)));
                of.fields.extend(public.map(|(number, field)| {
                    Spoken {
                        name: field
                            .ident
                            .as_ref()
                            .map_or_else(|| number.to_string(), ToString::to_string),
                        file: file.into(),
                        is_of_trait: false,
                        docs: docs(&field.attrs),
                        around: docs(&item.attrs),
                        types: types_of(&field.ty),
                    }
                }));
            }
            Item::Trait(item) if !is_test(&item.attrs) => {
                let of = index.entry(item.ident.to_string()).or_default();
                for method in &item.items {
                    let TraitItem::Fn(method) = method else { continue };
                    of.methods
                        .push(method_of(&method.attrs, &method.sig, docs(&item.attrs), file));
                }
            }
            Item::Impl(item) if !is_test(&item.attrs) && item.trait_.is_none() => {
                let Type::Path(path) = &*item.self_ty else { continue };
                let Some(name) = path.path.segments.last() else {
                    continue;
                };
                let of = index.entry(name.ident.to_string()).or_default();
                for method in &item.items {
                    let ImplItem::Fn(method) = method else { continue };
                    if matches!(method.vis, Visibility::Public(_)) {
                        of.methods
                            .push(method_of(&method.attrs, &method.sig, String::new(), file));
                    }
                }
            }
            Item::Fn(item) if !is_test(&item.attrs) && matches!(item.vis, Visibility::Public(_)) => {
                let of = index.entry(item.sig.ident.to_string()).or_default();
                of.methods.push(method_of(&item.attrs, &item.sig, String::new(), file));
            }
            Item::Mod(item) if !is_test(&item.attrs) => {
                if let Some((_, items)) = &item.content {
                    add(items, file, index);
                }
            }
            _ => {}
        }
    }
}

fn method_of(attributes: &[Attribute], signature: &Signature, around: String, file: &Path) -> Spoken {
    Spoken {
        name: format!("{}()", signature.ident),
        file: file.into(),
        is_of_trait: !around.is_empty(),
        docs: docs(attributes),
        around,
        types: types_of_signature(signature),
    }
}

fn used(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => used(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|item| used(item, names)),
        UseTree::Name(name) => drop(names.insert(name.ident.to_string())),
        UseTree::Rename(_) | UseTree::Glob(_) => {}
    }
}

/// The names of `prelude` and `extend`.
fn named() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in ["crates/core/src/prelude.rs", "crates/core/src/extend.rs"] {
        for item in parsed(Path::new(file)).items {
            if let Item::Use(item) = item {
                used(&item.tree, &mut names);
            }
        }
    }
    names
}

/// The names of `prelude` and `extend`, and of what fields and traits lead to from there.
fn public(index: &Index) -> BTreeSet<String> {
    let mut waiting = named();
    let mut reached = BTreeSet::new();
    while let Some(name) = waiting.pop_first() {
        if let Some(of) = index.get(&name).filter(|_| reached.insert(name)) {
            let spoken = of
                .fields
                .iter()
                .chain(of.methods.iter().filter(|method| method.is_of_trait));
            waiting.extend(
                spoken
                    .flat_map(|spoken| spoken.types.iter().cloned())
                    .filter(|name| !reached.contains(name)),
            );
        }
    }
    reached
}

/// All that the crates declare as public.
fn index() -> Index {
    let mut index = Index::new();
    for file in sources() {
        add(&parsed(&file).items, &file, &mut index);
    }
    index
}

fn sources() -> Vec<PathBuf> {
    let mut all = Vec::new();
    CRATES.iter().for_each(|folder| files(Path::new(folder), &mut all));
    all.retain(|file| !is_of_tests(file));
    all
}

/// Files that only tests compile.
fn is_of_tests(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "tests")
        || file.ends_with("tests.rs")
        || file.ends_with("fixtures.rs")
}

/// A list in brackets between backticks, as in `f32 [N, D]`, or that there is one value.
fn names_a_shape(docs: &str) -> bool {
    if docs.to_ascii_lowercase().contains("any shape") {
        return true;
    }
    let in_code = docs.split('`').skip(1).step_by(2);
    in_code.into_iter().any(|code| code.contains('[') && code.contains(']'))
}

fn names_a_kind(docs: &str) -> bool {
    let words = docs.split(|c: char| !c.is_alphanumeric());
    words.into_iter().any(|word| KINDS.contains(&word))
}

#[test]
fn a_public_tensor_says_its_shape_its_kind_and_its_device() {
    let index = index();
    let names = public(&index);
    let (mut seen, mut silent) = (0, Vec::new());
    for name in &names {
        let of = &index[name];
        let has_tensor = |spoken: &&Spoken| spoken.types.contains("Tensor");
        for field in of.fields.iter().filter(has_tensor) {
            seen += 1;
            let missing: Vec<&str> = [
                (names_a_shape(&field.docs), "shape"),
                (names_a_kind(&field.docs), "kind"),
                (field.docs.contains("device") || field.docs.contains("CPU"), "device"),
            ]
            .iter()
            .filter_map(|(is_there, what)| (!is_there).then_some(*what))
            .collect();
            if !missing.is_empty() {
                silent.push(format!(
                    "{}: {name}.{}: no {}",
                    field.file.display(),
                    field.name,
                    missing.join(", ")
                ));
            }
        }
        for method in of.methods.iter().filter(has_tensor) {
            seen += 1;
            if !names_a_shape(&method.docs) && !names_a_shape(&method.around) {
                silent.push(format!("{}: {name}::{}: no shape", method.file.display(), method.name));
            }
        }
    }
    assert!(seen > 40, "only {seen} places with tensors were found: {names:?}");
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// What the message of an error asks for, behind its semicolon.
fn advice(attributes: &[Attribute]) -> String {
    let message = attributes.iter().find(|attribute| attribute.path().is_ident("error"));
    let tokens = message.and_then(|attribute| attribute.meta.require_list().ok());
    let message = tokens.map(|list| list.tokens.to_string()).unwrap_or_default();
    message
        .split_once("; ")
        .map(|(_, advice)| advice.to_owned())
        .unwrap_or_default()
}

/// By the name of an enum: its documentation, and of each variant the name and what is said of it.
type Errors = BTreeMap<String, (String, Vec<(String, String)>)>;

fn errors(items: &[Item], all: &mut Errors) {
    for item in items {
        match item {
            Item::Enum(item) if !is_test(&item.attrs) && item.ident.to_string().ends_with("Error") => {
                let variants = item.variants.iter();
                let variants = variants.map(|variant| {
                    (
                        variant.ident.to_string(),
                        docs(&variant.attrs) + &advice(&variant.attrs),
                    )
                });
                all.insert(item.ident.to_string(), (docs(&item.attrs), variants.collect()));
            }
            Item::Mod(item) if !is_test(&item.attrs) => {
                if let Some((_, items)) = &item.content {
                    errors(items, all);
                }
            }
            _ => {}
        }
    }
}

/// Of the enum what follows from such an error; of each variant when it occurs, unless its message says what to do.
#[test]
fn a_public_error_says_when_it_occurs() {
    let index = index();
    let mut all = Errors::new();
    for file in sources() {
        errors(&parsed(&file).items, &mut all);
    }
    // With those that methods of what is named return.
    let mut named = named();
    let of_methods = named
        .iter()
        .filter_map(|name| index.get(name))
        .flat_map(|of| &of.methods);
    let returned: Vec<String> = of_methods.flat_map(|method| method.types.iter().cloned()).collect();
    named.extend(returned);
    let (mut seen, mut silent) = (0, Vec::new());
    for (name, (of_enum, variants)) in all.iter().filter(|(name, _)| named.contains(*name)) {
        seen += 1;
        if of_enum.split_terminator(['.', ':']).count() < 2 {
            silent.push(format!("{name}: says what it is, and not what follows from it"));
        }
        let without = variants.iter().filter(|(_, docs)| docs.trim().is_empty());
        silent.extend(without.map(|(variant, _)| format!("{name}::{variant}: does not say when it occurs")));
    }
    assert!(seen >= 8, "only {seen} public errors were found");
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}
