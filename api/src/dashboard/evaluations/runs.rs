//! Runs of evaluations in a browser: how good it is, case by case, and beside another run.

use std::collections::BTreeMap;

use askama::Template;
use axum::{
    extract::State,
    http::{StatusCode, Uri},
};
use lectern_agents::evaluation::{ANSWER_METRICS, Comparison, RETRIEVAL_METRICS};
use lectern_derive::handler;
use lectern_shared::{
    ids::{EvaluationId, EvaluationRunId, TraceId},
    model::evaluation::{
        EvaluationMetrics, EvaluationRun, EvaluationRunState, ExpectedOutcome, GoldState, MeanEstimate,
        StoredCaseResult,
    },
};
use uuid::Uuid;

use super::rows::{AskedAgents, RunRow, choices_of, tell_apart, way_words};
use crate::{
    dashboard::{
        PagePolicy,
        frame::{Frame, SubmittedForm, Visitor},
        html,
        text::{counted, duration, filters, stop_word},
    },
    error::ApiError,
    extract::{PathId, PathIds, parameter},
    response::ApiResult,
    services::{
        creation::CreationOutcome,
        evaluations::{EvaluationService, NewEvaluationRun},
    },
};

/// Results of a page.
const RESULTS: u32 = 50;
/// Runs of a page of those to compare with.
const OTHERS: u32 = 50;
/// Cases that differ which are shown.
const DIFFERING: usize = 100;
/// The fewest cases that an interval says something of: drawn anew, a single one is always itself.
const FEWEST_FOR_INTERVAL: usize = 2;

/// What each metric says, for people.
fn words(metric: &str) -> &'static str {
    match metric {
        "hit@1" => "the first passage answers",
        "hit@5" => "one of the first 5 answers",
        "hit@10" => "one of the first 10 answers",
        "mrr" => "one over the rank of the first that answers",
        "ndcg@10" => "how near the top all that answers is",
        "recall@10" => "how much of what answers is among the first 10",
        "verified" => "quoted words are in the source",
        "cited" => "what answers is cited",
        "declined" => "declined when nothing answers, and only then",
        "right" => "right, as the judge says",
        _ => "",
    }
}

/// A metric, as it is drawn.
struct MetricRow {
    group: String,
    name: String,
    words: &'static str,
    value: String,
    /// The bar, in hundredths.
    bar: String,
    interval: Option<IntervalRow>,
}

/// Between what a metric lies.
struct IntervalRow {
    range: String,
    /// The whiskers, in hundredths.
    low: String,
    width: String,
}

fn metric_row(group: &str, name: &str, estimate: &MeanEstimate) -> MetricRow {
    let interval = || IntervalRow {
        range: format!("{:.3} to {:.3}", estimate.low, estimate.high),
        low: format!("{:.1}", estimate.low * 100.0),
        width: format!("{:.1}", ((estimate.high - estimate.low) * 100.0).max(0.5)),
    };
    MetricRow {
        group: group.to_owned(),
        name: name.to_owned(),
        words: words(name),
        value: format!("{:.3}", estimate.value),
        bar: format!("{:.1}", estimate.value * 100.0),
        interval: (estimate.cases >= FEWEST_FOR_INTERVAL).then(interval),
    }
}

/// The metrics in the order in which they are explained.
fn metric_rows(metrics: &EvaluationMetrics) -> Vec<MetricRow> {
    let of = |group: &str, names: &[&str], estimates: &BTreeMap<String, MeanEstimate>| {
        let rows = names.iter().filter_map(|name| Some(metric_row(group, name, estimates.get(*name)?)));
        rows.collect::<Vec<_>>()
    };
    let mut rows: Vec<MetricRow> = Vec::new();
    for (mode, estimates) in &metrics.retrieval {
        rows.extend(of(way_words(mode), &RETRIEVAL_METRICS, estimates));
    }
    rows.extend(of("answers", &ANSWER_METRICS, &metrics.answers));
    rows
}

