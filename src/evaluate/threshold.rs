//! What of a run is enough: whether it would be measured, and whether it was reached.

use std::str::FromStr;

use lectern_api::{ANSWER_METRICS, RETRIEVAL_METRICS};
use lectern_runtime::process::FatalError;
use lectern_shared::model::search::SearchMode;
use serde_json::Value;

use super::{EvalArgs, cases};

/// What is known of a run before it begins.
pub(super) struct RunPreview {
    /// The evaluation, as the service tells it.
    pub(super) evaluation: Value,
    /// Whether something answers one of its questions.
    pub(super) is_answered: bool,
    /// Whether the service has an embedding model.
    pub(super) has_model: bool,
}

/// What a metric has to be at least.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Threshold {
    /// The way of searching; the first of the run when none.
    mode: Option<String>,
    metric: String,
    least: f64,
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "must be a metric and a number, such as hit@5=0.8".to_owned();
        let (name, least) = text.split_once('=').ok_or_else(wrong)?;
        let least: f64 = least.trim().parse().map_err(|_| wrong())?;
        let (mode, metric) = match name.trim().split_once('.') {
            Some((mode, metric)) => (Some(mode.to_owned()), metric.to_owned()),
            None => (None, name.trim().to_owned()),
        };
        if metric.is_empty() || !least.is_finite() {
            return Err(wrong());
        }
        Ok(Self { mode, metric, least })
    }
}

impl Threshold {
    /// What the metric is in a run; none when the run does not measure it.
    fn value(&self, run: &Value) -> Option<f64> {
        let metrics = &run["metrics"];
        let estimate = match (&self.mode, metrics["answers"].get(&self.metric)) {
            (None, Some(estimate)) => estimate,
            (mode, _) => {
                let mode = mode.as_deref().or(run["modes"][0].as_str())?;
                metrics["retrieval"].get(mode)?.get(&self.metric)?
            }
        };
        estimate["value"].as_f64()
    }

    /// Whether it is measured of those questions alone that something answers.
    pub(super) fn needs_answered(&self) -> bool {
        let metric = self.metric.as_str();
        RETRIEVAL_METRICS.contains(&metric) || (self.mode.is_none() && metric == "cited")
    }

    /// Whether it is about searching by meaning, in a run that does so only where the service can.
    pub(super) fn needs_model(&self, args: &EvalArgs) -> bool {
        let mode = self.mode.as_ref().and_then(|mode| mode.parse::<SearchMode>().ok());
        args.mode.is_none() && matches!(mode, Some(SearchMode::Hybrid | SearchMode::Dense))
    }

    /// Why a run would not measure it; none when it will.
    fn obstacle(&self, args: &EvalArgs, preview: &RunPreview) -> Option<String> {
        let (metric, evaluation) = (self.metric.as_str(), &preview.evaluation);
        let unanswered = || {
            let why = "is measured of questions that something answers, and all cases are to be declined";
            (self.needs_answered() && !preview.is_answered).then(|| why.to_owned())
        };
        if self.mode.is_none() && ANSWER_METRICS.contains(&metric) {
            return if args.no_answers {
                Some("is measured of answers, which --no-answers leaves out".to_owned())
            } else if evaluation["agentId"].is_null() {
                Some("is measured of answers, and the evaluation has no agent".to_owned())
            } else if metric == "right" && evaluation["judgeAgentId"].is_null() {
                Some("is what a judge says, and the evaluation has no judge".to_owned())
            } else {
                unanswered()
            };
        }
        if !RETRIEVAL_METRICS.contains(&metric) {
            let known = [RETRIEVAL_METRICS.as_slice(), ANSWER_METRICS.as_slice()].concat().join(", ");
            return Some(format!("is no metric; these are: {known}"));
        }
        let Some(mode) = &self.mode else { return unanswered() };
        match &args.mode {
            _ if mode.parse::<SearchMode>().is_err() => {
                Some(format!("names no way of searching; these are: {}", SearchMode::choices()))
            }
            Some(only) if only != mode => Some(format!("is not measured by --mode {only}")),
            None if self.needs_model(args) && !preview.has_model => {
                Some("is about searching by meaning, and the service has no embedding model".to_owned())
            }
            Some(_) | None => unanswered(),
        }
    }

    fn name(&self) -> String {
        let mode = self.mode.as_ref().map(|mode| format!("{mode}.")).unwrap_or_default();
        format!("{mode}{}", self.metric)
    }
}

/// Fails when something has to be enough that a run would not measure.
pub(super) fn check(args: &EvalArgs, preview: &RunPreview) -> Result<(), FatalError> {
    let obstacle = |threshold: &Threshold| {
        let why = threshold.obstacle(args, preview)?;
        Some(format!("{} {why}", threshold.name()))
    };
    let obstacles: Vec<String> = args.least.iter().filter_map(obstacle).collect();
    if obstacles.is_empty() { Ok(()) } else { Err(obstacles.join("; ").into()) }
}

/// What has to be enough that a run does not measure although it could have been expected to, now that it is begun: the embedding model
/// of the service may be on its way still.
pub(super) fn left_out(least: &[Threshold], run: &Value) -> Option<String> {
    let is_taken = |mode: &str| {
        let mut modes = run["modes"].as_array().into_iter().flatten();
        modes.any(|taken| taken.as_str() == Some(mode))
    };
    let is_left_out = |threshold: &&Threshold| threshold.mode.as_deref().is_some_and(|mode| !is_taken(mode));
    let names: Vec<String> = least.iter().filter(is_left_out).map(Threshold::name).collect();
    let why = "is about searching by meaning, and the embedding model of the service is not there yet";
    (!names.is_empty()).then(|| format!("{} {why}", names.join(", ")))
}

