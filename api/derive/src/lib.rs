//! What is written for each request by the compiler instead of by hand.
//!
//! `#[derive(RequestBody)]`: a request's body is written once, as a struct. utoipa describes the struct, and this reads it, by
//! the same names and limits. It knows nothing of the service but the path `crate::fields`, which the struct's crate has.
//!
//! `#[handler]`: what answers a request returns its future in a box.

mod attributes;
mod expand;
mod handler;

use proc_macro::TokenStream;
use syn::{DeriveInput, ItemFn, parse_macro_input};

/// Reads a struct from the fields of a JSON object: implements `crate::fields::FromFields`.
///
/// A field is called as `#[serde(rename_all)]` or `#[schema(rename_all)]` has it, and `rename` of either. How it is read is up to
/// its type, by `crate::fields::FieldValue`:
///
/// | field | in a body | in a change |
/// |---|---|---|
/// | `T` | has to be given | – |
/// | `Option<T>` | may be left out, or null | left out to keep it; null is refused with `nullable = false`, else it stands for `T`'s default |
/// | `Option<Option<T>>` | – | left out to keep it; null is `Some(None)` |
///
/// Of `#[schema(…)]` are read: `min_length` (1 refuses what is blank), `max_length`, `minimum`, `maximum`, `max_items`, `nullable`,
/// `rename` and a literal `default`. A limit that would be described and not be kept does not compile.
///
/// Of the struct, `#[body(…)]` says:
/// - `change`: it is a change. Fields that it does not have are refused, and so are those of the objects in it that are bodies.
/// - `open`: fields that it does not have are gone past there too.
/// - `stranger`: anybody may send it, and not only those whose credentials were checked.
/// - `first(a, b)`: these fields are read before the others, which decides the order in which errors are told.
/// - `before = path`: a function of the fields that is called before any is read.
/// - `after = path`: a function of the struct and the fields that is called when all are read: what several have to do with
///   each other. What is wrong has a stand-in there.
///
/// Of a field, `#[body(…)]` says:
/// - `with = path`: it is read by this function, in the place of its type's. Like that, it is given the fields and the
///   `FieldRule`, and gives the value, or none for what is missing or wrong. What has to be given is refused there.
/// - `alias = "name"`: an older name of the field, which the function of `with` reads as well.
/// - `default`, `default = expression`: what a field stands for that is left out, or null.
/// - `skip`: it is none of the JSON's, and its type's default.
///
/// With `#[serde(flatten)]`, a field holds everything that has no field of its own.
#[proc_macro_derive(RequestBody, attributes(body, schema, serde))]
pub fn derive_request_body(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Has an asynchronous function, which answers requests, return its future in a box. The router asks of each handler in a dozen places
/// whether its future can be sent between threads, and the compiler looks through everything that is awaited in it each time: with
/// boxes, once. Without them that is a good part of the time that the crate of the handlers takes to compile.
#[proc_macro_attribute]
pub fn handler(_attributes: TokenStream, input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as ItemFn);
    handler::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
