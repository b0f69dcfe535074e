//! The settings of a request that some models do not take, and which do not.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use lru::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;
use url::Url;

use super::ModelProvider;

/// Models of which it is remembered what they do not take.
const MODELS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(1_023);
/// For how long. That a model takes more than it did is noticed after that.
const KEPT: Duration = Duration::from_hours(1);

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
    /// Whether the model does not take `setting`.
    pub(super) const fn contains(self, setting: RequestSetting) -> bool {
        self.0 & (1 << setting as u8) != 0
    }

    /// These and `setting`.
    pub(super) const fn with(self, setting: RequestSetting) -> Self {
        Self(self.0 | (1 << setting as u8))
    }
}

/// Whom a request is for, as far as it matters to what is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AskedModel {
    /// The provider.
    pub(super) provider: ModelProvider,
    /// Where it is asked.
    pub(super) url: Url,
    /// The model.
    pub(super) model: String,
    /// The bits of the temperature. What is refused of one may be no other's: so no agent's settings change those of another.
    pub(super) temperature: Option<u64>,
}

/// What models turned out not to take, for all runs of a process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RefusalMemory {
    known: Arc<Mutex<LruCache<AskedModel, (RefusedSettings, Instant)>>>,
    kept: Duration,
}

impl Default for RefusalMemory {
    fn default() -> Self {
        Self::keeping(KEPT)
    }
}

impl RefusalMemory {
    /// One that remembers for so long.
    fn keeping(kept: Duration) -> Self {
        Self { known: Arc::new(Mutex::new(LruCache::new(MODELS))), kept }
    }

    /// What is known of a model.
    pub(super) fn of(&self, asked: &AskedModel) -> RefusedSettings {
        match self.known.lock().get(asked) {
            Some((refused, since)) if since.elapsed() < self.kept => *refused,
            Some(_) | None => RefusedSettings::default(),
        }
    }

    /// Notes that a model has answered without these settings, and not with them.
    pub(super) fn note(&self, asked: AskedModel, refused: RefusedSettings) {
        self.known.lock().put(asked, (refused, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(model: &str) -> AskedModel {
        AskedModel {
            provider: ModelProvider::OpenAi,
            url: Url::parse("https://llm.example.com/v1").unwrap(),
            model: model.to_owned(),
            temperature: None,
        }
    }

    #[test]
    fn refused_settings_are_kept_apart() {
        let refused = RefusedSettings::default().with(RequestSetting::Stop);
        assert!(refused.contains(RequestSetting::Stop) && !refused.contains(RequestSetting::Temperature));
    }

    #[test]
    fn what_a_model_refuses_is_remembered_for_a_while_and_of_so_many_models() {
        let nothing = RefusedSettings::default();
        let (memory, refused) = (RefusalMemory::default(), nothing.with(RequestSetting::Stop));
        memory.note(asked("first"), refused);
        assert_eq!((memory.of(&asked("first")), memory.of(&asked("other"))), (refused, nothing));
        let warmer = AskedModel { temperature: Some(1), ..asked("first") };
        assert_eq!(memory.of(&warmer), nothing, "it may be refused nothing");
        for number in 1..MODELS.get() {
            memory.note(asked(&number.to_string()), refused);
        }
        assert_eq!(memory.of(&asked("first")), refused);
        memory.note(asked("one more"), refused);
        assert_eq!(memory.of(&asked("1")), nothing, "it was used the longest ago");
        let forgetful = RefusalMemory::keeping(Duration::ZERO);
        forgetful.note(asked("first"), refused);
        assert_eq!(forgetful.of(&asked("first")), nothing);
    }
}