/// Fails when something is below what is enough, or more cases failed than may.
pub(super) fn below(least: &[Threshold], most_failed: u64, run: &Value) -> Result<(), FatalError> {
    let failed = run["metrics"]["failed"].as_u64().unwrap_or_default();
    let too_many = (failed > most_failed)
        .then(|| format!("{} failed, and at most {most_failed} may (--allow-failed)", cases(failed)));
    let below: Vec<String> = least
        .iter()
        .filter_map(|threshold| match threshold.value(run) {
            None => Some(format!("{} was not measured", threshold.name())),
            Some(value) if value < threshold.least => Some(format!(
                "{} is {value:.4}, and has to be at least {}",
                threshold.name(),
                threshold.least
            )),
            Some(_) => None,
        })
        .chain(too_many)
        .collect();
    if below.is_empty() { Ok(()) } else { Err(below.join("; ").into()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_threshold_names_a_metric_and_perhaps_a_way_of_searching() {
        let read = |text: &str| text.parse::<Threshold>();
        let plain = Threshold { mode: None, metric: "hit@5".to_owned(), least: 0.8 };
        assert_eq!(read("hit@5=0.8"), Ok(plain.clone()));
        assert_eq!(read("dense.hit@5 = 0.8"), Ok(Threshold { mode: Some("dense".to_owned()), ..plain }));
        for wrong in ["hit@5", "=1", "hit@5=much", "hit@5=NaN"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_below_is_named() {
        let run = json!({
            "modes": ["hybrid", "dense"],
            "metrics": {
                "retrieval": {"hybrid": {"hit@5": {"value": 0.75}}, "dense": {"hit@5": {"value": 0.9}}},
                "answers": {"verified": {"value": 1.0}},
            },
        });
        let least = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        assert!(below(&least(&["hit@5=0.75", "dense.hit@5=0.9", "verified=1"]), 0, &run).is_ok());
        let failure = below(&least(&["hit@5=0.8", "dense.hit@5=0.8", "right=0.5"]), 0, &run).unwrap_err();
        let said = "hit@5 is 0.7500, and has to be at least 0.8; right was not measured";
        assert_eq!(failure.to_string(), said);
    }

    #[test]
    fn cases_that_failed_are_too_many_unless_so_many_may() {
        let run = json!({"modes": [], "metrics": {"retrieval": {}, "failed": 1}});
        let failure = below(&[], 0, &run).unwrap_err().to_string();
        assert_eq!(failure, "1 case failed, and at most 0 may (--allow-failed)");
        assert!(below(&[], 1, &run).is_ok());
    }

    #[test]
    fn what_a_run_would_not_measure_is_told_before_it_begins() {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            eval: EvalArgs,
        }
        let told_of = |more: &[&str], preview: &RunPreview| {
            let line = [&["eval", "--set", "x"], more].concat();
            let args = <Command as clap::Parser>::parse_from(line).eval;
            check(&args, preview).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let told = |more: &[&str], evaluation: &Value| {
            let evaluation = evaluation.clone();
            told_of(more, &RunPreview { evaluation, is_answered: true, has_model: true })
        };
        let plain = json!({"agentId": null, "judgeAgentId": null});
        let asking = json!({"agentId": "a", "judgeAgentId": null});
        let judged = json!({"agentId": "a", "judgeAgentId": "b"});
        assert_eq!(told(&["--min", "right=1", "--min", "dense.mrr=0.5", "--min", "cited=1"], &judged), "");
        let wrong: [(&[&str], &Value, &str); 7] = [
            (&["--min", "hit@7=1"], &judged, "hit@7 is no metric; these are: hit@1, hit@5, "),
            (&["--min", "dense.verified=1"], &judged, "dense.verified is no metric"),
            (&["--min", "guess.mrr=1"], &judged, "guess.mrr names no way of searching"),
            (&["--min", "dense.mrr=1", "--mode", "lexical"], &judged, "not measured by --mode lexical"),
            (&["--min", "verified=1", "--no-answers"], &judged, "--no-answers"),
            (&["--min", "verified=1"], &plain, "has no agent"),
            (&["--min", "right=1"], &asking, "has no judge"),
        ];
        for (more, evaluation, said) in wrong {
            let told = told(more, evaluation);
            assert!(told.contains(said), "{more:?}: {told}");
        }
        let by_words = RunPreview { evaluation: judged.clone(), is_answered: true, has_model: false };
        for more in ["dense.mrr=1", "hybrid.hit@5=1"] {
            assert!(told_of(&["--min", more], &by_words).contains("has no embedding model"), "{more}");
        }
        // A run that names its way of searching takes it, by words where there is nothing else, or is refused for it.
        assert_eq!(told_of(&["--min", "hybrid.mrr=1", "--mode", "hybrid"], &by_words), "");
        assert_eq!(told_of(&["--min", "mrr=1", "--min", "lexical.mrr=1"], &by_words), "");
        let declined = RunPreview { evaluation: judged, is_answered: false, has_model: true };
        for more in ["hit@5=1", "dense.mrr=1", "cited=1"] {
            assert!(told_of(&["--min", more], &declined).contains("to be declined"), "{more}");
        }
        assert_eq!(told_of(&["--min", "declined=1", "--min", "right=1"], &declined), "");
    }

    #[test]
    fn a_run_that_was_begun_without_a_model_leaves_out_what_is_by_meaning() {
        let least: [Threshold; 3] =
            ["dense.mrr=1", "mrr=1", "lexical.mrr=1"].map(|text| text.parse().unwrap());
        let told = left_out(&least, &json!({"modes": ["lexical"]})).unwrap();
        assert!(told.starts_with("dense.mrr is about searching by meaning"), "{told}");
        assert_eq!(left_out(&least, &json!({"modes": ["hybrid", "dense", "lexical"]})), None);
    }
}
