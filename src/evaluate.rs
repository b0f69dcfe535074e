//! `lectern eval`: runs an evaluation of a service, over its HTTP interface, and fails below a threshold. For checks that run by themselves.

use std::{fmt::Write as _, io::Write as _, str::FromStr, time::Duration};

use clap::Args;
use lectern_api::{ANSWER_METRICS, RETRIEVAL_METRICS};
use lectern_runtime::process::{FatalError, local_address};
use lectern_shared::{config::Settings, egress, model::search::SearchMode};
use reqwest::{Client, Method, StatusCode};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use url::Url;

/// The longest that a connection, and a silence of the service, may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_mins(1);
/// How often it is asked how far a run is.
const ASKED_EVERY: Duration = Duration::from_millis(500);
/// How often in a row the service may not answer: it may be restarting.
const MOST_UNANSWERED: u32 = 60;
/// Cases that are named which a run has lost against another one.
const NAMED: usize = 20;

/// What to run, and what is enough.
#[derive(Args)]
pub(crate) struct EvalArgs {
    /// The id of the evaluation.
    #[arg(long)]
    set: String,
    /// The service, such as `https://lectern.example.com`; the one on this machine when left out. The API token that it is asked with is
    /// the setting `LECTERN_TOKEN`.
    #[arg(long)]
    server: Option<Url>,
    /// How to search: hybrid, dense or lexical. In each way when left out; thresholds are then about the first.
    #[arg(long)]
    mode: Option<String>,
    /// Search only, and do not ask the evaluation's agent.
    #[arg(long)]
    no_answers: bool,
    /// Ask this version of the agent.
    #[arg(long)]
    agent_version: Option<u32>,
    /// Have what is found put into a better order by the service's reranker.
    #[arg(long)]
    rerank: bool,
    /// The least that is enough, such as `hit@5=0.8`, `dense.ndcg@10=0.5` or `verified=0.95`. May be given several times.
    #[arg(long = "min", value_name = "METRIC=VALUE")]
    least: Vec<Threshold>,
    /// How many cases may fail: the agent gives no answer, or it cannot be searched.
    #[arg(long, value_name = "N", default_value_t = 0)]
    allow_failed: u64,
    /// Compare with this run, and say what was won and lost.
    #[arg(long, value_name = "RUN")]
    against: Option<String>,
    /// Answer with the run as JSON.
    #[arg(long)]
    json: bool,
}

/// What a metric has to be at least.
#[derive(Clone, Debug, PartialEq)]
struct Threshold {
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

    /// Why a run would not measure it; none when it will.
    fn obstacle(&self, args: &EvalArgs, evaluation: &Value) -> Option<String> {
        let metric = self.metric.as_str();
        if self.mode.is_none() && ANSWER_METRICS.contains(&metric) {
            return if args.no_answers {
                Some("is measured of answers, which --no-answers leaves out".to_owned())
            } else if evaluation["agentId"].is_null() {
                Some("is measured of answers, and the evaluation has no agent".to_owned())
            } else if metric == "right" && evaluation["judgeAgentId"].is_null() {
                Some("is what a judge says, and the evaluation has no judge".to_owned())
            } else {
                None
            };
        }
        if !RETRIEVAL_METRICS.contains(&metric) {
            let known = [RETRIEVAL_METRICS.as_slice(), ANSWER_METRICS.as_slice()].concat().join(", ");
            return Some(format!("is no metric; these are: {known}"));
        }
        let mode = self.mode.as_ref()?;
        match &args.mode {
            _ if mode.parse::<SearchMode>().is_err() => {
                Some(format!("names no way of searching; these are: {}", SearchMode::choices()))
            }
            Some(only) if only != mode => Some(format!("is not measured by --mode {only}")),
            Some(_) | None => None,
        }
    }

    fn name(&self) -> String {
        let mode = self.mode.as_ref().map(|mode| format!("{mode}.")).unwrap_or_default();
        format!("{mode}{}", self.metric)
    }
}

