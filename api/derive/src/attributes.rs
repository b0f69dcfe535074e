//! What is said of a body and its fields, in the attributes of this crate, of utoipa and of serde.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Error, Expr, Ident, Lit, LitInt, LitStr, Path, Result, Token, Type, ext::IdentExt,
    meta::ParseNestedMeta, parenthesized, punctuated::Punctuated, spanned::Spanned, token::Paren,
};

/// Limits of a schema that are described, and that no reader of a type keeps.
const NOT_KEPT: [&str; 6] = [
    "exclusive_minimum",
    "exclusive_maximum",
    "multiple_of",
    "min_items",
    "min_properties",
    "max_properties",
];
/// The pattern of a text that is not blank, which `min_length = 1` keeps.
const NOT_BLANK: &str = r"\S";

/// What becomes of fields that a body does not have.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// They are refused where the body is within a change.
    #[default]
    Part,
    /// They are refused.
    Change,
    /// They are gone past wherever it is.
    Open,
}

/// What is said of the struct.
#[derive(Default)]
pub(crate) struct BodyAttributes {
    pub(crate) kind: BodyKind,
    pub(crate) stranger: bool,
    pub(crate) first: Vec<Ident>,
    pub(crate) before: Option<Path>,
    pub(crate) after: Option<Path>,
    camel_case: bool,
}

/// What a field stands for that is left out.
pub(crate) enum DefaultValue {
    /// The default of its type.
    OfType,
    Given(TokenStream),
}

/// What is said of a field.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub(crate) with: Option<Path>,
    pub(crate) default: Option<DefaultValue>,
    pub(crate) skip: bool,
    pub(crate) flatten: bool,
    /// An older name, which its own reader reads as well.
    pub(crate) alias: Option<String>,
    /// Null is refused.
    pub(crate) not_null: bool,
    /// Fields of a `FieldRule`, with their values.
    pub(crate) limits: Vec<(Ident, TokenStream)>,
    rename: Option<String>,
    /// What is described and not kept, and where.
    not_kept: Option<(String, Span)>,
    /// A pattern that texts are described by.
    pattern: Option<Span>,
    /// A bound of a number, besides those that every count has.
    bound: Option<Span>,
}

impl BodyAttributes {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut of = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("body") {
                attribute.parse_nested_meta(|meta| of.add(&meta))?;
            } else if attribute.path().is_ident("schema") || attribute.path().is_ident("serde") {
                attribute.parse_nested_meta(|meta| {
                    if !meta.path.is_ident("rename_all") {
                        return skip_value(&meta);
                    }
                    let case: LitStr = meta.value()?.parse()?;
                    match case.value().as_str() {
                        "camelCase" => of.camel_case = true,
                        "snake_case" => {}
                        _ => return Err(Error::new(case.span(), "a body is in camelCase or in snake_case")),
                    }
                    Ok(())
                })?;
            }
        }
        Ok(of)
    }

    fn add(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match name_of(meta).as_str() {
            "change" => self.kind = BodyKind::Change,
            "open" => self.kind = BodyKind::Open,
            "stranger" => self.stranger = true,
            "before" => self.before = Some(meta.value()?.parse()?),
            "after" => self.after = Some(meta.value()?.parse()?),
            "first" => {
                let names;
                parenthesized!(names in meta.input);
                let names = Punctuated::<Ident, Token![,]>::parse_terminated_with(&names, Ident::parse_any)?;
                self.first.extend(names);
            }
            _ => {
                return Err(meta.error(
                    "a body has `change`, `open`, `stranger`, `first(…)`, `before = …`, `after = …`",
                ));
            }
        }
        Ok(())
    }

    /// What a field is called in JSON.
    pub(crate) fn name(&self, ident: &Ident, field: &FieldAttributes) -> String {
        if let Some(name) = &field.rename {
            return name.clone();
        }
        let name = ident.unraw().to_string();
        if !self.camel_case {
            return name;
        }
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| {
            let mut letters = word.chars();
            let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
            name.chars().chain(capital).chain(letters).collect()
        })
    }
}

