//! The parts of the engine that each part knows. It reads from top to bottom: crate by crate, and in each `lib.rs` declares its rooms
//! in the order in which they build on each other, as `mod.rs` does the files of a room; a file names only what is declared
//! above it.
//!
//! An arrow leads from the file that names an item to the file that defines it, however many re-exports lie between.
//! Tests are left out. What a module's file defines stands above its children; that it knows these does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree};

/// A module: its own file, or a part of one.
#[derive(Default)]
struct Module {
    file: PathBuf,
    /// Modules that are declared above.
    place: usize,
    /// Names of items that stand here.
    defined: BTreeSet<String>,
    /// `use` by the name that it brings in.
    imported: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// All paths that the module names, imports among them.
    paths: BTreeSet<Vec<String>>,
    /// First words of paths: what a glob import may serve.
    words: BTreeSet<String>,
}

/// In the order in which they build on each other. A crate offers the rooms of those above it under their own names, so that
/// all rooms are in one space of names.
const CRATES: [&str; 4] = ["crates/scenario", "crates/torch", "crates/core", "."];

/// By path from the root of a crate; the roots are one, and empty.
type Modules = BTreeMap<Vec<String>, Module>;
/// Names that were looked for, and where.
type Asked = BTreeSet<(Vec<String>, String)>;
/// By the file that names, then the file that is named: a path that does so, and whether it leads down.
type Arrows = BTreeMap<String, BTreeMap<String, (String, bool)>>;

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg_test = |list: &syn::MetaList| list.tokens.to_string() == "test";
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(is_cfg_test)
    })
}

/// Names of the types that bevy's derives make with a struct: nothing in the source defines them.
fn generated(item: &Item) -> Vec<String> {
    let Item::Struct(item) = item else { return Vec::new() };
    let derives = item
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("derive"));
    let derives = derives.filter_map(|attribute| Some(attribute.meta.require_list().ok()?.tokens.to_string()));
    let derives: Vec<String> = derives.collect();
    let made = [
        ("QueryData", &["Item", "ReadOnly", "ReadOnlyItem"][..]),
        ("SystemParam", &["Builder"][..]),
    ];
    let made = made
        .iter()
        .filter(|(name, _)| derives.iter().any(|derive| derive.contains(name)));
    let endings = made.flat_map(|(_, endings)| endings.iter());
    endings.map(|ending| format!("{}{ending}", item.ident)).collect()
}

/// The file of module `name`, declared in `parent`.
fn module_file(parent: &Path, name: &str) -> PathBuf {
    let folder = match parent.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") | None => parent.with_file_name(""),
        Some(_) => parent.with_extension(""),
    };
    let flat = folder.join(format!("{name}.rs"));
    let deep = folder.join(name).join("mod.rs");
    if flat.exists() { flat } else { deep }
}

fn read(file: &Path, path: &[String], modules: &mut Modules) {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    add(parsed.items, file, path, modules);
}

fn add(items: Vec<Item>, file: &Path, path: &[String], modules: &mut Modules) {
    // Its place is taken before its children take theirs. The root is that of all crates, and stands above everything.
    let place = if path.is_empty() { 0 } else { modules.len() };
    let mut module = std::mem::take(modules.entry(path.to_vec()).or_default());
    (module.file, module.place) = (file.into(), place);
    for item in items {
        match item {
            Item::Mod(child) if !is_test(&child.attrs) => {
                let path: Vec<String> = [path, &[child.ident.to_string()]].concat();
                match child.content {
                    Some((_, items)) => add(items, file, &path, modules),
                    None => read(&module_file(file, &child.ident.to_string()), &path, modules),
                }
            }
            item => module.take_item(&item),
        }
    }
    modules.insert(path.to_vec(), module);
}

