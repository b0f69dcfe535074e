//! What a run, or a step of it, used of its models.

use serde::Serialize;
use utoipa::ToSchema;

use crate::run::setup::RunUsage;

/// Tokens that were used.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
#[serde(rename_all = "camelCase")]
pub(in crate::run) struct UsageView {
    /// Tokens that the model read.
    input_tokens: u64,
    /// Tokens that the model wrote.
    output_tokens: u64,
    /// What they cost; null when no price is known.
    #[schema(required = true)]
    cost: Option<f64>,
    /// Who counted: `provider`, `estimated` (by the length of the texts), or `none` when no model was asked.
    #[schema(value_type = String)]
    source: &'static str,
}

impl UsageView {
    pub(in crate::run) fn of(spent: &RunUsage) -> Self {
        let source = match (spent.steps, spent.estimated) {
            (0, _) => "none",
            (_, true) => "estimated",
            (_, false) => "provider",
        };
        Self {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cost: spent.known_cost(),
            source,
        }
    }
}