impl FieldAttributes {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut of = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("body") {
                attribute.parse_nested_meta(|meta| of.add(&meta))?;
            } else if attribute.path().is_ident("schema") {
                attribute.parse_nested_meta(|meta| of.add_schema(&meta))?;
            } else if attribute.path().is_ident("serde") {
                attribute.parse_nested_meta(|meta| match name_of(&meta).as_str() {
                    "rename" => of.add_name(&meta),
                    "flatten" => {
                        of.flatten = true;
                        Ok(())
                    }
                    _ => skip_value(&meta),
                })?;
            }
        }
        Ok(of)
    }

    fn add(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        match name_of(meta).as_str() {
            "with" => self.with = Some(meta.value()?.parse()?),
            "default" if meta.input.peek(Token![=]) => {
                let value: Expr = meta.value()?.parse()?;
                self.default = Some(DefaultValue::Given(value.into_token_stream()));
            }
            "default" => self.default = Some(DefaultValue::OfType),
            "skip" => self.skip = true,
            "alias" => self.alias = Some(meta.value()?.parse::<LitStr>()?.value()),
            _ => {
                return Err(meta
                    .error("a body's field has `with = …`, `alias = …`, `default`, `default = …`, `skip`"));
            }
        }
        Ok(())
    }

    fn add_schema(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let name = name_of(meta);
        match name.as_str() {
            "min_length" | "max_length" | "max_items" => {
                let value: LitInt = meta.value()?.parse()?;
                if name == "min_length" && value.base10_parse::<usize>()? > 1 {
                    self.not_kept = Some((format!("`min_length = {value}`"), value.span()));
                }
                self.limits.push((Ident::new(&name, value.span()), quote!(#value)));
            }
            "minimum" | "maximum" => {
                let input = meta.value()?;
                let sign: Option<Token![-]> = input.parse()?;
                let value: Lit = input.parse()?;
                let number: f64 = match &value {
                    Lit::Int(value) => value.base10_parse()?,
                    Lit::Float(value) => value.base10_parse()?,
                    _ => return Err(Error::new(value.span(), "a number")),
                };
                let of_counts = if name == "minimum" { 1.0 } else { f64::from(u32::MAX) };
                if sign.is_some() || number.total_cmp(&of_counts).is_ne() {
                    self.bound = Some(value.span());
                }
                self.limits.push((Ident::new(&name, value.span()), quote!(#sign #number)));
            }
            "nullable" if meta.input.peek(Token![=]) => {
                self.not_null = !meta.value()?.parse::<syn::LitBool>()?.value;
            }
            "rename" => self.add_name(meta)?,
            "pattern" if meta.input.peek2(Lit) => {
                let pattern: Lit = meta.value()?.parse()?;
                let blank = matches!(&pattern, Lit::Str(pattern) if pattern.value() == NOT_BLANK);
                self.pattern = (!blank).then(|| pattern.span());
            }
            "default" if meta.input.peek2(Lit) => {
                let value: Lit = meta.value()?.parse()?;
                self.default.get_or_insert(DefaultValue::Given(value.into_token_stream()));
            }
            _ => {
                if NOT_KEPT.contains(&name.as_str()) {
                    self.not_kept = Some((format!("`{name}`"), meta.path.span()));
                }
                skip_value(meta)?;
            }
        }
        Ok(())
    }

    fn add_name(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        self.rename = Some(meta.value()?.parse::<LitStr>()?.value());
        Ok(())
    }

    /// Refuses what the schema promises of a field of this type and its reader does not keep.
    pub(crate) fn check(&self, r#type: &Type) -> Result<()> {
        let has = |limit: &str| self.limits.iter().any(|(name, _)| name == limit);
        let alone = [self.with.is_some(), self.skip, self.flatten];
        if alone.iter().filter(|said| **said).count() > 1 {
            return Err(Error::new(r#type.span(), "`with`, `skip` and `flatten` exclude each other"));
        }
        if self.alias.is_some() && self.with.is_none() {
            return Err(Error::new(
                r#type.span(),
                "an older name is read by a reader of the field's own: give one by `with`",
            ));
        }
        if alone.contains(&true) {
            return Ok(());
        }
        if let Some((limit, span)) = &self.not_kept {
            let message =
                format!("{limit} is described, and no reader of a type keeps it: give one by `with`");
            return Err(Error::new(*span, message));
        }
        if let Some(span) = self.pattern.filter(|_| is(r#type, &["String", "SecretString"])) {
            return Err(Error::new(
                span,
                "a pattern is kept by a reader of the field's own: give one by `with`",
            ));
        }
        if let Some(span) = self.bound.filter(|_| is(r#type, &["u32"])) {
            return Err(Error::new(
                span,
                "a `u32` is a count from 1 on, without other bounds: a `usize` has them",
            ));
        }
        if is(r#type, &["f64", "usize"]) && !(has("minimum") && has("maximum")) {
            return Err(Error::new(r#type.span(), "a number needs `minimum` and `maximum` in its schema"));
        }
        Ok(())
    }
}

/// Whether a type is called one of these.
fn is(r#type: &Type, names: &[&str]) -> bool {
    let Type::Path(path) = r#type else { return false };
    path.path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name))
}

fn name_of(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(|name| name.unraw().to_string()).unwrap_or_default()
}

/// Goes past what is said for utoipa or serde alone.
fn skip_value(meta: &ParseNestedMeta<'_>) -> Result<()> {
    let input = meta.input;
    if input.peek(Paren) {
        input.parse::<TokenTree>()?;
    } else if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        if meta.path.is_ident("value_type") {
            input.parse::<Type>()?;
        }
        while !input.is_empty() && !input.peek(Token![,]) {
            input.parse::<TokenTree>()?;
        }
    }
    Ok(())
}