/// What came of a case, in words.
struct ResultRow {
    question: String,
    /// What was to come of it.
    expected: String,
    /// Something that answers is not in the documents.
    lost: Option<String>,
    /// Where what answers was found, by the way of searching.
    ranks: Vec<(String, String, &'static str)>,
    answer: Option<AnswerRow>,
}

struct AnswerRow {
    trace: Option<TraceId>,
    text: String,
    word: &'static str,
    tone: &'static str,
    detail: String,
}

fn rank_words(ranks: &[Option<u32>], error: Option<&String>) -> (String, &'static str) {
    if let Some(error) = error {
        return (error.clone(), "bad");
    }
    match ranks.iter().flatten().min() {
        None if ranks.is_empty() => ("nothing is to be found".to_owned(), ""),
        None => ("not found".to_owned(), "bad"),
        Some(first @ 1..=5) => (format!("rank {first}"), "good"),
        Some(first) => (format!("rank {first}"), ""),
    }
}

impl From<StoredCaseResult> for ResultRow {
    fn from(stored: StoredCaseResult) -> Self {
        let result = stored.result.0;
        let lost = result.gold.iter().find_map(|state| match state {
            GoldState::Lost(why) => Some(why.clone()),
            GoldState::Found | GoldState::Similar => None,
        });
        let ranks = result.retrieval.iter().map(|(mode, ranking)| {
            let (words, tone) = rank_words(&ranking.ranks, ranking.error.as_ref());
            (way_words(mode).to_owned(), words, tone)
        });
        let is_declined = matches!(result.expect, ExpectedOutcome::Decline(_));
        let answer = result.answer.map(|answer| {
            let (word, tone) = match (&answer.error, answer.is_right, answer.cites_gold) {
                (Some(_), ..) => ("Failed", "bad"),
                (None, Some(false), _) => ("Wrong, as the judge says", "bad"),
                (None, _, Some(false)) => ("Does not cite what answers", "bad"),
                _ if is_declined != answer.declined && is_declined => ("Ought to have declined", "bad"),
                _ if is_declined != answer.declined => ("Declined", "bad"),
                _ if is_declined => ("Declined, as it should", "good"),
                _ => ("Cites what answers", "good"),
            };
            let sources = format!(
                "{}, {} verified, {}",
                counted(answer.citations as u64, "source", "sources"),
                answer.verified,
                duration(answer.duration_ms)
            );
            AnswerRow {
                trace: answer.trace_id,
                text: answer.text,
                word,
                tone,
                detail: answer.error.unwrap_or(sources),
            }
        });
        let quotes: Vec<&str> =
            result.expect.gold().iter().filter_map(|gold| gold.quote.as_deref()).collect();
        let expected = match (is_declined, quotes.as_slice()) {
            (true, _) => "to be declined".to_owned(),
            (false, []) => "any passage of the document".to_owned(),
            (false, [quote]) => format!("“{quote}”"),
            (false, [quote, ..]) => format!("“{quote}” and {} more", quotes.len() - 1),
        };
        Self { question: stored.question, expected, lost, ranks: ranks.collect(), answer }
    }
}

#[derive(Template)]
#[template(path = "evaluation_run.html")]
struct RunPage {
    frame: Frame,
    evaluation: EvaluationId,
    name: String,
    run: RunRow,
    done: i64,
    cases: i64,
    metrics: Vec<MetricRow>,
    /// What is worth knowing besides the metrics.
    remarks: Vec<String>,
    results: Vec<ResultRow>,
    more: Option<Uuid>,
    /// Those that it can be compared with, of a page of them.
    others: Vec<(EvaluationRunId, String)>,
    /// The last run of that page, when there are earlier ones.
    earlier: Option<EvaluationRunId>,
}

#[derive(Template)]
#[template(path = "evaluation_compare.html")]
struct ComparePage {
    frame: Frame,
    evaluation: EvaluationId,
    name: String,
    run: RunRow,
    other: RunRow,
    metrics: Vec<ComparedRow>,
    differing: String,
    cases: Vec<(Vec<String>, ResultRow, ResultRow, &'static str)>,
}

struct ComparedRow {
    group: String,
    name: &'static str,
    words: &'static str,
    value: String,
    other: String,
    difference: String,
    range: Option<String>,
    /// Whether the difference is more than chance would make it.
    tone: &'static str,
    verdict: &'static str,
    won: usize,
    lost: usize,
}

impl From<Comparison> for ComparedRow {
    fn from(compared: Comparison) -> Self {
        let has_interval = compared.won + compared.lost + compared.tied >= FEWEST_FOR_INTERVAL;
        let (tone, verdict) = if compared.won + compared.lost == 0 {
            ("", "the same")
        } else if has_interval && compared.low > 0.0 {
            ("good", "better")
        } else if has_interval && compared.high < 0.0 {
            ("bad", "worse")
        } else {
            ("", "may be chance")
        };
        Self {
            group: compared.mode.as_deref().map_or("answers", way_words).to_owned(),
            name: compared.metric,
            words: words(compared.metric),
            value: format!("{:.3}", compared.value),
            other: format!("{:.3}", compared.other),
            difference: format!("{:+.3}", compared.difference),
            range: has_interval.then(|| format!("{:+.3} to {:+.3}", compared.low, compared.high)),
            tone,
            verdict,
            won: compared.won,
            lost: compared.lost,
        }
    }
}

/// Has an evaluation run.
#[handler]
pub(super) async fn start(
    State(evaluations): State<EvaluationService>,
    PathId(id): PathId<EvaluationId>,
    SubmittedForm { visitor, body, once }: SubmittedForm<NewEvaluationRun>,
) -> ApiResult {
    let id_of = |made: &EvaluationRun| Ok(made.id.to_string().into_bytes());
    let started = evaluations.run(&visitor.actor(), id, body, once, id_of).await?;
    let (CreationOutcome::Now(run) | CreationOutcome::Before(run)) = started;
    Ok(visitor.go(&format!("evaluations/{id}/runs/{}", String::from_utf8_lossy(&run))))
}

/// Shows a run.
#[handler]
pub(super) async fn show(
    State(evaluations): State<EvaluationService>,
    visitor: Visitor,
    uri: Uri,
    PathIds(id, run): PathIds<EvaluationId, EvaluationRunId>,
) -> ApiResult {
    let actor = visitor.actor();
    let name = evaluations.find(&actor, id).await?.name;
    let found = evaluations.find_run(&actor, id, run).await?;
    let before =
        |list: &str| parameter(&uri, list).and_then(|last| last.parse().ok()).unwrap_or_else(Uuid::max);
    let mut results = evaluations.results(&actor, id, run, before("after"), RESULTS + 1).await?;
    let has_more = results.len() > RESULTS as usize;
    results.truncate(RESULTS as usize);
    let mut others = evaluations.runs(&actor, id, before("others"), OTHERS + 1).await?;
    let has_earlier = others.len() > OTHERS as usize;
    others.truncate(OTHERS as usize);
    let earlier = others.last().map(|last| last.id).filter(|_| has_earlier);
    others.push(found.clone());
    let agents = AskedAgents::of(&evaluations, &actor, &others).await?;
    let is_other = |other: &&EvaluationRun| other.id != run && other.state == EvaluationRunState::Succeeded;
    let rows: Vec<RunRow> = others.iter().filter(is_other).map(|other| RunRow::of(other, &agents)).collect();
    let metrics = found.metrics.as_ref().map(|metrics| &metrics.0);
    let page = RunPage {
        evaluation: id,
        name,
        run: RunRow::of(&found, &agents),
        done: found.done,
        cases: found.cases,
        metrics: metrics.map(metric_rows).unwrap_or_default(),
        remarks: metrics.map(remarks).unwrap_or_default(),
        more: results.last().map(|last| *last.case_id.as_uuid()).filter(|_| has_more),
        results: results.into_iter().map(ResultRow::from).collect(),
        earlier,
        others: choices_of(&rows),
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

fn remarks(metrics: &EvaluationMetrics) -> Vec<String> {
    let mut remarks = Vec::new();
    let cases = |count: usize| counted(count as u64, "case", "cases");
    if metrics.lost > 0 {
        remarks.push(format!("What answers {} is not in the documents.", cases(metrics.lost)));
    }
    if metrics.failed > 0 {
        remarks.push(format!("Something failed in {}.", cases(metrics.failed)));
    }
    if let Some(effort) = &metrics.effort {
        let cost = effort.cost.map(|cost| format!(", at a cost of {cost:.4}")).unwrap_or_default();
        remarks.push(format!(
            "Half of the answers came within {}, 95 % within {}; {} tokens were read and {} written{cost}.",
            duration(effort.p50_ms),
            duration(effort.p95_ms),
            effort.input_tokens,
            effort.output_tokens
        ));
    }
    remarks
}

/// Stops a run.
#[handler]
pub(super) async fn cancel(
    State(evaluations): State<EvaluationService>,
    visitor: Visitor,
    PathIds(id, run): PathIds<EvaluationId, EvaluationRunId>,
) -> ApiResult {
    let (_, is_stopped) = evaluations.cancel(&visitor.actor(), id, run).await?;
    let said = stop_word(is_stopped);
    Ok(visitor.go(&format!("evaluations/{id}/runs/{run}?said={said}")))
}

/// Shows a run beside another one.
#[handler]
pub(super) async fn compare(
    State(evaluations): State<EvaluationService>,
    visitor: Visitor,
    uri: Uri,
    PathIds(id, run): PathIds<EvaluationId, EvaluationRunId>,
) -> ApiResult {
    let actor = visitor.actor();
    let other = parameter(&uri, "with").and_then(|with| with.parse().ok());
    let other: EvaluationRunId = other.ok_or_else(|| ApiError::not_found("run"))?;
    let name = evaluations.find(&actor, id).await?.name;
    let compared = evaluations.compare(&actor, id, run, other, DIFFERING).await?;
    let both = [compared.run, compared.other];
    let agents = AskedAgents::of(&evaluations, &actor, &both).await?;
    let [mut run, mut other] = both.each_ref().map(|run| RunRow::of(run, &agents));
    tell_apart(&mut run, &mut other);
    let cases = compared.cases.into_iter().map(|(difference, this, other)| {
        let better = difference.values.iter().filter(|(_, _, value, other)| value > other).count();
        let tone = match better {
            0 => "bad",
            all if all == difference.values.len() => "good",
            _ => "",
        };
        let told = difference.values.into_iter().map(|(metric, mode, value, other)| {
            let mode = mode.map(|mode| format!("{} ", way_words(&mode))).unwrap_or_default();
            format!("{mode}{metric}: {value:.2}, was {other:.2}")
        });
        (told.collect(), ResultRow::from(this), ResultRow::from(other), tone)
    });
    let page = ComparePage {
        evaluation: id,
        name,
        run,
        other,
        metrics: compared.metrics.into_iter().map(ComparedRow::from).collect(),
        differing: counted(compared.differing as u64, "case differs", "cases differ"),
        cases: cases.collect(),
        frame: visitor.frame,
    };
    html(&PagePolicy::Own, StatusCode::OK, &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_single_case_nothing_is_said_of_chance() {
        let estimate = |cases| MeanEstimate { value: 1.0, low: 0.5, high: 1.0, cases };
        assert!(metric_row("hybrid", "mrr", &estimate(1)).interval.is_none());
        let row = metric_row("hybrid", "mrr", &estimate(2));
        assert_eq!(row.interval.map(|interval| interval.range).as_deref(), Some("0.500 to 1.000"));
        let compared = |won, tied| -> ComparedRow {
            let (metric, mode) = ("mrr", Some("hybrid".to_owned()));
            let (value, other, difference, low, high) = (1.0, 0.0, 1.0, 1.0, 1.0);
            let lost = 0;
            Comparison { metric, mode, value, other, difference, low, high, won, lost, tied }.into()
        };
        let (one, two) = (compared(1, 0), compared(2, 0));
        assert_eq!((one.verdict, one.range), ("may be chance", None));
        assert_eq!((two.verdict, two.range.as_deref()), ("better", Some("+1.000 to +1.000")));
        assert!(compared(1, 1).range.is_some(), "cases in which both are alike count");
        assert_eq!((compared(0, 1).verdict, compared(0, 4).verdict), ("the same", "the same"));
    }
}