/// Runs an evaluation, and waits for its end.
///
/// # Errors
/// When the run fails, or something is below what is enough.
pub(crate) async fn run(settings: &Settings, args: &EvalArgs) -> Result<(), FatalError> {
    let token =
        settings.token.as_ref().ok_or("LECTERN_TOKEN is not set: it is an API token of the service")?;
    let local = || Url::parse(&format!("http://{}", local_address(settings.addr)));
    let server = ServiceClient {
        client: egress::operator_client(CONNECT_WITHIN, ANSWER_WITHIN)?,
        base: match &args.server {
            Some(server) => server.clone(),
            None => local()?,
        },
        token: token.expose_secret().to_owned(),
    };
    let mut body = json!({});
    if let Some(mode) = &args.mode {
        body["mode"] = json!(mode);
    }
    if args.no_answers {
        body["answers"] = json!(false);
    }
    if let Some(version) = args.agent_version {
        body["agentVersion"] = json!(version);
    }
    if args.rerank {
        body["rerank"] = json!(true);
    }
    let evaluation = format!("evaluations/{}", args.set);
    let runs = format!("{evaluation}/runs");
    // Before anything is begun that may cost something.
    check(args, &server.ask(Method::GET, &evaluation, None).await?)?;
    if let Some(other) = &args.against {
        server.ask(Method::GET, &format!("{runs}/{other}"), None).await?;
    }
    let started = server.ask(Method::POST, &runs, Some(&body)).await?;
    let id = started["id"].as_str().ok_or("the service answers with something else than a run")?.to_owned();
    let run = wait(&server, &format!("{runs}/{id}")).await?;
    let against = match &args.against {
        Some(other) => Some(server.ask(Method::GET, &format!("{runs}/{id}/compare/{other}"), None).await?),
        None => None,
    };
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(&json!({"run": run, "comparison": against}))?)
    } else {
        in_words(&run, against.as_ref())?
    };
    std::io::stdout().write_all(text.as_bytes())?;
    match run["state"].as_str() {
        Some("succeeded") => below(&args.least, args.allow_failed, &run),
        Some("failed") => {
            Err(format!("the run failed: {}", run["error"].as_str().unwrap_or_default()).into())
        }
        _ => Err("the run was cancelled".into()),
    }
}

/// Fails when something has to be enough that a run would not measure.
fn check(args: &EvalArgs, evaluation: &Value) -> Result<(), FatalError> {
    let obstacle = |threshold: &Threshold| {
        let why = threshold.obstacle(args, evaluation)?;
        Some(format!("{} {why}", threshold.name()))
    };
    let obstacles: Vec<String> = args.least.iter().filter_map(obstacle).collect();
    if obstacles.is_empty() { Ok(()) } else { Err(obstacles.join("; ").into()) }
}

/// Fails when something is below what is enough, or more cases failed than may.
fn below(least: &[Threshold], most_failed: u64, run: &Value) -> Result<(), FatalError> {
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

async fn wait(server: &ServiceClient, path: &str) -> Result<Value, FatalError> {
    let mut unanswered = 0;
    loop {
        match server.ask(Method::GET, path, None).await {
            Ok(run) if !matches!(run["state"].as_str(), Some("queued" | "running")) => return Ok(run),
            Ok(_) => unanswered = 0,
            Err(failure) => {
                unanswered += 1;
                if failure.is_final || unanswered > MOST_UNANSWERED {
                    return Err(failure.into());
                }
            }
        }
        tokio::time::sleep(ASKED_EVERY).await;
    }
}

/// Asks a service.
struct ServiceClient {
    client: Client,
    base: Url,
    token: String,
}

/// Why the service does not do something.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct ServiceRefusal {
    what: String,
    /// Whether it would say the same again.
    is_final: bool,
}

impl ServiceClient {
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ServiceRefusal> {
        let url = format!("{}/api/v1/{path}", self.base.as_str().trim_end_matches('/'));
        let failed = |what: String, is_final: bool| ServiceRefusal { what, is_final };
        let mut request = self.client.request(method, &url).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer =
            request.send().await.map_err(|error| failed(format!("{url} does not answer: {error}"), false))?;
        let status = answer.status();
        let body: Value = answer.json().await.unwrap_or_default();
        if status.is_success() {
            return Ok(body["data"].clone());
        }
        let is_final = !(status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS);
        let said = body["error"]["message"].as_str().unwrap_or_default();
        let fields = body["error"]["fields"].as_array().into_iter().flatten();
        let text = |field: &Value, key: &str| field[key].as_str().unwrap_or_default().to_owned();
        let fields: Vec<String> =
            fields.map(|field| format!(" {}: {}.", text(field, "path"), text(field, "message"))).collect();
        let fields = fields.concat();
        Err(failed(format!("{url} answers {status}: {said}{fields}"), is_final))
    }
}

fn cases(count: u64) -> String {
    format!("{count} {}", if count == 1 { "case" } else { "cases" })
}

/// The members of an object as these names have them; others behind them.
fn ordered<'v>(object: &'v Value, names: &[&str]) -> Vec<(&'v str, &'v Value)> {
    let members = object.as_object().into_iter().flatten();
    let mut members: Vec<(&str, &Value)> = members.map(|(name, value)| (name.as_str(), value)).collect();
    members.sort_by_key(|(name, _)| names.iter().position(|known| known == name).unwrap_or(usize::MAX));
    members
}

