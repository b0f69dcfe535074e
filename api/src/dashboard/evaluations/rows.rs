//! Runs in a line each: where one stands, which agent it asks, and what came of it.

use std::collections::HashMap;

use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, EvaluationRunId},
    model::evaluation::{EvaluationConfig, EvaluationMetrics, EvaluationRun, EvaluationRunState},
};

use super::MODES;
use crate::{
    dashboard::{
        choices::told_apart,
        text::{counted, moment},
    },
    response::ApiResult,
    services::{actor::Actor, evaluations::EvaluationService},
};

/// Characters of an agent's name in such a line.
const NAME: usize = 80;

/// What agents are called that runs have asked.
pub(super) struct AskedAgents(HashMap<AgentId, String>);

impl AskedAgents {
    /// Those of these runs: as they are called now, and as they were called by the runs when they are not there any more.
    pub(super) async fn of(
        evaluations: &EvaluationService,
        actor: &Actor,
        runs: &[EvaluationRun],
    ) -> ApiResult<Self> {
        Ok(Self::named(runs, &evaluations.agent_names(actor, runs).await?))
    }

    fn named(runs: &[EvaluationRun], now: &HashMap<AgentId, String>) -> Self {
        let shown = |name: &str| name.chars().take(NAME).collect::<String>();
        let mut all: HashMap<AgentId, String> = HashMap::new();
        for EvaluationConfig { agent_id, agent_name, .. } in runs.iter().map(|run| &run.config.0) {
            let Some(id) = agent_id else { continue };
            let then = || format!("{} (deleted)", shown(agent_name.as_deref().unwrap_or("an agent")));
            all.entry(*id).or_insert_with(|| now.get(id).map_or_else(then, |name| shown(name)));
        }
        Self(told_apart(all).into_iter().collect())
    }

    /// Whom a run asks, in words.
    fn words(&self, config: &EvaluationConfig) -> String {
        let agent = config.agent_id.and_then(|id| self.0.get(&id));
        match (config.answers, agent, config.agent_version) {
            (false, ..) => String::new(),
            (true, _, None) => ", with answers".to_owned(),
            (true, None, Some(version)) => format!(", with answers of version {version}"),
            (true, Some(agent), Some(version)) => format!(", with answers of {agent}, version {version}"),
        }
    }
}

/// A way of searching, as people choose it.
pub(super) fn way_words(mode: &str) -> &str {
    MODES.into_iter().find(|(known, _)| known.as_str() == mode).map_or(mode, |(_, words)| words)
}

/// A run, in words.
pub(super) struct RunRow {
    pub(super) id: EvaluationRunId,
    pub(super) word: &'static str,
    pub(super) tone: &'static str,
    pub(super) is_busy: bool,
    /// How far it is, or what came of it.
    pub(super) summary: String,
    pub(super) detail: Option<String>,
    pub(super) how: String,
    pub(super) created_at: Timestamp,
}

impl RunRow {
    pub(super) fn of(run: &EvaluationRun, agents: &AskedAgents) -> Self {
        let all_failed = run.metrics.as_ref().is_some_and(|metrics| has_all_failed(&metrics.0, run.done));
        let (word, tone) = match run.state {
            EvaluationRunState::Queued => ("Waits", "busy"),
            EvaluationRunState::Running => ("Under way", "busy"),
            EvaluationRunState::Succeeded if all_failed => ("Done, all failed", "bad"),
            EvaluationRunState::Succeeded => ("Done", "good"),
            EvaluationRunState::Failed => ("Failed", "bad"),
            EvaluationRunState::Cancelled => ("Stopped", ""),
        };
        let config = &run.config.0;
        let first = config.modes.first().map(|mode| mode.as_str()).unwrap_or_default();
        let summary = match &run.metrics {
            None => format!("{} of {}", run.done, counted(run.cases.unsigned_abs(), "case", "cases")),
            Some(metrics) => summary(&metrics.0, first, run.done),
        };
        let modes: Vec<&str> = config.modes.iter().map(|mode| way_words(mode.as_str())).collect();
        let reranked = if config.rerank { ", reranked" } else { "" };
        Self {
            id: run.id,
            word,
            tone,
            is_busy: matches!(run.state, EvaluationRunState::Queued | EvaluationRunState::Running),
            summary,
            detail: run.error.clone(),
            how: format!("{}{reranked}{}", modes.join(", "), agents.words(config)),
            created_at: run.created_at,
        }
    }
}

/// Runs as they are chosen among each other, no two of which look the same.
pub(super) fn choices_of(rows: &[RunRow]) -> Vec<(EvaluationRunId, String)> {
    told_apart(rows.iter().map(|row| {
        let RunRow { id, summary, how, created_at, .. } = row;
        (*id, format!("{}: {summary} ({how})", moment(*created_at)))
    }))
}

/// Two runs of one minute that were asked for alike have the ends of their ids behind how they ask.
pub(super) fn tell_apart(run: &mut RunRow, other: &mut RunRow) {
    if run.id == other.id || moment(run.created_at) != moment(other.created_at) {
        return;
    }
    let told = told_apart([(run.id, run.how.clone()), (other.id, other.how.clone())]);
    for (row, (_, how)) in [run, other].into_iter().zip(told) {
        row.how = how;
    }
}

