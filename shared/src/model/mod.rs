//! Plain data, one file a noun. Anyone may use it; it knows no store and no protocol.

pub mod agent;
pub mod audit;
pub mod collection;
pub mod document;
mod document_type;
pub mod evaluation;
pub mod job;
mod json;
pub mod language;
pub mod page;
pub mod place;
pub mod prompt;
pub mod publication;
pub mod receipt;
pub mod run;
pub mod search;
pub mod space;
pub mod sync;
pub mod tag;
pub mod tool;
pub mod user;
pub mod webhook;
pub mod workspace;

pub use json::Json;

/// Declares an enum that is one fixed word in JSON, in the store and in messages.
macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every value, in the order in which messages list them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word that stands for this value everywhere outside the program.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// Every word, separated by commas, for a message that says what is accepted.
            pub fn choices() -> String {
                Self::ALL.iter().map(|value| value.as_str()).collect::<Vec<_>>().join(", ")
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or($crate::model::UnknownWord)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(|_| serde::de::Error::custom(format!("must be one of {}", Self::choices())))
            }
        }

        impl<DB: sqlx::Database> sqlx::Type<DB> for $name where String: sqlx::Type<DB> {
            fn type_info() -> DB::TypeInfo {
                <String as sqlx::Type<DB>>::type_info()
            }

            fn compatible(ty: &DB::TypeInfo) -> bool {
                <String as sqlx::Type<DB>>::compatible(ty)
            }
        }

        impl<'q, DB: sqlx::Database> sqlx::Encode<'q, DB> for $name where String: sqlx::Encode<'q, DB> {
            fn encode_by_ref(
                &self,
                buffer: &mut <DB as sqlx::Database>::ArgumentBuffer,
            ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                <String as sqlx::Encode<'q, DB>>::encode(self.as_str().to_owned(), buffer)
            }
        }

        impl<'r, DB: sqlx::Database> sqlx::Decode<'r, DB> for $name where &'r str: sqlx::Decode<'r, DB> {
            fn decode(value: <DB as sqlx::Database>::ValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
                Ok(<&str as sqlx::Decode<'r, DB>>::decode(value)?.parse()?)
            }
        }
    };
}
pub(crate) use text_enum;

/// The word is not one of the enum's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown word")]
pub struct UnknownWord;
