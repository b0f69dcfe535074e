//! Evaluations: sets of questions with what is to come of them, and their runs. What a run does is [`crate::evaluator`]'s.

mod cases;
mod comparison;
mod import;
mod readers;

use std::collections::{HashMap, HashSet};

use lectern_agents::run;
use lectern_db::{
    self as db, Db, Tx,
    evaluations::{self, runs},
};
use lectern_derive::RequestBody;
use lectern_embed::{EmbeddingModels, RerankModel};
use lectern_runtime::Runtime;
use lectern_shared::{
    clock::Clock,
    compute::ComputePool,
    ids::{AgentId, CollectionId, EvaluationId, EvaluationRunId, WorkspaceId},
    model::{
        Json,
        audit::AuditAction,
        evaluation::{Evaluation, EvaluationConfig, EvaluationRun, StoredCaseResult},
        search::SearchMode,
    },
};
use utoipa::ToSchema;
use uuid::Uuid;

use self::readers::modes;
pub(crate) use self::{
    cases::{CaseChange, NewCase, NewCases, TraceCase},
    comparison::RunComparison,
    import::{CaseFile, ImportFormat, ImportOutcome, QuoteProblem, QuoteReport},
};
use super::{
    actor::{Actor, Permission},
    agents::versions::AgentHistory,
    audit::AuditService,
    creation::{CreationOutcome, IdempotencyStore, IdempotentRequest, ResponseEncoder},
    edits::EditBase,
    traces::TraceService,
};
use crate::{
    error::{ApiError, ApiErrorKind},
    fields::{GivenId, GivenIds},
};

/// Sets of one workspace.
const MOST: u64 = 100;
/// Cases of one set.
pub(crate) const MOST_CASES: i64 = 10_000;
/// Runs of one workspace that wait or are under way.
const MOST_RUNS: u64 = 20;

/// A new set of cases.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewEvaluation {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S")]
    name: String,
    /// One of your agents: it is asked, and its documents are searched.
    #[schema(value_type = Option<String>)]
    agent_id: Option<GivenId<AgentId>>,
    /// The documents of these of your collections are searched, instead of the agent's. All documents are, without an agent and without
    /// collections.
    #[schema(value_type = Option<Vec<String>>, max_items = 100)]
    #[body(default = Ok(Vec::new()))]
    collection_ids: GivenIds<CollectionId>,
    /// One of your agents that is shown each question, what is to come of it and the answer, and says whether that is right: its answer
    /// begins with yes or no.
    #[schema(value_type = Option<String>)]
    judge_agent_id: Option<GivenId<AgentId>>,
}

/// What is to be different about a set. What is left out stays as it is.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
#[body(change)]
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
pub(crate) struct EvaluationChange {
    /// What to call it.
    #[schema(min_length = 1, max_length = 1_000, pattern = r"\S", nullable = false)]
    name: Option<String>,
    /// The agent that is asked; null for none.
    #[schema(value_type = Option<String>)]
    agent_id: Option<Option<GivenId<AgentId>>>,
    /// The collections that are searched; none, when the list is empty.
    #[schema(value_type = Option<Vec<String>>, max_items = 100, nullable = false)]
    collection_ids: Option<GivenIds<CollectionId>>,
    /// The agent that says whether answers are right; null for none.
    #[schema(value_type = Option<String>)]
    judge_agent_id: Option<Option<GivenId<AgentId>>>,
}

/// How a set is to be run.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewEvaluationRun {
    /// How to search: `hybrid`, `dense` or `lexical`. In each way that there is when left out, and thresholds are then about the first of
    /// them.
    #[schema(value_type = Option<String>)]
    #[body(with = modes)]
    mode: Option<SearchMode>,
    /// Whether the set's agent is asked every question, which costs what its model costs. True when left out and the set has an agent.
    answers: Option<bool>,
    /// Which version of the agent is asked; when left out, the one that it is when the run is asked for.
    #[schema(value_type = Option<u32>, minimum = 1)]
    agent_version: Option<u32>,
    /// Whether what is found is put into a better order by the service's reranker, whatever time that takes. False when left out. The
    /// agent does as it is set.
    #[schema(value_type = Option<bool>)]
    #[body(default)]
    rerank: bool,
}