impl Module {
    fn take_item(&mut self, item: &Item) {
        let (attributes, name) = match item {
            Item::Use(item) => {
                if !is_test(&item.attrs) {
                    self.take_use(&item.tree, Vec::new());
                }
                return;
            }
            Item::Const(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
            Item::Static(item) => (&item.attrs, Some(&item.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Union(item) => (&item.attrs, Some(&item.ident)),
            Item::Impl(item) => (&item.attrs, None),
            _ => return,
        };
        if is_test(attributes) {
            return;
        }
        self.defined.extend(name.map(ToString::to_string));
        self.defined.extend(generated(item));
        self.visit_item(item);
    }

    fn take_use(&mut self, tree: &UseTree, mut before: Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.take_use(&path.tree, before);
            }
            UseTree::Group(group) => group.items.iter().for_each(|item| self.take_use(item, before.clone())),
            UseTree::Glob(_) => self.globs.push(before),
            UseTree::Name(name) if name.ident == "self" => self.import(before.last().cloned(), before),
            UseTree::Name(name) => {
                before.push(name.ident.to_string());
                self.import(Some(name.ident.to_string()), before);
            }
            UseTree::Rename(rename) => {
                before.push(rename.ident.to_string());
                self.import(Some(rename.rename.to_string()), before);
            }
        }
    }

    fn import(&mut self, name: Option<String>, path: Vec<String>) {
        self.paths.insert(path.clone());
        self.imported.extend(name.map(|name| (name, path)));
    }
}

impl Visit<'_> for Module {
    fn visit_path(&mut self, path: &syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.words.extend(words.first().cloned());
        self.paths.insert(words);
        visit::visit_path(self, path);
    }

    /// `pub(crate)` names nothing.
    fn visit_visibility(&mut self, _: &syn::Visibility) {}

    /// `use` inside a function.
    fn visit_item_use(&mut self, item: &ItemUse) {
        self.take_use(&item.tree, Vec::new());
    }

    /// Code in a macro is not parsed: its words may be served by globs, its paths by `crate::`.
    fn visit_macro(&mut self, call: &syn::Macro) {
        let text = call.tokens.to_string().replace("\\\"", "");
        let code: Vec<&str> = text.split('"').step_by(2).collect();
        let code = code.join(" ").replace(" :: ", "::");
        let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
        for word in words.filter(|word| !word.is_empty()) {
            let path = word.split("::").filter(|word| !word.is_empty());
            let path: Vec<String> = path.map(String::from).collect();
            self.words.extend(path.first().cloned());
            if matches!(path.first().map(String::as_str), Some("crate" | "super")) {
                self.paths.insert(path);
            }
        }
        visit::visit_macro(self, call);
    }
}

/// The module that defines what `path` means in module `at`; `None` outside the crate.
fn resolve(modules: &Modules, at: &[String], path: &[String], asked: &mut Asked) -> Option<Vec<String>> {
    let (first, mut rest) = path.split_first()?;
    let mut here = match first.as_str() {
        "crate" => Vec::new(),
        name if name.starts_with("simic_") => Vec::new(),
        "self" => at.to_vec(),
        "super" => at.split_last()?.1.to_vec(),
        _ => {
            rest = path;
            at.to_vec()
        }
    };
    let is_relative = rest.len() == path.len();
    for (index, word) in rest.iter().enumerate() {
        if word == "super" {
            here.pop()?;
            continue;
        }
        let child = [here.as_slice(), std::slice::from_ref(word)].concat();
        if modules.contains_key(&child) {
            here = child;
            continue;
        }
        return match provider(modules, &here, word, asked) {
            // A module that was imported: its own items are meant.
            Some(found) if found.last() == Some(word) && index + 1 < rest.len() => {
                resolve(modules, &found, &rest[index + 1..], asked).or(Some(found))
            }
            None if is_relative && index == 0 => None,
            found => found,
        };
    }
    Some(here)
}

/// The module that defines the item which module `here` offers as `word`.
fn provider(modules: &Modules, here: &[String], word: &str, asked: &mut Asked) -> Option<Vec<String>> {
    // Globs may lead back to where they came from.
    let module = modules
        .get(here)
        .filter(|_| asked.insert((here.to_vec(), word.to_owned())))?;
    if module.defined.contains(word) {
        return Some(here.to_vec());
    }
    if let Some(path) = module.imported.get(word) {
        return resolve(modules, here, path, asked);
    }
    module.globs.iter().find_map(|glob| {
        let source = resolve(modules, here, glob, asked).filter(|source| source != here)?;
        let child = [source.as_slice(), &[word.to_owned()]].concat();
        if modules.contains_key(&child) {
            return Some(child);
        }
        provider(modules, &source, word, asked)
    })
}

static MODULES: LazyLock<Modules> = LazyLock::new(|| {
    let mut modules = Modules::new();
    for name in CRATES {
        read(&root().join(name).join("src/lib.rs"), &[], &mut modules);
    }
    modules
});

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The file of a module, from the root of the repository.
fn name(module: &Module) -> String {
    let file = module.file.strip_prefix(root()).expect("a module lies in a crate");
    let text = file.to_string_lossy().replace('\\', "/");
    text.trim_start_matches("./").to_owned()
}

