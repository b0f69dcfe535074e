//! Handlers whose future is boxed.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, FnArg, ItemFn, Result, ReturnType, Signature};

/// A function that boxes what the asynchronous one within it returns.
pub(crate) fn expand(handler: &ItemFn) -> Result<TokenStream> {
    let ItemFn { attrs, vis, sig, block } = handler;
    let Signature { asyncness, ident, inputs, output, generics, .. } = sig;
    if asyncness.is_none() {
        return Err(Error::new_spanned(sig, "a handler is asynchronous"));
    }
    if !generics.params.is_empty() {
        return Err(Error::new_spanned(generics, "a handler has no parameters"));
    }
    let types = inputs.iter().map(|input| match input {
        FnArg::Typed(input) => Ok(&input.ty),
        FnArg::Receiver(receiver) => Err(Error::new_spanned(receiver, "a handler is no method")),
    });
    let types = types.collect::<Result<Vec<_>>>()?;
    let names: Vec<_> = (0..types.len()).map(|at| format_ident!("argument_{at}")).collect();
    let output = match output {
        ReturnType::Default => quote! { () },
        ReturnType::Type(_, output) => quote! { #output },
    };
    Ok(quote! {
        #(#attrs)*
        #vis fn #ident(
            #(#names: #types),*
        ) -> ::std::pin::Pin<::std::boxed::Box<dyn ::std::future::Future<Output = #output> + ::std::marker::Send>> {
            #sig #block
            ::std::boxed::Box::pin(#ident(#(#names),*))
        }
    })
}
