//! Lists as OpenAI's clients page through them: `after` and `before` name the object that the page before or behind ends or begins with.

use axum::{extract::FromRequestParts, http::request::Parts};
use lectern_db::documents::files::IdWindow;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    error::{ApiError, FieldError},
    extract::parameter,
};

/// Which objects of a list are asked for: at most `MOST`, and `UNSAID` when that is not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::openai) struct CursorQuery<const MOST: u32, const UNSAID: u32> {
    limit: Option<u32>,
    after: Option<Uuid>,
    before: Option<Uuid>,
    is_ascending: bool,
}

/// A list of files.
pub(super) type FileCursor = CursorQuery<10_000, 10_000>;
/// Any other list.
pub(in crate::openai) type StoreCursor = CursorQuery<100, 20>;

impl<S: Sync, const MOST: u32, const UNSAID: u32> FromRequestParts<S> for CursorQuery<MOST, UNSAID> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::read(|name| parameter(&parts.uri, name))
    }
}

impl<const MOST: u32, const UNSAID: u32> CursorQuery<MOST, UNSAID> {
    fn read(given: impl Fn(&str) -> Option<String>) -> Result<Self, ApiError> {
        let mut wrong = Vec::new();
        let mut refuse = |name: &str, message: String| {
            wrong.push(FieldError::new(name, &message));
        };
        let mut query = Self { limit: None, after: None, before: None, is_ascending: false };
        match given("limit").map(|text| text.parse::<u32>()) {
            None => {}
            Some(Ok(limit)) if (1..=MOST).contains(&limit) => query.limit = Some(limit),
            Some(_) => refuse("limit", format!("must be a number between 1 and {MOST}")),
        }
        for (name, cursor) in [("after", &mut query.after), ("before", &mut query.before)] {
            if let Some(text) = given(name) {
                *cursor = Uuid::try_parse(&text).ok();
                if cursor.is_none() {
                    refuse(name, "must be the id of an object of the list".to_owned());
                }
            }
        }
        match given("order").as_deref() {
            None | Some("desc") => {}
            Some("asc") => query.is_ascending = true,
            Some(_) => refuse("order", "must be asc or desc".to_owned()),
        }
        if wrong.is_empty() { Ok(query) } else { Err(ApiError::invalid(wrong)) }
    }

    fn limit(self) -> u32 {
        self.limit.unwrap_or(UNSAID)
    }

    /// Whether rows are taken from the far end: those that come directly before one are.
    fn is_backward(self) -> bool {
        self.before.is_some() && self.after.is_none()
    }

    /// The rows to read: one more than is shown tells that there are more.
    pub(in crate::openai) fn window(self) -> IdWindow {
        let (first, last) =
            if self.is_ascending { (self.after, self.before) } else { (self.before, self.after) };
        IdWindow {
            above: first.unwrap_or(Uuid::nil()),
            below: last.unwrap_or(Uuid::max()),
            is_ascending: self.is_ascending != self.is_backward(),
            limit: self.limit() + 1,
        }
    }

    /// The page of what was read of [`window`](Self::window).
    pub(in crate::openai) fn page<T: ListedObject>(self, mut rows: Vec<T>) -> ObjectPage<T> {
        let limit = usize::try_from(self.limit()).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        if self.is_backward() {
            rows.reverse();
        }
        let id = |row: Option<&T>| row.map(ListedObject::object_id);
        let (first_id, last_id) = (id(rows.first()), id(rows.last()));
        ObjectPage { object: "list", data: rows, first_id, last_id, has_more }
    }
}

/// What is listed by its id.
pub(in crate::openai) trait ListedObject {
    fn object_id(&self) -> String;
}

/// Some objects of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::openai) struct ObjectPage<T> {
    /// Always `list`.
    object: &'static str,
    /// The objects.
    data: Vec<T>,
    /// The id of the first of them.
    #[schema(required = true)]
    first_id: Option<String>,
    /// The id of the last of them, which `after` takes.
    #[schema(required = true)]
    last_id: Option<String>,
    /// Whether there are more.
    has_more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ListedObject for u128 {
        fn object_id(&self) -> String {
            Uuid::from_u128(*self).to_string()
        }
    }

    fn read(query: &str) -> Result<CursorQuery<3, 2>, ApiError> {
        let uri: axum::http::Uri = format!("/v1/files?{query}").parse().unwrap();
        CursorQuery::read(|name| parameter(&uri, name))
    }

    /// What is shown of the objects 1 to 5, and whether there is more.
    fn shown(query: &str) -> (Vec<u128>, bool) {
        let query = read(query).unwrap();
        let window = query.window();
        let mut all: Vec<u128> = (1..=5).collect();
        all.retain(|id| (window.above..window.below).contains(&Uuid::from_u128(*id)));
        all.retain(|id| window.above != Uuid::from_u128(*id));
        if !window.is_ascending {
            all.reverse();
        }
        all.truncate(usize::try_from(window.limit).unwrap());
        let page = query.page(all);
        assert_eq!(page.first_id, page.data.first().map(ListedObject::object_id));
        assert_eq!(page.last_id, page.data.last().map(ListedObject::object_id));
        (page.data, page.has_more)
    }

    #[test]
    fn a_list_is_paged_in_both_orders_and_both_directions() {
        let id = |id: u128| id.object_id();
        for (query, expected) in [
            (String::new(), (vec![5, 4], true)),
            ("limit=3&order=asc".to_owned(), (vec![1, 2, 3], true)),
            (format!("after={}", id(4)), (vec![3, 2], true)),
            (format!("after={}", id(2)), (vec![1], false)),
            (format!("after={}&order=asc", id(3)), (vec![4, 5], false)),
            (format!("before={}", id(2)), (vec![4, 3], true)),
            (format!("before={}&order=asc", id(3)), (vec![1, 2], false)),
            (format!("after={}&before={}", id(5), id(1)), (vec![4, 3], true)),
            (format!("after={}", id(1)), (vec![], false)),
        ] {
            assert_eq!(shown(&query), expected, "{query}");
        }
    }

    #[test]
    fn what_is_no_page_is_refused_by_its_name() {
        for (query, name) in [
            ("limit=0", "limit"),
            ("limit=4", "limit"),
            ("limit=x", "limit"),
            ("after=file-abc", "after"),
            ("before=1", "before"),
            ("order=up", "order"),
        ] {
            let error = read(query).unwrap_err();
            assert_eq!((error.code, error.fields[0].path.as_str()), ("invalid_fields", name), "{query}");
        }
    }
}