/// Evaluations. Cheap to clone.
#[derive(Clone)]
pub(crate) struct EvaluationService {
    db: Db,
    clock: Clock,
    models: EmbeddingModels,
    reranker: RerankModel,
    compute: ComputePool,
    creations: IdempotencyStore,
    audit: AuditService,
    traces: TraceService,
    history: AgentHistory,
}

fn unknown() -> ApiError {
    ApiError::not_found("evaluation")
}

fn unknown_run() -> ApiError {
    ApiError::not_found("run")
}

/// The agent that was named, which is the workspace's.
async fn agent(
    tx: &mut Tx,
    workspace: WorkspaceId,
    named: Option<GivenId<AgentId>>,
) -> Result<Option<AgentId>, ApiError> {
    let missing = || ApiError::not_found("agent");
    let Some(id) = named.transpose().map_err(|_| missing())? else { return Ok(None) };
    Ok(Some(db::agents::lock(tx, workspace, id).await?.ok_or_else(missing)?.id))
}

impl EvaluationService {
    pub(crate) fn new(
        runtime: &Runtime,
        creations: IdempotencyStore,
        audit: AuditService,
        traces: TraceService,
        history: AgentHistory,
    ) -> Self {
        let Runtime { db, clock, models, reranker, compute, .. } = runtime.clone();
        Self { db, clock, models, reranker, compute, creations, audit, traces, history }
    }

    /// Whether what is found can be put into a better order.
    pub(crate) fn has_reranker(&self) -> bool {
        self.reranker.current().is_some()
    }

