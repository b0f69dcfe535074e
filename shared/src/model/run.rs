//! Runs of agents: why one ends, and what its steps are.

use super::text_enum;

text_enum! {
    /// Why a run ended.
    TerminationReason {
        /// The model was done.
        Stop => "stop",
        /// The answer was cut at the model's limit.
        Length => "length",
        /// The limit of steps was reached; the answer is what there was, as for the other limits.
        MaxIterations => "max_iterations",
        /// The limit of time was reached.
        MaxTime => "max_time",
        /// The limit of tokens was reached.
        MaxTokens => "max_tokens",
        /// The limit of cost was reached.
        MaxCost => "max_cost",
        /// A model that reasons in text did not keep to its format, and what it wrote is the answer.
        Unformatted => "unformatted",
        /// A tool's result is the answer.
        ReturnDirect => "return_direct",
        /// The answer is quoted from the documents, without a model.
        Extractive => "extractive",
        /// Nothing in the documents answers.
        Declined => "declined",
        /// It failed: there is no answer.
        Error => "error",
    }
}

text_enum! {
    /// What a step of a run does.
    StepKind {
        /// Searches the linked documents.
        Retrieval => "retrieval",
        /// Asks the model.
        Chat => "chat",
        /// Calls a tool.
        Tool => "tool",
    }
}
