//! `docs/reference/scenario.md` is written from the declarations of the fields, `docs/reference/tables.md` from those of the columns,
//! by these tests:
//!
//! ```text
//! SIMIC_ENGINE_UPDATE=reference cargo test --test repository reference
//! ```
//! Without the variable they fail where file and declarations differ.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use simic_engine::internals::prior_art::PriorArtPlugin;
use simic_engine::internals::scenario::{
    self, Catalog, Explanation, Scenario, UnknownField, resolved_ron, written_values,
};
use simic_engine::internals::schema::{Content, Described, Field, Kind, Subject, Variant};
use simic_engine::internals::sweep;
use simic_engine::internals::tables::{CellKind, tables};
use simic_engine::prelude::*;

const INTRODUCTION: &str = "\
# Fields of scenarios and sweeps

All fields of a [scenario](#sections-of-a-scenario), of the settings of a [registered part](#settings-of-registered-parts) and
of a [sweep file](#sections-of-a-sweep-file), with their defaults, valid values and meanings. `simic-engine explain run.n_envs`
explains a field, and `--set run.n_envs=8` sets it.

This page is generated from the declarations that files are checked against. `SIMIC_ENGINE_UPDATE=reference cargo test --test
repository reference` writes it, and `cargo test --test repository reference` fails if it differs.

- You can leave out a field with a default. A *required* field must be written if its section is written.
- *None or …* is an option. It is written without `Some`, as in `max_steps: 30`.
- The fields of a section are written in parentheses, `run: (rounds: 3, n_envs: 8)`, and so are the fields of a member of a
  choice, `host_lr: cosine(end: 0.1)`.
- The links *section* and *choice* lead to the tables.
";

/// The beginning of the page of tables.
const TABLES: &str = "\
# Tables of runs and sweeps

`simic-engine export-tables RUN -o DIR` writes the record of a run or a sweep as Parquet files, one per table. A run has all tables
below except the last, and a sweep has `trials`. The Python package gives you the same as Arrow tables. pandas, polars and DuckDB read
both directly.

This page is generated from the declarations of the columns. `SIMIC_ENGINE_UPDATE=reference cargo test --test repository reference`
writes it, and `cargo test --test repository reference` fails if it differs. A column of type `integer` is an `int64` in the file,
`number` a `double`, `text` a `string` and `flag` a `boolean`. A `text` marked JSON holds a list or a map. A cell without a measurement
is empty, unless the type names a value for it (*else*). A number that isn't finite is a NaN or an infinity. The last column is the
path of the value in the [event](telemetry-and-runs.md).
";

/// Explains a path, as `simic-engine explain` does.
type Explain = dyn Fn(&str) -> Result<Explanation, UnknownField>;

/// One declaration: the text about each path in it, and its defaults.
struct Declaration {
    explain: Box<Explain>,
    /// Explanations so far: each computes all defaults, once for itself and for each field below.
    explained: RefCell<BTreeMap<String, Explanation>>,
    defaults: BTreeMap<String, String>,
}

impl Declaration {
    /// `name` stands before its paths, as in `sweep.budget`.
    fn of<T: Described + Default + Serialize>(name: &'static str, catalog: &'static Catalog) -> Self {
        let defaults = resolved_ron(&T::default()).expect("defaults can be written");
        Self {
            explain: Box::new(move |path| {
                let path = path.strip_prefix(name).unwrap_or(path).trim_start_matches('.');
                scenario::explain::<T>(name, path, catalog)
            }),
            explained: RefCell::default(),
            defaults: written_values(&defaults).expect("defaults can be read"),
        }
    }

    fn explain(&self, path: &str) -> Explanation {
        let mut explained = self.explained.borrow_mut();
        let explanation = explained
            .entry(path.into())
            .or_insert_with(|| (self.explain)(path).unwrap_or_else(|unknown| panic!("{path}: {unknown}")));
        explanation.clone()
    }

    /// The default of a field, if it has one.
    fn default_of(&self, path: &str, field: &Field) -> Option<String> {
        // A section doesn't have one.
        let default = (!is_section(&field.kind)).then(|| self.explain(path).default).flatten();
        let default = default.as_deref();
        if field.must_be_written() {
            let written = default.filter(|text| *text != "None" && !text.starts_with("none:"));
            return Some(written.map_or_else(
                || "*required*".into(),
                |default| format!("{}; *required* if its section is written", code(default)),
            ));
        }
        let absent = match field.kind {
            Kind::Optional(_) => "None",
            Kind::List(_) => "[]",
            Kind::Settings(_) => "()",
            Kind::Record(_) => return Some("–".into()),
            _ => "",
        };
        match default {
            Some("None") | None => {
                let written = self.defaults.get(path).map_or(absent, String::as_str);
                (!written.is_empty()).then(|| code(written))
            }
            Some(default) => Some(code(default)),
        }
    }
}

/// The sections that stand in choices, options and lists, where the file as a whole has no default for their fields: each
/// brings its own.
fn own_defaults(kind: &Kind, catalog: &'static Catalog) -> Option<Declaration> {
    macro_rules! first_of {
        ($($section:path),* $(,)?) => {
            $(if text_of(kind) == text_of(&<$section>::KIND) {
                return Some(Declaration::of::<$section>("", catalog));
            })*
        };
    }
    first_of![
        scenario::CnnSpec,
        scenario::ResnetSpec,
        scenario::VggSpec,
        scenario::TransformerSpec,
        scenario::SynthImages,
        scenario::SynthTokens,
        scenario::TextFile,
        scenario::ParquetTable,
        scenario::TokenFiles,
        scenario::SparseReward,
        scenario::LossReward,
        scenario::CommittedReward,
        scenario::CloneConfig,
        scenario::ImpalaConfig,
        sweep::Judge,
    ];
    None
}

/// The text of a declaration, different for each.
fn text_of(kind: &Kind) -> String {
    format!("{kind:?}")
}

struct Page {
    text: String,
    catalog: &'static Catalog,
    /// Declarations that have a table, with their defaults, and the heading of it.
    tables: Vec<(String, String)>,
}

/// A field whose table is still to be written.
struct Pending {
    /// In the page.
    path: String,
    /// In the declaration.
    own: String,
    doc: &'static str,
    kind: Kind,
}

impl Page {
    fn heading(&mut self, level: usize, path: &str, doc: &str) {
        let _ = writeln!(self.text, "\n{} `{path}`\n\n{}\n", "#".repeat(level.min(4)), plain(doc));
    }

    /// The tables of what stands at `path`; the declaration knows it by `own`, unless it brings one itself.
    fn below(&mut self, level: usize, path: &str, own: &str, kind: &Kind, declaration: &Declaration) {
        let brought = own_defaults(kind, self.catalog);
        let (own, declaration) = match &brought {
            Some(brought) => ("", brought),
            None => (own, declaration),
        };
        match kind {
            Kind::Record(fields) => self.record(level, path, own, fields, declaration),
            Kind::Choice(variants) => self.choice(level, path, own, variants, declaration),
            _ => {}
        }
    }

    fn record(&mut self, level: usize, path: &str, own: &str, fields: &[Field], declaration: &Declaration) {
        self.text
            .push_str("| field | default | valid | meaning |\n| --- | --- | --- | --- |\n");
        let mut pending = Vec::new();
        for field in fields {
            let (place, below) = (join(path, field.name), join(own, field.name));
            let valid = self.valid(&place, &below, field, declaration, &mut pending);
            let default = declaration.default_of(&below, field).unwrap_or_else(|| {
                panic!("no one tells the default of {place}: `own_defaults` has to name its section")
            });
            let _ = writeln!(
                self.text,
                "| `{}` | {default} | {valid} | {} |",
                field.name,
                plain(field.doc)
            );
        }
        self.write_pending(level + 1, pending, declaration);
    }

    fn choice(&mut self, level: usize, path: &str, own: &str, variants: &[Variant], declaration: &Declaration) {
        self.text
            .push_str("| member | takes | meaning |\n| --- | --- | --- |\n");
        let mut pending = Vec::new();
        for variant in variants {
            let (place, below) = (join(path, variant.name), join(own, variant.name));
            let takes = match variant.content {
                Content::Nothing => String::new(),
                Content::Fields(fields) => {
                    pending.push(Pending {
                        path: place.clone(),
                        own: below,
                        doc: variant.doc,
                        kind: Kind::Record(fields),
                    });
                    format!("[fields](#{})", anchor(&place))
                }
                Content::Items(items) => match (items, replaced(items, variants)) {
                    (_, Some(fields)) => fields,
                    ([item], None) => {
                        let doc = variant.doc;
                        self.valid(&place, &below, &Field { doc, ..*item }, declaration, &mut pending)
                    }
                    _ => panic!("{place}: what it takes has no words"),
                },
            };
            let _ = writeln!(self.text, "| `{}` | {takes} | {} |", form(variant), plain(variant.doc));
        }
        self.write_pending(level + 1, pending, declaration);
    }

    fn write_pending(&mut self, level: usize, pending: Vec<Pending>, declaration: &Declaration) {
        for Pending { path, own, doc, kind } in pending {
            self.heading(level, &path, doc);
            self.below(level, &path, &own, &kind, declaration);
        }
    }

    /// Values that may stand at `place`; a section or a choice that has no table yet is noted.
    fn valid(
        &mut self,
        place: &str,
        own: &str,
        &Field { kind, doc, .. }: &Field,
        declaration: &Declaration,
        pending: &mut Vec<Pending>,
    ) -> String {
        let inner = innermost(kind);
        let noun = match inner {
            _ if is_section(&inner) => "section",
            Kind::Choice(_) => "choice",
            _ => return words(&declaration.explain(own)),
        };
        // Sections of one form may have defaults of their own.
        let defaults: Vec<_> = match inner {
            Kind::Record(_) if own_defaults(&inner, self.catalog).is_none() => {
                let below = declaration.defaults.iter();
                let below = below.filter_map(|(path, default)| Some((path.strip_prefix(own)?, default)));
                below.collect()
            }
            _ => Vec::new(),
        };
        let text = format!("{} {defaults:?}", text_of(&inner));
        let known = self.tables.iter().find(|(known, _)| *known == text);
        let heading = known.map(|(_, heading)| heading.clone()).unwrap_or_else(|| {
            self.tables.push((text, place.into()));
            pending.push(Pending {
                path: place.into(),
                own: own.into(),
                doc,
                kind: inner,
            });
            place.into()
        });
        let link = format!("[{noun}](#{})", anchor(&heading));
        let members = match inner {
            Kind::Choice(variants) => {
                let forms: Vec<String> = variants.iter().map(|variant| format!("`{}`", form(variant))).collect();
                format!(": {}", forms.join(", "))
            }
            _ => String::new(),
        };
        match kind {
            Kind::Optional(Kind::List(_)) => format!("None or a list [..], each a {link}{members}"),
            Kind::Optional(_) => format!("None or a {link}{members}"),
            Kind::List(_) => format!("a list [..], each a {link}{members}"),
            _ => format!("{link}{members}"),
        }
    }
}

fn innermost(kind: Kind) -> Kind {
    match kind.inner() {
        wrapped @ (Kind::Optional(_) | Kind::List(_)) => innermost(wrapped),
        inner => inner,
    }
}

/// Or several of one.
fn is_section(kind: &Kind) -> bool {
    matches!(innermost(*kind), Kind::Record(fields) if !fields.is_empty())
}

/// The form of a member that takes a name and replacements for fields of another member.
fn replaced(items: &[Field], variants: &[Variant]) -> Option<String> {
    let [
        _,
        Field {
            kind: Kind::Record(fields),
            ..
        },
    ] = items
    else {
        return None;
    };
    let has_all = |kind: &Kind| match kind {
        Kind::Record(whole) => fields
            .iter()
            .all(|field| whole.iter().any(|known| known.name == field.name)),
        _ => false,
    };
    let whole = variants.iter().find(|variant| match variant.content {
        Content::Items([item]) => has_all(&item.kind),
        _ => false,
    })?;
    let names: Vec<String> = fields.iter().map(|field| format!("`{}`", field.name)).collect();
    Some(format!(
        "a name in quotes, and any of these fields of `{}`: {}",
        whole.name,
        names.join(", ")
    ))
}

fn form(variant: &Variant) -> String {
    match variant.content {
        Content::Nothing => variant.name.into(),
        Content::Items(_) => format!("{}(..)", variant.name),
        Content::Fields(fields) => {
            let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
            format!("{}({})", variant.name, names.join(", "))
        }
    }
}

/// The type, the range and the unit in words.
fn words(explained: &Explanation) -> String {
    let mut words = explained.kind.clone();
    let any = i64::MIN.to_string();
    if let Some(valid) = explained.valid.as_ref().filter(|valid| !valid.contains(&any)) {
        let valid = valid.strip_prefix("None; ").unwrap_or(valid);
        let _ = write!(words, ": {}", plain(valid));
    }
    if let Some(unit) = &explained.unit {
        let _ = write!(words, "; in {unit}");
    }
    words
}

fn join(path: &str, name: &str) -> String {
    format!("{path}.{name}").trim_matches('.').to_owned()
}

/// GitHub's for a heading that is a path in code.
fn anchor(heading: &str) -> String {
    heading.replace('.', "").to_ascii_lowercase()
}

/// In code.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

/// Without links of rustdoc, fit for a table's cell.
fn plain(doc: &str) -> String {
    let doc = doc.replace("[`", "`").replace("`]", "`");
    let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    doc.replace('|', "\\|").replace('<', "\\<")
}

/// The names of the program: those of the engine and of the prior art.
fn catalog() -> &'static Catalog {
    let extension = Extension::new(PriorArtPlugin);
    Box::leak(Box::new(extension.names().expect("the names are free").catalog.clone()))
}

fn settings_of_parts(page: &mut Page, declaration: &Declaration) {
    let catalog = page.catalog;
    for ((subject, name), declared) in &catalog.settings {
        let Kind::Record(fields) = *declared.kind else { continue };
        if fields.is_empty() {
            continue;
        }
        let (section, mut entries) = match subject {
            Subject::Rewards => ("reward.custom.settings", catalog.rewards.iter()),
            Subject::Data => ("task.data.custom.settings", catalog.data.iter()),
            Subject::Hosts => ("task.host.custom.settings", catalog.nets.iter()),
            Subject::Controllers => ("policy.controller_settings", catalog.controllers.iter()),
            Subject::Networks => ("policy.net_settings", catalog.nets.iter()),
            Subject::Tasks | Subject::Blueprints => continue,
        };
        let path = join(section, name);
        let entry = entries.find(|entry| entry.name.eq_ignore_ascii_case(name));
        let summary = entry.map_or("", |entry| &entry.summary);
        page.heading(3, &path, summary);
        page.record(3, &path, &path, fields, declaration);
    }
}

fn page() -> String {
    let catalog = catalog();
    let mut page = Page {
        text: INTRODUCTION.into(),
        catalog,
        tables: Vec::new(),
    };
    let of_scenario = Declaration::of::<Scenario>("", catalog);
    let of_sweep = Declaration::of::<sweep::SweepFile>("sweep", catalog);
    page.text.push_str("\n## Sections of a scenario\n\n");
    page.below(2, "", "", &Scenario::KIND, &of_scenario);
    page.text.push_str(
        "\n## Settings of registered parts\n\nSettings of the parts that belong to the program. `simic-engine list` shows all parts.\n",
    );
    settings_of_parts(&mut page, &of_scenario);
    page.text.push_str("\n## Sections of a sweep file\n\n");
    page.below(2, "sweep", "", &sweep::SweepFile::KIND, &of_sweep);
    page.text
}

/// Writes a page if that is asked for, and compares it with what is written.
fn assert_is_written(file: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var("SIMIC_ENGINE_UPDATE").is_ok_and(|what| what == "reference") {
        std::fs::write(&path, page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = page.lines().zip(written.lines());
    let line = lines.take_while(|(declared, written)| declared == written).count();
    assert!(
        page == written,
        "{file}:{}: the declarations say\n{}\nnot\n{}\nhelp: SIMIC_ENGINE_UPDATE=reference cargo test --test repository reference",
        line + 1,
        page.lines().nth(line).unwrap_or("(nothing more)"),
        written.lines().nth(line).unwrap_or("(nothing more)")
    );
}

#[test]
fn the_page_of_fields_is_what_the_declarations_say() {
    assert_is_written("docs/reference/scenario.md", &page());
}

fn page_of_tables() -> String {
    let mut page = TABLES.to_owned();
    for table in tables() {
        let _ = write!(
            page,
            "\n## {}\n\n{}\n\n| column | type | unit | meaning | from |\n| --- | --- | --- | --- | --- |\n",
            table.name, table.about
        );
        for column in table.columns {
            let kind = match column.kind {
                CellKind::Integer => "integer",
                CellKind::Number => "number",
                CellKind::Text => "text",
                CellKind::Flag => "flag",
            };
            let absent = match column.default {
                Value::Null => String::new(),
                value => format!(", else {value}"),
            };
            let unit = format!(" {}", column.unit);
            let _ = writeln!(
                page,
                "| `{}` | {kind}{absent} |{} | {} | `{}` |",
                column.name,
                unit.trim_end(),
                column.meaning,
                column.path
            );
        }
    }
    page
}

#[test]
fn the_page_of_tables_is_what_the_columns_say() {
    assert_is_written("docs/reference/tables.md", &page_of_tables());
}
