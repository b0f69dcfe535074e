//! Vectors of texts, by the model that documents are searched with.

mod line;

use std::{sync::Arc, time::Duration};

use lectern_embed::{EmbedError, Embedder, EmbeddingModels, ModelState};
use lectern_shared::{
    compute::ComputePool,
    ids::WorkspaceId,
    metrics::{EmbeddingPurpose, Metrics},
};
use tokio::time::Instant;

use self::line::{EmbeddingLine, LineLimits};
use super::{
    actor::{Actor, Permission},
    workspaces::UsageService,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    turns::PermitError,
};

/// When a model that is not there yet may be asked for again.
const AGAIN: Duration = Duration::from_secs(5);

/// Makes vectors of texts. Cheap to clone.
#[derive(Clone)]
pub(crate) struct EmbeddingService {
    models: EmbeddingModels,
    metrics: Arc<Metrics>,
    compute: ComputePool,
    usage: UsageService,
    line: EmbeddingLine,
}

/// The model, for somebody who may use it.
pub(crate) struct TextEmbedder {
    embedder: Arc<dyn Embedder>,
    service: EmbeddingService,
    workspace: WorkspaceId,
    actor: Actor,
}

/// The vectors of texts, and how many tokens of them were read.
#[derive(Debug)]
pub(crate) struct EmbeddedTexts {
    /// In the order of the texts.
    pub(crate) vectors: Vec<Vec<f32>>,
    pub(crate) tokens: usize,
}

impl EmbeddingService {
    pub(crate) fn new(
        models: EmbeddingModels,
        metrics: Arc<Metrics>,
        compute: ComputePool,
        usage: UsageService,
    ) -> Self {
        Self { models, metrics, compute, usage, line: EmbeddingLine::new(LineLimits::USUAL) }
    }

    /// The model that is set; none when the service has none.
    ///
    /// # Errors
    /// 503 while it is not there; 403 when the workspace has used what it may this month.
    pub(crate) async fn open(&self, actor: &Actor) -> Result<Option<TextEmbedder>, ApiError> {
        let workspace = actor.may(Permission::EditDocuments)?.workspace_id;
        self.usage.admit(actor).await?;
        let embedder = self.models.wait_until_opened().await;
        match (embedder, self.models.state()) {
            (Some(embedder), _) => {
                let (service, actor) = (self.clone(), actor.clone());
                Ok(Some(TextEmbedder { embedder, service, workspace, actor }))
            }
            (None, ModelState::Off) => Ok(None),
            (
                None,
                ModelState::Opening
                | ModelState::Downloading(_)
                | ModelState::Missing(_)
                | ModelState::Ready(..),
            ) => Err(unavailable("The embedding model is not there yet; try again shortly.", Some(AGAIN))),
        }
    }
}

impl TextEmbedder {
    /// What it is called.
    pub(crate) fn model(&self) -> &str {
        &self.embedder.space().model
    }