fn in_words(run: &Value, against: Option<&Value>) -> Result<String, FatalError> {
    let mut text = String::new();
    let metrics = &run["metrics"];
    let mut table = |title: &str, estimates: &Value, names: &[&str]| -> Result<(), FatalError> {
        for (name, estimate) in ordered(estimates, names) {
            let number = |key: &str| estimate[key].as_f64().unwrap_or_default();
            let (value, low, high) = (number("value"), number("low"), number("high"));
            writeln!(
                text,
                "{title:<8} {name:<10} {value:.4}  ({low:.4} to {high:.4}, {})",
                cases(estimate["cases"].as_u64().unwrap_or_default())
            )?;
        }
        Ok(())
    };
    let modes: Vec<&str> = run["modes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (mode, estimates) in ordered(&metrics["retrieval"], &modes) {
        table(mode, estimates, &RETRIEVAL_METRICS)?;
    }
    table("answers", &metrics["answers"], &ANSWER_METRICS)?;
    if let Some(effort) = metrics.get("effort").filter(|effort| effort.is_object()) {
        // Not every model has a price that is known.
        let cost = effort["cost"].as_f64().map(|cost| format!(", cost {cost}")).unwrap_or_default();
        writeln!(
            text,
            "answers  in {} ms (95 %: {} ms), {} tokens read, {} written{cost}",
            effort["p50Ms"], effort["p95Ms"], effort["inputTokens"], effort["outputTokens"]
        )?;
    }
    for (key, what) in
        [("lost", "something that answers is not in the documents any more"), ("failed", "something failed")]
    {
        if let Some(count @ 1..) = metrics[key].as_u64() {
            writeln!(text, "{} of which {what}", cases(count))?;
        }
    }
    if let Some(against) = against {
        for compared in against["metrics"].as_array().into_iter().flatten() {
            let number = |key: &str| compared[key].as_f64().unwrap_or_default();
            let (difference, low, high) = (number("difference"), number("low"), number("high"));
            writeln!(
                text,
                "against  {:<8} {:<10} {difference:+.4}  ({low:+.4} to {high:+.4}), {} won, {} lost",
                compared["mode"].as_str().unwrap_or("answers"),
                compared["metric"].as_str().unwrap_or_default(),
                compared["won"],
                compared["lost"],
            )?;
        }
        let is_lost = |case: &&Value| {
            let differences = case["differences"].as_array();
            differences.into_iter().flatten().any(|one| one["value"].as_f64() < one["other"].as_f64())
        };
        for case in against["cases"].as_array().into_iter().flatten().filter(is_lost).take(NAMED) {
            writeln!(text, "lost     {}", case["this"]["question"].as_str().unwrap_or_default())?;
        }
    }
    writeln!(text, "run      {}", run["id"].as_str().unwrap_or_default())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
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
        let told = |more: &[&str], evaluation: &Value| {
            let line = [&["eval", "--set", "x"], more].concat();
            let args = <Command as clap::Parser>::parse_from(line).eval;
            check(&args, evaluation).err().map(|error| error.to_string()).unwrap_or_default()
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
    }

    #[test]
    fn what_was_measured_is_told_in_the_order_in_which_one_reads_it() {
        let estimate = |cases: u64| json!({"value": 1.0, "low": 1.0, "high": 1.0, "cases": cases});
        let run = json!({
            "id": "r",
            "modes": ["hybrid", "dense"],
            "metrics": {
                "retrieval": {
                    "dense": {"mrr": estimate(1)},
                    "hybrid": {"hit@1": estimate(2), "hit@10": estimate(2), "hit@5": estimate(2)},
                },
                "answers": {"cited": estimate(1), "verified": estimate(1)},
                "effort": {"p50Ms": 1, "p95Ms": 2, "inputTokens": 3, "outputTokens": 4, "cost": null},
                "lost": 0,
                "failed": 1,
            },
        });
        let text = in_words(&run, None).unwrap();
        let second = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().take(6).map(second).collect();
        let expected = [
            "hybrid hit@1",
            "hybrid hit@5",
            "hybrid hit@10",
            "dense mrr",
            "answers verified",
            "answers cited",
        ];
        assert_eq!(lines, expected);
        assert!(text.contains("1.0000, 1 case)") && text.contains("1.0000, 2 cases)"), "{text}");
        assert!(!text.contains("cost") && text.contains("1 case of which something failed"), "{text}");
    }
}
