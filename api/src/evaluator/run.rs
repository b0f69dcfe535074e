//! One run of an evaluation.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, stream};
use lectern_agents::{
    evaluation::{self, GoldFinder, GoldPlace},
    search::{MetadataFilter, RerankPatience, SearchError, SearchRequest},
};
use lectern_db::{
    self as db,
    evaluations::{
        self, cases,
        runs::{self, NewCaseResult},
    },
};
use lectern_shared::{
    ids::{DocumentId, EvaluationCaseId},
    model::{
        evaluation::{
            CaseRanking, CaseResult, Evaluation, EvaluationCase, EvaluationMetrics, EvaluationRun,
            StoredCaseResult,
        },
        search::SearchMode,
        workspace::WorkspaceQuotas,
    },
};
use tokio::time::{Duration, Instant};
use uuid::Uuid;

use super::{
    EvaluationRuns,
    answer::{CaseAsker, asked_agent},
    failure::{RunFailure, of_gold},
};

/// Cases that are read, and results that are written, at a time.
const BATCH: u32 = 50;
/// How long results wait at most before they are written: answers take their time.
const WRITTEN_EVERY: Duration = Duration::from_secs(2);
/// Results that are read at a time when all are there.
const READ: u32 = 1_000;

/// Goes through the cases of a run.
pub(super) struct CaseRunner<'a> {
    runs: &'a EvaluationRuns,
    run: &'a EvaluationRun,
    quotas: WorkspaceQuotas,
}

impl<'a> CaseRunner<'a> {
    pub(super) fn new(runs: &'a EvaluationRuns, run: &'a EvaluationRun, quotas: WorkspaceQuotas) -> Self {
        Self { runs, run, quotas }
    }

    /// Goes through them, behind the last one of which a result is there, and tells what all results say.
    pub(super) async fn go(&self) -> Result<EvaluationMetrics, RunFailure> {
        let (db, run) = (&self.runs.runtime.db, self.run);
        let evaluation = evaluations::find(db, run.workspace_id, run.evaluation_id).await?;
        let evaluation = evaluation.ok_or(RunFailure::Lost)?;
        let documents = self.documents(&evaluation).await?;
        let asker = CaseAsker::new(self.runs, run, &evaluation, self.quotas).await?;
        let compute = self.runs.runtime.compute.clone();
        let mut finder = GoldFinder::new(db.clone(), run.workspace_id, compute);
        let mut after = runs::last_case(db, run.workspace_id, run.id).await?.unwrap_or(Uuid::nil().into());
        loop {
            let batch =
                cases::following(db, run.workspace_id, run.evaluation_id, run.created_at, after, BATCH)
                    .await?;
            let Some(last) = batch.last().map(|case| case.id) else { break };
            let mut looked = Vec::with_capacity(batch.len());
            for case in batch {
                let places = finder.find(case.expect.0.gold()).await.map_err(of_gold)?;
                looked.push((case, places));
            }
            self.work_on(looked, documents.as_ref(), asker.as_ref()).await?;
            after = last;
        }
        self.summarise().await
    }

    /// Works on some cases, a few at a time, and notes what came of them in their order.
    async fn work_on(
        &self,
        batch: Vec<(EvaluationCase, Vec<GoldPlace>)>,
        documents: Option<&Arc<[DocumentId]>>,
        asker: Option<&CaseAsker<'_>>,
    ) -> Result<(), RunFailure> {
        let parallel = self.runs.runtime.settings.evaluation.parallel as usize;
        let results = batch.into_iter().map(|(case, places)| self.result(case, places, documents, asker));
        let mut results = Box::pin(stream::iter(results).buffered(parallel));
        let (mut done, mut written) = (Vec::new(), Instant::now());
        while let Some(result) = results.next().await {
            done.push(result?);
            if written.elapsed() >= WRITTEN_EVERY {
                self.write(&std::mem::take(&mut done)).await?;
                written = Instant::now();
            }
        }
        self.write(&done).await
    }

