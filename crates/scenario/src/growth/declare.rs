//! Declarations of the members of the vocabulary: closed sets with codes and names, and values that are written as text.

/// Serde in the form that `text` gives and `FromStr` reads.
#[doc(hidden)]
#[macro_export]
macro_rules! written_as_text {
    ($type:ty, $text:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text: fn(&Self) -> String = $text;
                serializer.serialize_str(&text(self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    };
}
/// A name that a member of the vocabulary does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` isn't a known name")]
pub struct NameError(pub String);

/// Declares a field-less enum with fixed codes and its members' names; serde writes them in lower case.
#[doc(hidden)]
#[macro_export]
macro_rules! coded_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $code:literal => $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_meta])* $variant = $code),+ }

        impl $name {
            /// All members, in code order.
            pub const ALL: [Self; [$($code),+].len()] = [$(Self::$variant),+];

            /// The fixed number of the member.
            pub const fn code(self) -> usize {
                self as usize
            }

            /// The member of that number.
            pub fn from_code(code: usize) -> Option<Self> {
                Self::ALL.into_iter().find(|member| member.code() == code)
            }

            /// The name that telemetry and messages print.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::growth::NameError;

            /// Reads the name in either case.
            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let mut members = Self::ALL.into_iter();
                let member = members.find(|member| member.name().eq_ignore_ascii_case(name));
                member.ok_or_else(|| $crate::growth::NameError(name.into()))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        $crate::growth::written_as_text!($name, |member| member.name().to_ascii_lowercase());
    };
}
pub use {coded_enum, written_as_text};
