//! The code that reads a body.

use std::iter;

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Data, DataStruct, DeriveInput, Error, Field, Fields, GenericArgument, Ident, PathArguments, Result, Type,
    spanned::Spanned,
};

use crate::attributes::{BodyAttributes, BodyKind, DefaultValue, FieldAttributes};

/// A field of the struct.
struct BodyField<'a> {
    ident: &'a Ident,
    /// What it is called in JSON.
    name: String,
    attributes: FieldAttributes,
    r#type: &'a Type,
    /// Its type without `Option`s, and how many of them there are.
    inner: &'a Type,
    options: usize,
}

/// The implementation of `FromFields` for a struct.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(DataStruct { fields: Fields::Named(fields), .. }) = &input.data else {
        return Err(Error::new(input.ident.span(), "a body is a struct with named fields"));
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new(input.generics.span(), "a body has no parameters"));
    }
    let body = BodyAttributes::of(&input.attrs)?;
    let fields = fields
        .named
        .iter()
        .map(|field| BodyField::of(field, &body))
        .collect::<Result<Vec<BodyField<'_>>>>()?;
    let readings = in_order(&fields, &body.first)?.into_iter().map(|field| {
        let (variable, r#type) = (field.variable(), field.r#type);
        let read = field.read(&body, &fields)?;
        Ok(quote! { let #variable: #r#type = #read; })
    });
    let readings = readings.collect::<Result<Vec<TokenStream>>>()?;
    let (idents, variables): (Vec<_>, Vec<_>) =
        fields.iter().map(|field| (field.ident, field.variable())).unzip();
    let sender = body.stranger.then(|| {
        quote! { const SENDER: crate::fields::SenderTrust = crate::fields::SenderTrust::Stranger; }
    });
    let names = names(&fields);
    let refusals = if body.kind == BodyKind::Change {
        let not_null = fields.iter().filter(|field| field.attributes.not_null).map(|field| &field.name);
        quote! {
            fields.begin_change(&[#(#names),*]);
            fields.refuse_nulls(&[#(#not_null),*]);
        }
    } else if body.kind == BodyKind::Open || fields.iter().any(|field| field.attributes.flatten) {
        TokenStream::new()
    } else {
        quote! { fields.only_in_change(&[#(#names),*]); }
    };
    let before = body.before.as_ref().map(|path| quote! { #path(fields); });
    let after = body.after.as_ref().map(|path| quote! { #path(&body, fields); });
    let name = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl crate::fields::FromFields for #name {
            #sender

            fn from_fields(fields: &mut crate::fields::JsonFields<'_>) -> Self {
                #refusals
                #before
                #(#readings)*
                let body = Self { #(#idents: #variables),* };
                #after
                body
            }
        }
    })
}

/// What fields are called in JSON, by their older names too.
fn names<'a>(fields: &'a [BodyField<'_>]) -> Vec<&'a String> {
    let named = fields.iter().filter(|field| field.is_named());
    named.flat_map(|field| iter::once(&field.name).chain(&field.attributes.alias)).collect()
}

/// The fields as they are to be read: the first ones, then the others.
fn in_order<'a, 'b>(fields: &'b [BodyField<'a>], first: &[Ident]) -> Result<Vec<&'b BodyField<'a>>> {
    let find = |name: &Ident| {
        let found = fields.iter().find(|field| field.ident == name);
        found.ok_or_else(|| Error::new(name.span(), "there is no such field"))
    };
    let mut ordered = first.iter().map(find).collect::<Result<Vec<_>>>()?;
    ordered.extend(fields.iter().filter(|field| !first.contains(field.ident)));
    Ok(ordered)
}

impl<'a> BodyField<'a> {
    fn of(field: &'a Field, body: &BodyAttributes) -> Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(Error::new(field.span(), "a field has a name"));
        };
        let attributes = FieldAttributes::of(&field.attrs)?;
        let (mut inner, mut options) = (&field.ty, 0);
        while let Some(within) = option_of(inner) {
            (inner, options) = (within, options + 1);
        }
        attributes.check(inner)?;
        Ok(Self { ident, name: body.name(ident, &attributes), attributes, r#type: &field.ty, inner, options })
    }

    fn variable(&self) -> Ident {
        format_ident!("field_{}", self.ident)
    }

    /// Whether it stands in the JSON under a name of its own.
    fn is_named(&self) -> bool {
        !self.attributes.skip && !self.attributes.flatten
    }

    /// An expression of the field's value.
    fn read(&self, body: &BodyAttributes, fields: &[BodyField<'_>]) -> Result<TokenStream> {
        let Self { name, attributes, r#type, inner, .. } = self;
        if attributes.skip {
            return Ok(quote! { ::core::default::Default::default() });
        }
        if attributes.flatten {
            let names = names(fields);
            return Ok(quote! { fields.others(&[#(#names),*]) });
        }
        let wrong = |message: &str| Err(Error::new(r#type.span(), message));
        let read = self.read_given();
        let or_default = match &attributes.default {
            Some(DefaultValue::Given(value)) => quote! { .unwrap_or_else(|| #value) },
            Some(DefaultValue::OfType) | None => quote! { .unwrap_or_default() },
        };
        let has_default = attributes.default.is_some();
        let is_change = body.kind == BodyKind::Change;
        match (is_change, self.options) {
            (false, 0) if has_default || attributes.with.is_some() => Ok(quote! { #read #or_default }),
            (false, 0) => {
                let rule = self.rule();
                Ok(quote_spanned! { inner.span()=> crate::fields::required::<#inner>(fields, #rule) })
            }
            (_, 1) if has_default && (!is_change || attributes.not_null) => {
                wrong("a field with a default is never none: its type has no `Option`")
            }
            (false, 1) => Ok(read),
            (true, 1) if attributes.not_null => {
                Ok(quote! { if fields.get(#name).is_some() { #read } else { ::core::option::Option::None } })
            }
            (true, 1) => Ok(quote! { fields.given(#name).then(|| #read #or_default) }),
            (true, 2) if attributes.not_null || has_default => {
                wrong("null is none here: without `nullable = false` and `default`")
            }
            (true, 2) => Ok(quote! { fields.given(#name).then(|| #read) }),
            (false, 2) => wrong("null is none in a body: one `Option` less"),
            (true, 0) => wrong("a change may leave a field out: its type is an `Option`"),
            (_, _) => wrong("too many `Option`s"),
        }
    }

    /// An expression of type `Option<inner>`, which is none for what is not there.
    fn read_given(&self) -> TokenStream {
        let (inner, rule) = (self.inner, self.rule());
        match &self.attributes.with {
            Some(path) => quote_spanned! { path.span()=>
                ::core::convert::Into::<::core::option::Option<#inner>>::into(#path(fields, #rule))
            },
            None => quote_spanned! { inner.span()=>
                <#inner as crate::fields::FieldValue>::read(fields, #rule)
            },
        }
    }

    /// A reference to its `FieldRule`.
    fn rule(&self) -> TokenStream {
        let name = &self.name;
        let (limits, values): (Vec<_>, Vec<_>) = self.attributes.limits.iter().cloned().unzip();
        if limits.is_empty() {
            return quote! { &crate::fields::FieldRule::named(#name) };
        }
        quote! { &crate::fields::FieldRule { #(#limits: #values,)* ..crate::fields::FieldRule::named(#name) } }
    }
}

/// What an `Option` is of, when the type is one.
fn option_of(r#type: &Type) -> Option<&Type> {
    let Type::Path(path) = r#type else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(of) = &last.arguments else { return None };
    match of.args.first()? {
        GenericArgument::Type(of) => Some(of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_str;

    use super::*;

    #[test]
    fn what_cannot_be_read_as_it_is_described_does_not_compile() {
        for (body, message) in [
            ("struct Body { #[body(wiht = x)] a: String }", "a body's field has `with = …`"),
            ("#[body(chang)] struct Body { a: String }", "a body has `change`"),
            ("#[body(first(b))] struct Body { a: String }", "there is no such field"),
            ("#[schema(rename_all = \"UPPERCASE\")] struct Body { a: String }", "a body is in camelCase or"),
            ("struct Body(String);", "a body is a struct with named fields"),
            ("struct Body<T> { a: T }", "a body has no parameters"),
            ("#[body(change)] struct Body { a: String }", "a change may leave a field out"),
            ("struct Body { a: Option<Option<String>> }", "null is none in a body"),
            ("struct Body { #[body(default)] a: Option<String> }", "a field with a default is never none"),
            (
                "#[body(change)] struct Body { #[schema(nullable = false)] a: Option<Option<String>> }",
                "null is none here",
            ),
            ("struct Body { #[schema(pattern = \"^a$\")] a: String }", "a pattern is kept by a reader"),
            ("struct Body { #[schema(min_length = 3)] a: String }", "`min_length = 3` is described"),
            ("struct Body { #[schema(min_items = 3)] a: Vec<String> }", "`min_items` is described"),
            ("struct Body { #[schema(maximum = 9)] a: u32 }", "a `u32` is a count from 1 on"),
            ("struct Body { a: f64 }", "a number needs `minimum` and `maximum`"),
            ("struct Body { #[body(alias = \"b\")] a: String }", "an older name is read by a reader"),
            (
                "struct Body { #[body(skip, with = x)] a: f64 }",
                "`with`, `skip` and `flatten` exclude each other",
            ),
        ] {
            let error = expand(&parse_str(body).unwrap()).unwrap_err().to_string();
            assert!(error.contains(message), "{body}: {error}");
        }
    }

    #[test]
    fn of_a_change_and_of_what_is_in_it_only_what_it_has_may_be_said() {
        let code = |body: &str| expand(&parse_str(body).unwrap()).unwrap().to_string();
        let change = code("#[body(change)] struct Body { a: Option<String> }");
        assert!(change.contains("begin_change (& [\"a\"])"), "{change}");
        let within =
            code("struct Body { #[body(with = x, alias = \"old\")] a: String, #[body(skip)] b: u32 }");
        assert!(within.contains("only_in_change (& [\"a\" , \"old\"])"), "{within}");
        let open = code("struct Body { a: String, #[serde(flatten)] others: Map<String, Value> }");
        assert!(!open.contains("only_in_change"), "{open}");
        let open = code("#[body(open)] struct Body { a: String }");
        assert!(!open.contains("only_in_change"), "{open}");
    }

    #[test]
    fn what_is_said_for_others_is_gone_past() {
        let body = "#[schema(as = Other<u8>, title = \"x\")] #[serde(deny_unknown_fields, rename_all = \"snake_case\")] \
                    struct Body { #[schema(value_type = HashMap<String, Vec<u8>>, example = json!({\"a\": 1, \"b\": 2}), \
                    pattern = r\"\\S\", xml(name = \"a\"), inline, min_length = 1)] a: String }";
        let code = expand(&parse_str(body).unwrap()).unwrap().to_string();
        assert!(code.contains("min_length : 1"), "{code}");
    }
}