static FILES: LazyLock<Arrows> = LazyLock::new(|| {
    let modules = &*MODULES;
    let mut arrows = Arrows::new();
    for (at, module) in modules {
        let is_keyword = |word: &str| matches!(word, "crate" | "self" | "super");
        let is_served = |word: &&String| !is_keyword(word) && !module.imported.contains_key(*word);
        let served_by_globs = module.words.iter().filter(|_| !module.globs.is_empty());
        let words = served_by_globs.filter(is_served).map(|word| vec![word.clone()]);
        let longer = module.paths.iter().filter(|path| path.len() > 1).cloned();
        for path in longer.chain(words) {
            let Some(to) = resolve(modules, at, &path, &mut Asked::new()) else {
                continue;
            };
            let target = &modules[&to];
            let is_own_child = to.starts_with(at);
            if module.file != target.file && !is_own_child {
                let arrow = (path.join("::"), target.place > module.place);
                let from = arrows.entry(name(module)).or_default();
                from.entry(name(target)).or_insert(arrow);
            }
        }
    }
    arrows
});

#[test]
fn a_file_names_only_what_is_declared_above_it() {
    let down = FILES.iter().flat_map(|(from, targets)| {
        let targets = targets.iter().filter(|(_, (_, is_down))| *is_down);
        targets.map(move |(into, (path, _))| format!("  {from} names {path} of {into}"))
    });

    let down = down.collect::<Vec<String>>().join("\n");

    // Named above its `mod` line, or that of its room.
    assert_eq!(down, "");
}

#[test]
fn the_language_of_scenarios_links_no_tensors() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("the file of pinned versions");
    let mut needed = BTreeSet::from(["simic-scenario"]);
    let mut open: Vec<&str> = needed.iter().copied().collect();
    while let Some(package) = open.pop() {
        let head = format!("name = \"{package}\"\n");
        let (_, entry) = lock.split_once(&head).expect("a package of the file");
        let entry = entry.split("[[package]]").next().unwrap_or_default();
        let (_, dependencies) = entry.split_once("dependencies = [").unwrap_or_default();
        let names = dependencies.split('"').skip(1).step_by(2);
        // A name that is there twice has its version after it.
        let names = names.filter_map(|name| name.split(' ').next());
        open.extend(names.filter(|name| needed.insert(name)));
    }

    assert!(needed.contains("bevy_ecs"), "{needed:?}");
    assert!(!needed.contains("torch-sys") && !needed.contains("tch"), "{needed:?}");
}

/// It becomes a crate of its own.
#[test]
fn the_prior_art_is_written_against_the_prelude_alone() {
    let is_own = |path: &[String]| path.first().is_some_and(|room| room == "prior_art");
    let own: Vec<_> = MODULES.iter().filter(|(path, _)| is_own(path)).collect();
    let is_foreign = |at: &[String], path: &[String]| match path.first().map(String::as_str) {
        Some("crate") => !matches!(path.get(1).map(String::as_str), Some("prelude" | "prior_art")),
        // Out of the room: by as many steps up as lead to the crate.
        Some("super") => path.iter().take_while(|word| *word == "super").count() >= at.len(),
        _ => false,
    };
    let found = own.iter().flat_map(|(at, module)| {
        let globs = module.globs.iter();
        let paths = module.paths.iter().chain(globs).filter(|path| is_foreign(at, path));
        paths.map(|path| format!("{} names {}", name(module), path.join("::")))
    });

    assert!(own.len() > 5, "{} modules", own.len());
    assert_eq!(found.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn arrows_are_found_through_imports_globs_and_reexports() {
    let is_found = |from: &str, into: &str| FILES[from].contains_key(into);
    let slots = "crates/core/src/env/slots.rs";
    assert!(is_found(slots, "crates/core/src/seed/record.rs"), "an import");
    let error = "crates/torch/src/torch/error.rs";
    assert!(FILES.keys().any(|from| is_found(from, error)), "a re-export");
    let (faults, env) = (
        "crates/core/src/faults/mod.rs",
        "crates/core/src/training/components.rs",
    );
    assert!(is_found(faults, env), "a name that a derive makes");
    let layout = "crates/core/src/host/layout.rs";
    let scenario = "crates/scenario/src/growth/slots.rs";
    assert!(is_found(layout, scenario), "into another crate");
    assert!(FILES.len() > 100, "{} files name others", FILES.len());
}