    async fn write(&self, results: &[NewCaseResult]) -> Result<(), RunFailure> {
        let (runtime, run) = (&self.runs.runtime, self.run);
        let claim = run.claim_id.ok_or(RunFailure::Lost)?;
        let mut tx = runtime.db.begin_relaxed().await?;
        let until = lectern_runtime::leased::lease_end(&runtime.jobs);
        if !runs::hold(&mut tx, run.id, claim, until).await? {
            return Err(RunFailure::Lost);
        }
        runs::add_results(&mut tx, run, results).await?;
        Ok(tx.commit().await?)
    }

    /// In which documents is searched; none for all.
    async fn documents(&self, evaluation: &Evaluation) -> Result<Option<Arc<[DocumentId]>>, RunFailure> {
        let (db, workspace) = (&self.runs.runtime.db, evaluation.owner.workspace_id);
        let collections = &evaluation.collection_ids.0;
        if !collections.is_empty() {
            if !db::collections::has_all(db, workspace, collections).await? {
                let why = "A collection of the evaluation is not there any more. Change the evaluation.";
                return Err(RunFailure::Stopped(why.to_owned()));
            }
            return Ok(Some(db::collections::documents_of(db, workspace, collections).await?.into()));
        }
        let Some(agent) = asked_agent(self.run, evaluation) else { return Ok(None) };
        Ok(Some(db::agents::links(db, workspace, agent).await?.documents))
    }

    async fn result(
        &self,
        case: EvaluationCase,
        places: Vec<GoldPlace>,
        documents: Option<&Arc<[DocumentId]>>,
        asker: Option<&CaseAsker<'_>>,
    ) -> Result<NewCaseResult, RunFailure> {
        let mut retrieval = BTreeMap::new();
        for mode in &self.run.config.0.modes {
            let ranking = self.ranking(&case, &places, documents, *mode).await?;
            retrieval.insert(mode.as_str().to_owned(), ranking);
        }
        let answer = match asker {
            Some(asker) => Some(asker.ask(&case).await?),
            None => None,
        };
        let expect = case.expect.0;
        let result = CaseResult { gold: evaluation::states(places), expect, retrieval, answer };
        Ok(NewCaseResult { case: case.id, question: case.question, result })
    }

    async fn ranking(
        &self,
        case: &EvaluationCase,
        places: &[GoldPlace],
        documents: Option<&Arc<[DocumentId]>>,
        mode: SearchMode,
    ) -> Result<CaseRanking, RunFailure> {
        let request = SearchRequest {
            workspace: self.run.workspace_id,
            query: case.question.clone(),
            documents: documents.cloned(),
            filter: MetadataFilter::default(),
            mode,
            limit: evaluation::DEPTH,
            rerank: self.run.config.0.rerank.then_some(RerankPatience::Whole),
            epoch: None,
        };
        let expect = &case.expect.0;
        match evaluation::rank(&self.runs.agents.search, request, mode, expect, places).await {
            Ok(ranking) => Ok(ranking),
            Err(SearchError::Db(error)) => Err(error.into()),
            Err(SearchError::Index(error)) => Err(RunFailure::Outage(error.to_string())),
            Err(SearchError::Stopped(stopped)) => Err(stopped.into()),
            Err(error @ (SearchError::NoModel | SearchError::Embed(_))) => Ok(CaseRanking {
                ranks: vec![None; expect.gold().len()],
                error: Some(error.to_string()),
                ..CaseRanking::default()
            }),
        }
    }

    async fn summarise(&self) -> Result<EvaluationMetrics, RunFailure> {
        let (db, run) = (&self.runs.runtime.db, self.run);
        let mut results: Vec<CaseResult> = Vec::new();
        let mut before: EvaluationCaseId = Uuid::max().into();
        loop {
            let page = runs::results(db, run.workspace_id, run.id, before, READ).await?;
            let Some(last) = page.last() else { break };
            before = last.case_id;
            // What was retrieved is told case by case.
            results.extend(page.into_iter().map(|StoredCaseResult { result, .. }| {
                let mut result = result.0;
                for ranking in result.retrieval.values_mut() {
                    ranking.retrieved = Vec::new();
                }
                result.expect.forget_words();
                result
            }));
        }
        let compute = self.runs.runtime.compute.clone();
        Ok(compute.run(move || evaluation::summarise(&results)).await?)
    }
}
