use tracing::subscriber::with_default;

use super::*;

/// A subscriber that exports nowhere.
fn exporting() -> impl tracing::Subscriber {
    use opentelemetry::trace::TracerProvider;
    let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder().build();
    tracing_subscriber::registry().with(exports(provider.tracer("test")))
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_span_goes_on_with_the_trace_that_it_was_given() {
    with_default(exporting(), || {
        let span = tracing::info_span!(target: SPANS, "work");
        follow(&span, PARENT);
        let parent = span.in_scope(trace_parent).unwrap();
        assert!(parent.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{parent}");
        assert!(parent.ends_with("-01") && parent != PARENT, "a span of its own: {parent}");
    });
}

#[test]
fn a_parent_that_makes_no_sense_begins_a_new_trace() {
    with_default(exporting(), || {
        for nonsense in ["", "00-0-0-01", "hello", "00-00000000000000000000000000000000-0000000000000000-01"]
        {
            let span = tracing::info_span!(target: SPANS, "work");
            follow(&span, nonsense);
            assert!(span.in_scope(trace_parent).is_some(), "{nonsense:?}");
        }
    });
}

#[test]
fn only_the_service_s_own_spans_are_exported() {
    with_default(exporting(), || {
        assert_eq!(tracing::info_span!(target: "hyper", "connection").in_scope(trace_parent), None);
        assert!(is_exporting());
    });
    assert!(!is_exporting());
}

#[test]
fn without_a_collector_there_is_no_trace() {
    let span = tracing::info_span!(target: SPANS, "work");
    follow(&span, PARENT);
    assert_eq!(span.in_scope(trace_parent), None);
}
