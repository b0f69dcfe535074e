//! The settings of a request that some models do not take.

/// A part of a request without which most models answer too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestSetting {
    /// Newer reasoning models have no temperature.
    Temperature,
    /// The same for stop texts.
    Stop,
    /// The name of the limit of length: `max_tokens` or `max_completion_tokens`.
    LimitName,
    /// Asking for usage at the end of the stream.
    StreamOptions,
}

/// The settings that a model turned out not to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RefusedSettings(u8);

impl RefusedSettings {
    /// From [`RefusedSettings::bits`].
    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// For storing.
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    /// Whether the model does not take `setting`.
    pub(super) const fn contains(self, setting: RequestSetting) -> bool {
        self.0 & (1 << setting as u8) != 0
    }

    /// These and `setting`.
    pub(super) const fn with(self, setting: RequestSetting) -> Self {
        Self(self.0 | (1 << setting as u8))
    }
}