fn has_all_failed(metrics: &EvaluationMetrics, done: i64) -> bool {
    metrics.failed > 0 && metrics.failed as u64 >= done.unsigned_abs()
}

/// The two or three numbers that say most, behind how many cases they say nothing of.
fn summary(metrics: &EvaluationMetrics, mode: &str, done: i64) -> String {
    let failed = match metrics.failed {
        0 => None,
        _ if has_all_failed(metrics, done) => Some(match metrics.failed {
            1 => "the only case failed".to_owned(),
            failed => format!("all {failed} cases failed"),
        }),
        failed => Some(format!("{failed} of {} failed", counted(done.unsigned_abs(), "case", "cases"))),
    };
    let retrieval = metrics.retrieval.get(mode);
    let found = ["hit@5", "ndcg@10"].into_iter().filter_map(|name| Some((name, retrieval?.get(name)?)));
    let answered =
        ["cited", "declined"].into_iter().filter_map(|name| Some((name, metrics.answers.get(name)?)));
    let numbers = found.chain(answered).map(|(name, estimate)| format!("{name} {:.3}", estimate.value));
    let parts: Vec<String> = failed.into_iter().chain(numbers).collect();
    if parts.is_empty() { "nothing to measure".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use lectern_shared::{
        clock::Clock,
        ids::{EvaluationId, WorkspaceId},
        model::{Json, evaluation::MeanEstimate, search::SearchMode},
    };
    use uuid::Uuid;

    use super::*;

    fn asking(agent: Option<(AgentId, &str)>, failed: usize, created_at: Timestamp) -> EvaluationRun {
        let estimate = MeanEstimate { value: 0.5, low: 0.5, high: 0.5, cases: 3 };
        let answers = BTreeMap::from([("cited".to_owned(), estimate)]);
        EvaluationRun {
            id: EvaluationRunId::generate(),
            workspace_id: WorkspaceId::from(Uuid::nil()),
            evaluation_id: EvaluationId::generate(),
            requested_by: None,
            state: EvaluationRunState::Succeeded,
            config: Json(EvaluationConfig {
                modes: vec![SearchMode::Lexical],
                answers: true,
                agent_id: agent.map(|(id, _)| id),
                agent_name: agent.map(|(_, name)| name.to_owned()),
                agent_version: Some(7),
                rerank: false,
            }),
            claim_id: None,
            attempts: 1,
            cases: 3,
            done: 3,
            metrics: Some(Json(EvaluationMetrics { answers, failed, ..EvaluationMetrics::default() })),
            error: None,
            created_at,
            started_at: None,
            finished_at: None,
        }
    }

    #[test]
    fn a_run_says_which_agent_it_asked_also_when_that_was_deleted_since() {
        let now = Clock::system().now();
        let (quoter, twin, gone) = (AgentId::generate(), AgentId::generate(), AgentId::generate());
        let asked = [Some((quoter, "Quoter")), Some((twin, "Other")), Some((gone, "Helper")), None];
        let runs = asked.map(|agent| asking(agent, 0, now));
        // It was renamed since, to what another one is called.
        let names = [(quoter, "Quoter"), (twin, "Quoter")].map(|(id, name)| (id, name.to_owned()));
        let agents = AskedAgents::named(&runs, &HashMap::from(names));
        let how = runs.each_ref().map(|run| RunRow::of(run, &agents).how);
        let end = |id: AgentId| id.to_string().split_off(30);
        assert_eq!(
            how,
            [
                format!("by words, with answers of Quoter (id …{}), version 7", end(quoter)),
                format!("by words, with answers of Quoter (id …{}), version 7", end(twin)),
                "by words, with answers of Helper (deleted), version 7".to_owned(),
                "by words, with answers of version 7".to_owned(),
            ]
        );
    }

    #[test]
    fn runs_of_one_minute_with_the_same_numbers_are_told_apart() {
        let now = Clock::system().now();
        let agents = AskedAgents(HashMap::new());
        let runs = [now, now, now.plus(Duration::from_hours(1))].map(|at| asking(None, 0, at));
        let mut rows = runs.each_ref().map(|run| RunRow::of(run, &agents));
        let labels = choices_of(&rows);
        let labels: Vec<&str> = labels.iter().map(|(_, label)| label.as_str()).collect();
        assert!(labels[0] != labels[1] && labels[0].contains(" (id …"), "{labels:?}");
        assert!(!labels[2].contains("(id"), "{labels:?}");
        let [first, second, later] = &mut rows;
        tell_apart(first, later);
        assert!(!first.how.contains("(id"), "{}", first.how);
        tell_apart(first, second);
        assert_ne!(first.how, second.how);
    }

    #[test]
    fn a_run_says_how_many_cases_failed() {
        let agents = AskedAgents(HashMap::new());
        for (failed, word, summary) in [
            (0, "Done", "cited 0.500"),
            (1, "Done", "1 of 3 cases failed, cited 0.500"),
            (3, "Done, all failed", "all 3 cases failed, cited 0.500"),
        ] {
            let row = RunRow::of(&asking(None, failed, Clock::system().now()), &agents);
            assert_eq!((row.word, row.summary.as_str()), (word, summary));
        }
    }
}
