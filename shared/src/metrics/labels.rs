//! The labels of the metrics. Each has few values, which the program decides.

use prometheus_client::encoding::EncodeLabelSet;

use crate::model::text_enum;

text_enum! {
    /// How an attempt at a job ended.
    JobAttemptOutcome {
        /// The document is searchable, or needs nothing more.
        Done => "done",
        /// It failed, and is tried again.
        Retried => "retried",
        /// It failed for good.
        Dead => "dead",
        /// The claim was lost: the job was cancelled, or another worker has it.
        Lost => "lost",
        /// The service stops; the attempt does not count.
        HandedBack => "handed_back",
        /// A part of the service is away; the attempt does not count.
        Postponed => "postponed",
    }
}

text_enum! {
    /// What a text is embedded for.
    EmbeddingPurpose {
        /// To be searched for.
        Question => "question",
        /// To be found.
        Passages => "passages",
    }
}

text_enum! {
    /// How what is held of a searchable document is not what was published.
    MismatchKind {
        /// The index holds fewer entries.
        Missing => "missing",
        /// The index holds more.
        Excess => "excess",
        /// The store does not hold all passages, or not the row of their generation.
        Passages => "passages",
    }
}

/// The word for how something ended.
pub(super) fn outcome(is_ok: bool) -> &'static str {
    if is_ok { "ok" } else { "error" }
}

macro_rules! labels {
    ($($name:ident { $($label:ident: $type:ty),+ })+) => {
        $(
            #[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
            pub(super) struct $name { $(pub(super) $label: $type),+ }
        )+
    };
}

labels! {
    // The pattern of the path, of which there are as many as operations.
    RouteLabels { method: &'static str, route: String }
    RequestLabels { method: &'static str, route: String, status: u16 }
    StateLabel { state: &'static str }
    OutcomeLabel { outcome: &'static str }
    StageLabel { stage: String }
    SourceTypeLabel { r#type: &'static str }
    PurposeLabel { purpose: &'static str }
    PurposeOutcomeLabels { purpose: &'static str, outcome: &'static str }
    IndexOperationLabels { operation: &'static str, outcome: &'static str }
    ProviderLabel { provider: &'static str }
    ModelCallLabels { provider: &'static str, outcome: &'static str }
    TokenDirectionLabels { provider: &'static str, direction: &'static str }
    ToolCallLabels { r#type: &'static str, outcome: &'static str }
    FinishReasonLabel { finish_reason: &'static str }
    MismatchKindLabel { kind: &'static str }
    CachePartLabel { part: &'static str }
    PoolLabel { pool: &'static str }
    ConnectionLabels { pool: &'static str, state: &'static str }
}