    /// Whether it is called so: as it is set, or without the revision.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let own = self.model();
        name == own || own.split_once('@').is_some_and(|(without, _)| name == without)
    }

    /// Numbers in its vectors.
    pub(crate) fn dimensions(&self) -> usize {
        self.embedder.space().dimensions
    }

    /// A vector for each text, as passages of documents have them.
    ///
    /// # Errors
    /// 503 when too many texts wait already; 403 when the workspace has used what it may by the time of its turn.
    pub(crate) async fn embed(&self, texts: Vec<String>) -> Result<EmbeddedTexts, ApiError> {
        let EmbeddingService { metrics, usage, line, .. } = &self.service;
        let bytes: usize = texts.iter().map(String::len).sum();
        let _turn = line.turn(self.workspace, self.actor.user, bytes).await.map_err(of_turn)?;
        // Those that had their turns meanwhile may have used up what was left.
        usage.admit(&self.actor).await?;
        let (began, count) = (Instant::now(), texts.len());
        let (texts, tokens) = self.count_tokens(texts).await?;
        // Whoever hangs up before the end has used them.
        usage.count(self.workspace, tokens).await?;
        let made = self.embedder.embed_passages(texts).await;
        metrics.embedded(EmbeddingPurpose::Question, count, made.is_ok(), began.elapsed());
        let vectors = made.map_err(of_model)?;
        if vectors.len() != count {
            tracing::error!(
                count,
                given = vectors.len(),
                "the embedding model gave another number of vectors"
            );
            return Err(ApiError::internal());
        }
        Ok(EmbeddedTexts { vectors, tokens })
    }

    /// How many tokens of the texts are read.
    async fn count_tokens(&self, texts: Vec<String>) -> Result<(Vec<String>, usize), ApiError> {
        let embedder = Arc::clone(&self.embedder);
        let counted = self.service.compute.run(move || {
            let most = embedder.max_tokens();
            let tokens: usize = texts.iter().map(|text| embedder.count_tokens(text).min(most)).sum();
            (texts, tokens)
        });
        Ok(counted.await?)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over results")]
fn of_model(error: EmbedError) -> ApiError {
    match error {
        EmbedError::Away(_) => {
            tracing::warn!(%error, "the embedding model is away");
            unavailable("The embedding model is away; try again shortly.", Some(Duration::from_secs(1)))
        }
        EmbedError::Refused(_) => {
            tracing::error!(%error, "the embedding model cannot be used");
            unavailable("The embedding model cannot be used as the service is set up.", None)
        }
        EmbedError::Stopped(stopped) => stopped.into(),
    }
}

fn of_turn(error: PermitError) -> ApiError {
    let message = match error {
        PermitError::QueueFull => "Too many requests for embeddings wait already; try again shortly.",
        PermitError::Late => "Too many embeddings are being made at this moment; try again shortly.",
    };
    let error = ApiError::new(ApiErrorKind::Unavailable, "too_many_embeddings", message);
    ApiError { retry_after: Some(AGAIN.as_secs()), ..error }
}

fn unavailable(message: &str, again: Option<Duration>) -> ApiError {
    let error = ApiError::new(ApiErrorKind::Unavailable, "embedding_model_unavailable", message);
    ApiError { retry_after: again.map(|after| after.as_secs()), ..error }
}

#[cfg(test)]
mod tests {
    use lectern_agents::run::RunRecorder;
    use lectern_db::{
        Db,
        testing::{at, both, workspace},
        usage,
    };
    use lectern_embed::testing::Synonyms;
    use lectern_shared::{
        clock::Clock,
        ids::UserId,
        model::workspace::{Role, WorkspaceQuotas},
    };

    use super::*;

    fn actor(workspace: WorkspaceId, role: Role) -> Actor {
        Actor::new(UserId::generate(), workspace, role, WorkspaceQuotas::default(), None)
    }

    fn service(db: &Db, models: EmbeddingModels) -> EmbeddingService {
        let usage = UsageService::new(db.clone(), Clock::manual(at(0)), RunRecorder::default());
        EmbeddingService::new(models, Arc::new(Metrics::default()), ComputePool::new(1), usage)
    }

    fn words() -> EmbeddingModels {
        EmbeddingModels::of(Arc::new(Synonyms::new("words@1")))
    }

    #[tokio::test]
    async fn texts_become_the_vectors_that_passages_have() {
        for t in &both().await {
            let workspace = workspace(&t.db, at(0)).await;
            let opened = service(&t.db, words()).open(&actor(workspace, Role::Editor)).await;
            let embedder = opened.unwrap().unwrap();
            let named = ["words@1", "words", "word"].map(|name| embedder.is_called(name));
            assert_eq!(named, [true, true, false]);
            let embedded = embedder.embed(vec!["dog".to_owned(), "rain".to_owned()]).await.unwrap();
            assert_eq!(embedded.vectors, [Synonyms::vector("dog"), Synonyms::vector("rain")]);
            assert_eq!((embedded.tokens, embedder.dimensions()), (2, embedded.vectors[0].len()));
        }
    }

    #[tokio::test]
    async fn what_is_read_counts_in_the_month_and_a_workspace_that_has_used_it_up_gets_no_more() {
        for t in &both().await {
            let workspace = workspace(&t.db, at(0)).await;
            let service = service(&t.db, words());
            let quotas = WorkspaceQuotas { tokens_per_month: Some(3), ..WorkspaceQuotas::default() };
            let actor = Actor::new(UserId::generate(), workspace, Role::Editor, quotas, None);
            let waiting = service.open(&actor).await.unwrap().unwrap();
            for used in [2, 4] {
                let embedder = service.open(&actor).await.unwrap().unwrap();
                embedder.embed(vec!["dog".to_owned(), "rain".to_owned()]).await.unwrap();
                let counted = usage::of_month(&t.db, workspace, at(0).month_start()).await.unwrap();
                assert_eq!(counted.tokens, used, "{}", t.name);
            }
            assert_eq!(service.open(&actor).await.err().unwrap().code, "quota_exceeded", "{}", t.name);
            let refused = waiting.embed(vec!["dog".to_owned()]).await.err().unwrap();
            assert_eq!(refused.code, "quota_exceeded", "it waited for its turn: {}", t.name);
        }
    }

    #[tokio::test]
    async fn a_workspace_has_one_turn_at_a_time_and_others_have_theirs() {
        for t in &both().await {
            let [ada, grace] = [workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await];
            let line = EmbeddingLine::new(LineLimits { waiting: 0, ..LineLimits::USUAL });
            let service = EmbeddingService { line, ..service(&t.db, words()) };
            let [ada, grace] = [ada, grace].map(|workspace| actor(workspace, Role::Editor));
            let workspace = ada.named_workspace();
            let _turn = service.line.turn(workspace, ada.user, 1).await.ok().unwrap();
            for (actor, refused) in [(ada, Some(("too_many_embeddings", Some(5)))), (grace, None)] {
                let embedder = service.open(&actor).await.unwrap().unwrap();
                let embedded = embedder.embed(vec!["dog".to_owned()]).await;
                let told = embedded.err().map(|error| (error.code, error.retry_after));
                assert_eq!(told, refused, "{}", t.name);
            }
        }
    }

    #[tokio::test]
    async fn whoever_may_not_search_gets_no_vectors() {
        for t in &both().await {
            let workspace = workspace(&t.db, at(0)).await;
            let service = service(&t.db, EmbeddingModels::none());
            let refused = service.open(&actor(workspace, Role::Asker)).await.err().unwrap();
            assert_eq!(refused.code, "role_required");
            let opened = service.open(&actor(workspace, Role::Editor)).await;
            assert!(opened.unwrap().is_none(), "there is no model");
        }
    }

    #[tokio::test]
    async fn a_model_that_is_away_is_told_as_that() {
        for t in &both().await {
            let model = Synonyms::new("words");
            *model.fails.lock() = Some(|| EmbedError::Away("the server is away".to_owned()));
            let service = service(&t.db, EmbeddingModels::of(Arc::new(model)));
            let actor = actor(workspace(&t.db, at(0)).await, Role::Editor);
            let embedder = service.open(&actor).await.unwrap().unwrap();
            let error = embedder.embed(vec!["dog".to_owned()]).await.unwrap_err();
            assert_eq!((error.code, error.retry_after), ("embedding_model_unavailable", Some(1)));
        }
    }
}
