//! The provider labels that an agent's `llm.provider` may carry.
//!
//! A label names a wire protocol and a default address, nothing more: the model name goes to the provider
//! exactly as the user wrote it.

use std::fmt;
use std::str::FromStr;

use lectern_shared::config::PredictSettings;
use url::Url;

/// A model provider, by the label that users write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum ModelProvider {
    /// OpenAI's chat completions.
    OpenAiChat,
    /// OpenAI, the older label; speaks chat completions too.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// Mistral's chat completions.
    Mistral,
    /// Groq's chat completions.
    Groq,
    /// Cohere's chat.
    Cohere,
    /// OpenAI models deployed on Azure.
    AzureOpenAi,
    /// A model runner on a host of the operator's choice.
    Ollama,
    /// Any server that speaks OpenAI's chat completions; needs a base URL.
    OpenAiCompatible,
    /// No model: the answer is made of the best passages.
    Extractive,
}

impl ModelProvider {
    /// Every label, in the order in which they are listed to users.
    pub const ALL: [Self; 11] = [
        Self::OpenAiChat,
        Self::OpenAi,
        Self::Anthropic,
        Self::Gemini,
        Self::Mistral,
        Self::Groq,
        Self::Cohere,
        Self::AzureOpenAi,
        Self::Ollama,
        Self::OpenAiCompatible,
        Self::Extractive,
    ];

    /// The label as users write it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mistral => "mistral",
            Self::Groq => "groq",
            Self::Cohere => "cohere",
            Self::AzureOpenAi => "azure-openai",
            Self::Ollama => "ollama",
            Self::OpenAiCompatible => "openai-compatible",
            Self::Extractive => "extractive",
        }
    }

    /// The host of this provider that the operator has named, for agents that name none.
    pub fn operator_host(self, settings: &PredictSettings) -> Option<&Url> {
        match self {
            Self::Ollama => settings.ollama.as_ref(),
            Self::AzureOpenAi => settings.azure.as_ref(),
            Self::OpenAiChat
            | Self::OpenAi
            | Self::Anthropic
            | Self::Gemini
            | Self::Mistral
            | Self::Groq
            | Self::Cohere
            | Self::OpenAiCompatible
            | Self::Extractive => None,
        }
    }

    /// The highest sampling temperature that it takes.
    pub const fn max_temperature(self) -> f64 {
        match self {
            Self::Anthropic => 1.0,
            Self::OpenAiChat
            | Self::OpenAi
            | Self::Gemini
            | Self::Mistral
            | Self::Groq
            | Self::Cohere
            | Self::AzureOpenAi
            | Self::Ollama
            | Self::OpenAiCompatible
            | Self::Extractive => 2.0,
        }
    }

    /// The provider's public address; none where every user or operator has one of their own.
    pub const fn default_base(self) -> Option<&'static str> {
        match self {
            Self::OpenAiChat | Self::OpenAi => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Self::Mistral => Some("https://api.mistral.ai/v1"),
            Self::Groq => Some("https://api.groq.com/openai/v1"),
            Self::Cohere => Some("https://api.cohere.com/v2"),
            Self::AzureOpenAi | Self::Ollama | Self::OpenAiCompatible | Self::Extractive => None,
        }
    }
}

impl fmt::Display for ModelProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// The label names no provider; the message lists those that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The provider is unknown; known ones are {}.", ModelProvider::ALL.map(ModelProvider::label).join(", "))]
pub struct UnknownProvider;

impl FromStr for ModelProvider {
    type Err = UnknownProvider;

    fn from_str(label: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|provider| provider.label() == label).ok_or(UnknownProvider)
    }
}