    /// Makes a set.
    ///
    /// # Errors
    /// When what it names is not the workspace's, or the workspace has as many as it may.
    pub(crate) async fn create(
        &self,
        actor: &Actor,
        new: NewEvaluation,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<Evaluation>,
    ) -> Result<CreationOutcome, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        let workspace = owner.workspace_id;
        let mut tx = self.db.begin().await?;
        db::locks::lock_workspace(&mut tx, workspace).await?;
        if evaluations::count(&mut tx, workspace).await? >= MOST {
            let message = format!("A workspace may have at most {MOST} evaluations.");
            return Err(ApiError::new(ApiErrorKind::Conflict, "too_many_evaluations", message));
        }
        let now = self.clock.now();
        let evaluation = Evaluation {
            id: EvaluationId::generate(),
            owner,
            name: new.name,
            agent_id: agent(&mut tx, workspace, new.agent_id).await?,
            collection_ids: Json(self.collections(&mut tx, workspace, new.collection_ids).await?),
            judge_id: agent(&mut tx, workspace, new.judge_agent_id).await?,
            created_at: now,
            updated_at: now,
            cases: 0,
        };
        evaluations::insert(&mut tx, &evaluation).await?;
        self.creations.commit(tx, once, &evaluation, tell).await
    }

    /// The collections that were named, which are the workspace's.
    async fn collections(
        &self,
        tx: &mut Tx,
        workspace: WorkspaceId,
        named: GivenIds<CollectionId>,
    ) -> Result<Vec<CollectionId>, ApiError> {
        let missing = || ApiError::not_found("collection");
        let ids = named.map_err(|_| missing())?;
        let found = db::collections::lock_all(tx, workspace, &ids).await?.ok_or_else(missing)?;
        Ok(found.into_iter().map(|collection| collection.id).collect())
    }

    /// The sets before an id, newest first.
    pub(crate) async fn list(
        &self,
        actor: &Actor,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<Evaluation>, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        Ok(evaluations::list(&self.db, owner.workspace_id, before.into(), limit).await?)
    }

    /// One set.
    pub(crate) async fn find(&self, actor: &Actor, id: EvaluationId) -> Result<Evaluation, ApiError> {
        let owner = actor.may(Permission::BuildAgents)?;
        evaluations::find(&self.db, owner.workspace_id, id).await?.ok_or_else(unknown)
    }

    /// Changes a set, which is as it is returned afterwards.
    ///
    /// # Errors
    /// When what it names is not the workspace's, and when it is not what the change begins from.
    pub(crate) async fn change(
        &self,
        actor: &Actor,
        id: EvaluationId,
        change: EvaluationChange,
        base: EditBase,
    ) -> Result<Evaluation, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let mut tx = self.db.begin().await?;
        db::locks::lock_workspace(&mut tx, workspace).await?;
        let mut evaluation = evaluations::lock(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        base.check(evaluation.updated_at)?;
        evaluation.name = change.name.unwrap_or(evaluation.name);
        if let Some(named) = change.agent_id {
            evaluation.agent_id = agent(&mut tx, workspace, named).await?;
        }
        if let Some(named) = change.judge_agent_id {
            evaluation.judge_id = agent(&mut tx, workspace, named).await?;
        }
        if let Some(named) = change.collection_ids {
            evaluation.collection_ids = Json(self.collections(&mut tx, workspace, named).await?);
        }
        evaluation.updated_at = self.clock.now();
        evaluations::update(&mut tx, &evaluation).await?;
        tx.commit().await?;
        Ok(evaluation)
    }

    /// Deletes a set, with its cases and its runs.
    pub(crate) async fn delete(&self, actor: &Actor, id: EvaluationId) -> Result<(), ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let mut tx = self.db.begin_essential().await?;
        db::locks::lock_workspace(&mut tx, workspace).await?;
        if !evaluations::delete(&mut tx, workspace, id).await? {
            return Err(unknown());
        }
        self.audit.note(&mut tx, actor, AuditAction::Deleted, "evaluation", id).await?;
        Ok(tx.commit().await?)
    }

    /// Has a set run.
    ///
    /// # Errors
    /// When it has no cases, what is to be asked is not there or takes values that no case has, or too many runs wait already.
    pub(crate) async fn run(
        &self,
        actor: &Actor,
        id: EvaluationId,
        new: NewEvaluationRun,
        once: IdempotentRequest,
        tell: impl ResponseEncoder<EvaluationRun>,
    ) -> Result<CreationOutcome, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let mut tx = self.db.begin().await?;
        db::locks::lock_workspace(&mut tx, workspace).await?;
        let evaluation = evaluations::lock(&mut tx, workspace, id).await?.ok_or_else(unknown)?;
        let config = self.config(&evaluation, &new).await?;
        if evaluation.cases == 0 {
            let message = "The evaluation has no cases yet: add some first.";
            return Err(ApiError::new(ApiErrorKind::Conflict, "no_cases", message));
        }
        if runs::count_active(&mut tx, workspace).await? >= MOST_RUNS {
            let message = format!("{MOST_RUNS} runs wait already. Wait for one to end, or cancel one.");
            return Err(ApiError::new(ApiErrorKind::Conflict, "too_many_runs", message));
        }
        let now = self.clock.now();
        let run = runs::insert(&mut tx, workspace, id, actor.user, &config, evaluation.cases, now).await?;
        self.creations.commit(tx, once, &run, tell).await
    }

    async fn config(
        &self,
        evaluation: &Evaluation,
        new: &NewEvaluationRun,
    ) -> Result<EvaluationConfig, ApiError> {
        let has_model = self.models.wait_until_opened().await.is_some();
        let modes = match new.mode {
            Some(SearchMode::Dense) if !has_model => {
                let message = "cannot be `dense`: the service has no embedding model";
                return Err(ApiError::invalid_field("mode", message));
            }
            Some(mode) => vec![mode],
            None if has_model => SearchMode::ALL.to_vec(),
            None => vec![SearchMode::Lexical],
        };
        let rerank = new.rerank;
        if rerank && !self.has_reranker() {
            let message = "cannot be true: the service has no reranker (LECTERN_RERANKER), or not yet";
            return Err(ApiError::invalid_field("rerank", message));
        }
        let answers = new.answers.unwrap_or(evaluation.agent_id.is_some());
        let searching = EvaluationConfig {
            modes,
            answers,
            agent_id: None,
            agent_name: None,
            agent_version: None,
            rerank,
        };
        let agent_version = new.agent_version.map(i64::from);
        let Some(agent) = evaluation.agent_id else {
            let needing = if answers { "answers" } else { "agentVersion" };
            if answers || agent_version.is_some() {
                return Err(ApiError::invalid_field(
                    needing,
                    "needs an agent, which the evaluation does not have",
                ));
            }
            return Ok(searching);
        };
        if !answers && agent_version.is_none() {
            return Ok(searching);
        }
        let agent = db::agents::find(&self.db, evaluation.owner.workspace_id, agent).await?;
        let agent = agent.ok_or_else(|| ApiError::not_found("agent"))?;
        // By its number, so that all of the run is about one version, whatever becomes of the agent meanwhile.
        let number = agent_version.unwrap_or(agent.version);
        let (agent_id, agent_name) = (Some(agent.id), Some(agent.name.clone()));
        let asked = self.history.to_ask(agent.into(), number).await?;
        if answers {
            let needed = run::needed_values(&self.db, asked).await?;
            if !needed.is_empty() {
                let message = format!(
                    "cannot be true: the agent's prompt takes values that no case has ({})",
                    needed.join(", ")
                );
                return Err(ApiError::invalid_field("answers", &message));
            }
        }
        Ok(EvaluationConfig { agent_id, agent_name, agent_version: Some(number), ..searching })
    }

    /// What the agents are called now that runs have asked, as far as they are there still.
    pub(crate) async fn agent_names(
        &self,
        actor: &Actor,
        runs: &[EvaluationRun],
    ) -> Result<HashMap<AgentId, String>, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        let asked = runs.iter().filter_map(|run| run.config.0.agent_id);
        let ids: HashSet<Uuid> = asked.map(|id| *id.as_uuid()).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let named = db::audit::names(&self.db, workspace, "agent", &ids).await?;
        Ok(named.into_iter().map(|(id, name)| (id.into(), name)).collect())
    }

    /// The runs of a set before an id, newest first.
    pub(crate) async fn runs(
        &self,
        actor: &Actor,
        id: EvaluationId,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<EvaluationRun>, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        evaluations::find(&self.db, workspace, id).await?.ok_or_else(unknown)?;
        Ok(runs::list(&self.db, workspace, id, before.into(), limit).await?)
    }

    /// One run of a set.
    pub(crate) async fn find_run(
        &self,
        actor: &Actor,
        id: EvaluationId,
        run: EvaluationRunId,
    ) -> Result<EvaluationRun, ApiError> {
        let workspace = actor.may(Permission::BuildAgents)?.workspace_id;
        runs::find(&self.db, workspace, id, run).await?.ok_or_else(unknown_run)
    }

    /// What came of the cases of a run before one, the newest case first.
    pub(crate) async fn results(
        &self,
        actor: &Actor,
        id: EvaluationId,
        run: EvaluationRunId,
        before: Uuid,
        limit: u32,
    ) -> Result<Vec<StoredCaseResult>, ApiError> {
        let run = self.find_run(actor, id, run).await?;
        Ok(runs::results(&self.db, run.workspace_id, run.id, before.into(), limit).await?)
    }

    /// Stops a run, and tells whether it did: it does nothing when the run has ended.
    pub(crate) async fn cancel(
        &self,
        actor: &Actor,
        id: EvaluationId,
        run: EvaluationRunId,
    ) -> Result<(EvaluationRun, bool), ApiError> {
        let found = self.find_run(actor, id, run).await?;
        let mut tx = self.db.begin_essential().await?;
        db::locks::lock_workspace(&mut tx, found.workspace_id).await?;
        let cancelled = runs::cancel(&mut tx, found.workspace_id, run, self.clock.now()).await?;
        tx.commit().await?;
        match cancelled {
            Some(cancelled) => Ok((cancelled, true)),
            None => Ok((self.find_run(actor, id, run).await?, false)),
        }
    }
}
