use super::*;

choice! {
    /// The manner.
    #[derive(Copy)]
    pub enum Manner {
        /// at once
        AtOnce,
        /// after N steps
        After(u32, at_least(1)),
        /// between two steps
        Between {
            /// First step.
            first: u32;
            /// Last step.
            #[unit = "steps"]
            last: Option<u32>;
        },
    }
}

section! {
    /// A section.
    pub struct Sample {
        /// Share of the whole,
        /// in two lines.
        share: f64 = 0.5, FRACTION;
        /// Limits.
        limits: Option<Vec<f64>>, POSITIVE;
        /// The manner.
        manner: Manner = Manner::AtOnce;
        /// Name of a controller.
        controller: String, CONTROLLER;
    }
}

record! {
    /// A record.
    pub struct Base {
        /// A size.
        size: usize, integer(1, 8);
        /// A limit. None: no limit.
        #[unit = "nats"]
        limit: Option<f64>, POSITIVE;
        /// Not replaceable.
        fixed: bool;
    }
}

overlay! {
    /// Replacements.
    pub struct Replacements of Base {
        size: usize;
        /// A limit. None: the base's.
        limit: f64;
    }
}

fn fields(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Record(fields) => fields,
        other => panic!("no record: {other:?}"),
    }
}

#[test]
fn a_section_follows_from_its_declaration() {
    let sample = Sample::default();
    assert_eq!((sample.share, sample.limits), (0.5, None));

    let [share, limits, manner, controller] = fields(Sample::KIND) else {
        panic!("four fields");
    };
    assert_eq!((share.name, share.doc), ("share", "Share of the whole, in two lines."));
    assert!(matches!(share.kind, Kind::Float(range) if range.contains(1.0) && !range.contains(1.1)));
    assert!(matches!(limits.kind, Kind::Optional(Kind::List(Kind::Float(range))) if !range.contains(0.0)));
    assert!(matches!(manner.kind, Kind::Choice(_)));
    assert!(matches!(
        controller.kind,
        Kind::Text(Names::Registered(Subject::Controllers))
    ));
    assert!(ron::from_str::<Sample>("(unknown: 1)").is_err());
}

#[test]
fn a_choice_is_described_by_the_names_that_serde_writes() {
    let Kind::Choice([at_once, after, between]) = Manner::KIND else {
        panic!("three members");
    };
    assert_eq!((at_once.name, at_once.doc), ("at_once", "at once"));
    assert_eq!(Manner::After(3).name(), "after");
    assert_eq!(ron::to_string(&Manner::After(3)).expect("prints"), "after(3)");
    let Content::Items([item]) = after.content else {
        panic!("one item");
    };
    assert!(matches!(item.kind, Kind::Integer { min: 1, .. }) && !item.is_optional_item());
    let Content::Fields([first, last]) = between.content else {
        panic!("two fields");
    };
    assert!(first.must_be_written() && !last.must_be_written());
    assert_eq!(last.unit, Some("steps"));
}

#[test]
fn replacements_take_their_description_from_the_record() {
    let [size, limit] = fields(Replacements::KIND) else {
        panic!("two fields");
    };
    assert_eq!((size.doc, limit.doc), ("A size.", "A limit. None: the base's."));
    assert_eq!(limit.unit, Some("nats"));
    assert!(matches!(size.kind, Kind::Optional(Kind::Integer { min: 1, max: 8 })));
    assert!(matches!(limit.kind, Kind::Optional(Kind::Float(_))));

    let (size, limit, fixed) = (1, None, true);
    let mut base = Base { size, limit, fixed };
    let (size, limit) = (None, Some(0.5));
    Replacements { size, limit }.apply(&mut base);
    assert_eq!((base.size, base.limit), (1, Some(0.5)));
}
