//! What the results of many cases say together, and how sure that is.

use std::collections::BTreeMap;

use lectern_shared::{
    ids::EvaluationCaseId,
    model::evaluation::{
        AnswerEffort, CaseAnswer, CaseResult, EvaluationMetrics, ExpectedOutcome, GoldState, MeanEstimate,
        StoredCaseResult,
    },
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::Serialize;
use utoipa::ToSchema;

use super::ranking::retrieval_values;

/// What is measured of each way of searching.
pub const RETRIEVAL_METRICS: [&str; 6] = ["hit@1", "hit@5", "hit@10", "mrr", "ndcg@10", "recall@10"];
/// What is measured of answers: the share of quoted citations that were found in their sources, whether something that answers is
/// cited, whether what is to be declined is and nothing else, and whether the judge says that it is right. An answer that failed is none of
/// these where it was to be.
pub const ANSWER_METRICS: [&str; 4] = ["verified", "cited", "declined", "right"];

/// How often the cases are drawn anew.
const DRAWS: usize = 1_000;
/// The same numbers for the same results.
const SEED: u64 = 1;

/// What an answer is worth, in the order of [`ANSWER_METRICS`]; none for what does not concern it.
pub fn answer_values(expect: &ExpectedOutcome, answer: &CaseAnswer) -> [Option<f64>; 4] {
    let share = |is_so: bool| f64::from(u8::from(is_so));
    let has_failed = answer.error.is_some();
    let is_to_be_declined = matches!(expect, ExpectedOutcome::Decline(_));
    // What failed has neither cited nor quoted what it was to.
    let missed = (has_failed && !is_to_be_declined).then_some(0.0);
    #[expect(clippy::cast_precision_loss, reason = "a few citations")]
    let verified = (answer.citations > 0).then(|| answer.verified as f64 / answer.citations as f64);
    [
        missed.or(verified),
        missed.or(answer.cites_gold.map(share)),
        Some(share(!has_failed && answer.declined == is_to_be_declined)),
        answer.is_right.map(share),
    ]
}

/// What all the results of a run say.
pub fn summarise(results: &[CaseResult]) -> EvaluationMetrics {
    let mut columns: BTreeMap<(String, &'static str), Vec<f64>> = BTreeMap::new();
    let mut answers: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for CaseResult { expect, retrieval, answer, .. } in results {
        if let ExpectedOutcome::Gold(gold) = expect {
            for (mode, ranking) in retrieval {
                for (name, value) in RETRIEVAL_METRICS.iter().zip(retrieval_values(gold, &ranking.ranks)) {
                    columns.entry((mode.clone(), name)).or_default().push(value);
                }
            }
        }
        for (name, value) in
            ANSWER_METRICS.iter().zip(answer.iter().flat_map(|answer| answer_values(expect, answer)))
        {
            answers.entry(name).or_default().extend(value);
        }
    }
    let mut metrics = EvaluationMetrics {
        effort: effort(results),
        lost: results.iter().filter(|result| result.gold.iter().any(is_lost)).count(),
        failed: results.iter().filter(|result| has_failed(result)).count(),
        ..EvaluationMetrics::default()
    };
    for ((mode, name), values) in columns {
        metrics.retrieval.entry(mode).or_default().insert(name.to_owned(), estimate(&values));
    }
    let answers = answers.into_iter().filter(|(_, values)| !values.is_empty());
    metrics.answers = answers.map(|(name, values)| (name.to_owned(), estimate(&values))).collect();
    metrics
}

fn is_lost(gold: &GoldState) -> bool {
    matches!(gold, GoldState::Lost(_))
}

fn has_failed(result: &CaseResult) -> bool {
    let answer = result.answer.as_ref().is_some_and(|answer| answer.error.is_some());
    answer || result.retrieval.values().any(|ranking| ranking.error.is_some())
}

fn effort(results: &[CaseResult]) -> Option<AnswerEffort> {
    let answers: Vec<&CaseAnswer> = results.iter().filter_map(|result| result.answer.as_ref()).collect();
    let mut times: Vec<u64> =
        answers.iter().filter(|answer| answer.error.is_none()).map(|answer| answer.duration_ms).collect();
    if answers.is_empty() {
        return None;
    }
    times.sort_unstable();
    let within = |percent: usize| {
        let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
        times.get(at).copied().unwrap_or_default()
    };
    let mut known = answers.iter().filter_map(|answer| answer.cost).peekable();
    Some(AnswerEffort {
        p50_ms: within(50),
        p95_ms: within(95),
        input_tokens: answers.iter().map(|answer| answer.input_tokens).sum(),
        output_tokens: answers.iter().map(|answer| answer.output_tokens).sum(),
        cost: known.peek().is_some().then(|| known.sum()),
    })
}

/// The mean of some values, and between what it lies, by drawing the cases anew many times.
#[expect(clippy::cast_precision_loss, reason = "counts of cases")]
fn estimate(values: &[f64]) -> MeanEstimate {
    let cases = values.len();
    if cases == 0 {
        return MeanEstimate { value: 0.0, low: 0.0, high: 0.0, cases };
    }
    let mean = |sum: f64| sum / cases as f64;
    let mut random = StdRng::seed_from_u64(SEED);
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| {
            mean((0..cases).map(|_| values.get(random.random_range(0..cases)).copied().unwrap_or(0.0)).sum())
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: usize| means.get(DRAWS * share / 1_000).copied().unwrap_or_default();
    MeanEstimate { value: mean(values.iter().sum()), low: at(25), high: at(975), cases }
}

/// How two runs differ in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The metric: `hit@1` and the others of searching, or those of answers.
    #[schema(value_type = String)]
    pub metric: &'static str,
    /// The way of searching; null for what is measured of answers.
    #[schema(required = true)]
    pub mode: Option<String>,
    /// The mean in this run, over the cases that both have.
    pub value: f64,
    /// The mean in the other one.
    pub other: f64,
    /// How much more it is in this run, on average.
    pub difference: f64,
    /// The lower end of where that lies with a probability of 95 %.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Cases in which this run is better.
    pub won: usize,
    /// Cases in which the other one is.
    pub lost: usize,
    /// Cases in which they are alike.
    pub tied: usize,
}

/// A case in which two runs differ.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseDifference {
    /// The case.
    pub case: EvaluationCaseId,
    /// In which metrics, and in which way of searching, with the value in this run and in the other one.
    pub values: Vec<(&'static str, Option<String>, f64, f64)>,
}

/// A way of searching, none for answers, and the place of a metric among its like.
type MetricKey = (Option<String>, usize);

/// A metric, and its values in both runs.
type PairedValues = (&'static str, Vec<(f64, f64)>);

type CaseValues = BTreeMap<MetricKey, (&'static str, f64)>;

/// Everything that is measured of one case.
fn values_of(result: &CaseResult) -> CaseValues {
    let mut values = CaseValues::new();
    if let ExpectedOutcome::Gold(gold) = &result.expect {
        for (mode, ranking) in &result.retrieval {
            let worth = RETRIEVAL_METRICS.into_iter().zip(retrieval_values(gold, &ranking.ranks));
            for (at, (name, value)) in worth.enumerate() {
                values.insert((Some(mode.clone()), at), (name, value));
            }
        }
    }
    if let Some(answer) = &result.answer {
        let worth = ANSWER_METRICS.into_iter().zip(answer_values(&result.expect, answer));
        for (at, (name, value)) in worth.enumerate() {
            values.extend(value.map(|value| ((None, at), (name, value))));
        }
    }
    values
}

/// Compares two runs by the cases that both have: what the metrics say, and the cases in which they differ.
pub fn compare(
    this: &[StoredCaseResult],
    other: &[StoredCaseResult],
) -> (Vec<Comparison>, Vec<CaseDifference>) {
    let others: BTreeMap<EvaluationCaseId, CaseValues> =
        other.iter().map(|stored| (stored.case_id, values_of(&stored.result.0))).collect();
    let mut columns: BTreeMap<MetricKey, PairedValues> = BTreeMap::new();
    let mut differences = Vec::new();
    for stored in this {
        let Some(others) = others.get(&stored.case_id) else { continue };
        let mut differs = Vec::new();
        for (key, (name, value)) in values_of(&stored.result.0) {
            let Some((_, other)) = others.get(&key) else { continue };
            if (value - other).abs() > f64::EPSILON {
                differs.push((name, key.0.clone(), value, *other));
            }
            columns.entry(key).or_insert_with(|| (name, Vec::new())).1.push((value, *other));
        }
        if !differs.is_empty() {
            differences.push(CaseDifference { case: stored.case_id, values: differs });
        }
    }
    let compared = columns.into_iter().map(|((mode, _), (metric, pairs))| {
        let difference = estimate(&pairs.iter().map(|(this, other)| this - other).collect::<Vec<_>>());
        let better = |pair: &&(f64, f64)| pair.0 - pair.1 > f64::EPSILON;
        let worse = |pair: &&(f64, f64)| pair.1 - pair.0 > f64::EPSILON;
        let (won, lost) = (pairs.iter().filter(better).count(), pairs.iter().filter(worse).count());
        Comparison {
            metric,
            mode,
            value: estimate_mean(pairs.iter().map(|pair| pair.0)),
            other: estimate_mean(pairs.iter().map(|pair| pair.1)),
            difference: difference.value,
            low: difference.low,
            high: difference.high,
            won,
            lost,
            tied: pairs.len() - won - lost,
        }
    });
    (compared.collect(), differences)
}

#[expect(clippy::cast_precision_loss, reason = "counts of cases")]
fn estimate_mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use lectern_shared::{
        ids::DocumentId,
        model::{
            Json,
            evaluation::{CaseRanking, DeclineWord, GoldQuote},
        },
    };

    use super::*;

    fn found_at(rank: Option<u32>) -> CaseResult {
        let gold = GoldQuote { document_id: DocumentId::generate(), quote: None, grade: 1 };
        let ranking = CaseRanking { ranks: vec![rank], ..CaseRanking::default() };
        CaseResult {
            expect: ExpectedOutcome::Gold(vec![gold]),
            gold: vec![GoldState::Found],
            retrieval: BTreeMap::from([("lexical".to_owned(), ranking)]),
            answer: None,
        }
    }

    fn stored(results: Vec<CaseResult>) -> Vec<StoredCaseResult> {
        let id = |at: usize| uuid::Uuid::from_u128(at as u128).into();
        let stored = |(at, result)| StoredCaseResult {
            case_id: id(at),
            question: String::new(),
            result: Json(result),
        };
        results.into_iter().enumerate().map(stored).collect()
    }

    #[test]
    fn a_mean_comes_with_where_it_may_lie() {
        let results: Vec<_> = (0..200).map(|at| found_at((at % 4 != 0).then_some(1))).collect();
        let metrics = summarise(&results);
        let hit = metrics.retrieval["lexical"]["hit@1"];
        assert!((hit.value - 0.75).abs() < 1e-12 && hit.cases == 200, "{hit:?}");
        // The standard error is about .03.
        assert!((0.68..0.71).contains(&hit.low) && (0.79..0.83).contains(&hit.high), "{hit:?}");
        assert_eq!(metrics, summarise(&results), "the same for the same");
        assert_eq!((metrics.lost, metrics.failed, metrics.effort), (0, 0, None));
        assert!(summarise(&[]).retrieval.is_empty());
    }

    #[test]
    fn answers_are_judged_by_what_was_to_come_of_them() {
        let gold = found_at(Some(1)).expect;
        let decline = ExpectedOutcome::Decline(DeclineWord::Decline);
        let answer = CaseAnswer {
            citations: 4,
            verified: 3,
            cites_gold: Some(true),
            duration_ms: 100,
            cost: Some(0.25),
            ..CaseAnswer::default()
        };
        assert_eq!(answer_values(&gold, &answer), [Some(0.75), Some(1.0), Some(1.0), None]);
        assert_eq!(answer_values(&decline, &answer)[2], Some(0.0), "it ought to have been declined");
        let declined = CaseAnswer { declined: true, ..CaseAnswer::default() };
        assert_eq!(answer_values(&decline, &declined), [None, None, Some(1.0), None]);
        let failed = CaseAnswer { error: Some("away".to_owned()), ..CaseAnswer::default() };
        assert_eq!(answer_values(&gold, &failed), [Some(0.0), Some(0.0), Some(0.0), None]);
        assert_eq!(answer_values(&decline, &failed), [None, None, Some(0.0), None]);
        let results = [
            CaseResult { answer: Some(answer), ..found_at(Some(1)) },
            CaseResult { answer: Some(failed), ..found_at(None) },
        ];
        let metrics = summarise(&results);
        assert_eq!(metrics.failed, 1);
        assert!((metrics.answers["declined"].value - 0.5).abs() < 1e-12);
        let cited = metrics.answers["cited"];
        assert!((cited.value - 0.5).abs() < 1e-12 && cited.cases == 2, "what failed counts: {cited:?}");
        let effort = metrics.effort.unwrap();
        assert_eq!((effort.p50_ms, effort.p95_ms, effort.cost), (100, 100, Some(0.25)));
    }

    #[test]
    fn two_runs_are_compared_by_the_cases_that_both_have() {
        let before = stored(vec![found_at(Some(1)), found_at(Some(2)), found_at(None), found_at(Some(1))]);
        let after = stored(vec![found_at(Some(1)), found_at(Some(1)), found_at(None), found_at(None)]);
        let (compared, differences) = compare(&after, &before[..4]);
        let hit = compared.iter().find(|comparison| comparison.metric == "hit@1").unwrap();
        assert_eq!((hit.won, hit.lost, hit.tied), (1, 1, 2), "{hit:?}");
        assert!(hit.low < 0.0 && hit.high > 0.0 && hit.difference.abs() < 1e-12, "{hit:?}");
        let cases: Vec<_> = differences.iter().map(|difference| difference.case).collect();
        assert_eq!(cases, [after[1].case_id, after[3].case_id]);
        let (compared, _) = compare(&after[..1], &before);
        assert_eq!(compared[0].tied, 1);
    }
}
