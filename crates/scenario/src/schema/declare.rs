//! The macros of the language; see the module's documentation for their form.

/// The snake-case name of a variant, as a constant.
#[doc(hidden)]
#[macro_export]
macro_rules! name_of {
    ($variant:ident) => {{
        const SNAKE: &([u8; 64], usize) = &$crate::schema::snake_case(stringify!($variant));
        match std::str::from_utf8(SNAKE.0.split_at(SNAKE.1).0) {
            Ok(name) => name,
            Err(_) => stringify!($variant),
        }
    }};
}

/// One [`Field`](super::Field): `default? [docs] [unit?] name: type [range?]`.
#[doc(hidden)]
#[macro_export]
macro_rules! field {
    ($has_default:literal [$($doc:literal)+] [$($unit:literal)?] $name:ident: $type:ty [$($range:expr)?]) => {
        $crate::schema::Field {
            name: stringify!($name),
            doc: concat!($($doc),+).trim_ascii_start(),
            unit: {
                const UNIT: &[&str] = &[$($unit)?];
                UNIT.first().copied()
            },
            kind: $crate::schema::field!(@kind $type $(, $range)?),
            has_default: $has_default,
        }
    };
    (@kind $type:ty) => {
        <$type as $crate::schema::Described>::KIND
    };
    (@kind $type:ty, $range:expr) => {{
        #[allow(unused_imports, reason = "a range may be a constant of its own")]
        use $crate::schema::range::*;
        const OWN: $crate::schema::Kind = <$type as $crate::schema::Described>::KIND;
        const RANGE: $crate::schema::Kind = $range;
        const INNER: $crate::schema::Kind = OWN.inner().with_inner(&RANGE);
        OWN.with_inner(&INNER)
    }};
}

/// A struct and its description; `has_default`: of every field; `serde`: words for its container.
#[doc(hidden)]
#[macro_export]
macro_rules! structure {
    (
        $has_default:literal ($($serde:ident),+)
        $(#[$meta:meta])*
        pub struct $name:ident {
            $([$($doc:literal)+] [$($unit:literal)?] $field:ident: $type:ty [$($range:expr)?];)*
        }
    ) => {
        #[allow(unused_imports, reason = "serde's attribute names the path, so every declaration imports it")]
        use $crate::schema::derive::*;

        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, $crate::schema::derive::simic_serde::Serialize, $crate::schema::derive::simic_serde::Deserialize)]
        #[serde($($serde),+, crate = "simic_serde")]
        pub struct $name {
            $(
                $(#[doc = $doc])+
                $(#[doc = concat!("\n\nUnit: ", $unit, ".")])?
                pub $field: $type,
            )*
        }

        impl $crate::schema::Described for $name {
            const KIND: $crate::schema::Kind = {
                const FIELDS: &[$crate::schema::Field] =
                    &[$($crate::schema::field!($has_default [$($doc)+] [$($unit)?] $field: $type [$($range)?])),*];
                $crate::schema::Kind::Record(FIELDS)
            };
        }
    };
}

/// A struct with a default for every field.
#[macro_export]
macro_rules! section {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[unit = $unit:literal])?
                $field:ident: $type:ty $(= $default:expr)? $(, $range:expr)?;
            )*
        }
    ) => {
        $crate::schema::structure! {
            true (default, deny_unknown_fields)
            $(#[$meta])*
            pub struct $name {
                $([$($doc)+] [$($unit)?] $field: $type [$($range)?];)*
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::schema::section!(@default $($default)?)),* }
            }
        }
    };
    (@default $default:expr) => { $default };
    (@default) => { Default::default() };
}

/// A struct whose fields must be written, unless they may be `None`.
#[macro_export]
macro_rules! record {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[unit = $unit:literal])?
                $field:ident: $type:ty $(, $range:expr)?;
            )*
        }
    ) => {
        $crate::schema::structure! {
            false (deny_unknown_fields)
            $(#[$meta])*
            pub struct $name {
                $([$($doc)+] [$($unit)?] $field: $type [$($range)?];)*
            }
        }
    };
}

/// An enum whose members stand alone, hold one value, or hold fields that must be written.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $variant:ident
                $(($item:ty $(, $item_range:expr)?))?
                $({
                    $(
                        $(#[doc = $field_doc:literal])+
                        $(#[unit = $unit:literal])?
                        $field:ident: $type:ty $(, $range:expr)?;
                    )+
                })?,
            )+
        }
    ) => {
        #[allow(unused_imports, reason = "serde's attribute names the path, so every declaration imports it")]
        use $crate::schema::derive::*;

        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, $crate::schema::derive::simic_serde::Serialize, $crate::schema::derive::simic_serde::Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields, crate = "simic_serde")]
        pub enum $name {
            $(
                $(#[doc = $doc])+
                $variant $(($item))? $({
                    $(
                        $(#[doc = $field_doc])+
                        $(#[doc = concat!("\n\nUnit: ", $unit, ".")])?
                        $field: $type,
                    )+
                })?,
            )+
        }

        impl $name {
            /// As written in a scenario.
            #[allow(dead_code, reason = "a plugin need not ask for it")]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $crate::schema::name_of!($variant)),+
                }
            }
        }

        impl $crate::schema::Described for $name {
            const KIND: $crate::schema::Kind = {
                const VARIANTS: &[$crate::schema::Variant] = &[$(
                    $crate::schema::Variant {
                        name: $crate::schema::name_of!($variant),
                        doc: concat!($($doc),+).trim_ascii_start(),
                        content: $crate::schema::choice!(@content
                            $(($item $(, $item_range)?))?
                            $({$($crate::schema::field!(
                                false [$($field_doc)+] [$($unit)?] $field: $type [$($range)?]
                            )),+})?
                        ),
                    }
                ),+];
                $crate::schema::Kind::Choice(VARIANTS)
            };
        }
    };
    (@content) => {
        $crate::schema::Content::Nothing
    };
    (@content ($item:ty $(, $range:expr)?)) => {{
        const ITEMS: &[$crate::schema::Field] =
            &[$crate::schema::Field::unnamed($crate::schema::field!(@kind $item $(, $range)?))];
        $crate::schema::Content::Items(ITEMS)
    }};
    (@content {$($fields:expr),+}) => {{
        const FIELDS: &[$crate::schema::Field] = &[$($fields),+];
        $crate::schema::Content::Fields(FIELDS)
    }};
}

/// Optional replacements for some fields of a record: documentation, unit and range are the record's own.
macro_rules! overlay {
    (
        $(#[$meta:meta])*
        pub struct $name:ident of $record:ident {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(
                #[doc = concat!("Replaces [`", stringify!($record), "::", stringify!($field), "`].")]
                pub $field: Option<$type>,
            )*
        }

        impl $name {
            /// Replaces what is given here.
            pub fn apply(&self, record: &mut $record) {
                fn replace<T: Clone, U: From<T>>(value: &mut U, with: &Option<T>) {
                    if let Some(with) = with {
                        *value = with.clone().into();
                    }
                }
                $(replace(&mut record.$field, &self.$field);)*
            }
        }

        impl $crate::schema::Described for $name {
            const KIND: $crate::schema::Kind = {
                const FIELDS: &[$crate::schema::Field] = &[$(
                    $crate::schema::Field::replacing(
                        <$record as $crate::schema::Described>::KIND,
                        stringify!($field),
                        concat!($($doc),*).trim_ascii_start(),
                    )
                ),*];
                $crate::schema::Kind::Record(FIELDS)
            };
        }
    };
}

pub(crate) use overlay;
pub use {choice, field, name_of, record, section, structure};
