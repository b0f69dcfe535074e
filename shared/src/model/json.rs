//! JSON in a TEXT column. PostgreSQL's own JSON type refuses `\u0000`, and SQLite's NUMERIC affinity would turn the JSON
//! text `123` into a number; TEXT keeps what was written.

use serde::{Serialize, de::DeserializeOwned};
use sqlx::{Database, Decode, Encode, Type, encode::IsNull, error::BoxDynError};

/// A value stored as JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<DB: Database, T> Type<DB> for Json<T>
where
    String: Type<DB>,
{
    fn type_info() -> DB::TypeInfo {
        <String as Type<DB>>::type_info()
    }

    fn compatible(ty: &DB::TypeInfo) -> bool {
        <String as Type<DB>>::compatible(ty)
    }
}

impl<'q, DB: Database, T: Serialize> Encode<'q, DB> for Json<T>
where
    String: Encode<'q, DB>,
{
    fn encode_by_ref(&self, buffer: &mut <DB as Database>::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <String as Encode<'q, DB>>::encode(serde_json::to_string(&self.0)?, buffer)
    }
}

impl<'r, DB: Database, T: DeserializeOwned> Decode<'r, DB> for Json<T>
where
    &'r str: Decode<'r, DB>,
{
    fn decode(value: <DB as Database>::ValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Self(serde_json::from_str(<&str as Decode<'r, DB>>::decode(value)?)?))
    }
}
