//! `lectern eval`: runs an evaluation of a service, over its HTTP interface, and fails below a threshold. For checks that run by themselves.

mod threshold;

use std::{fmt::Write as _, io::Write as _, time::Duration};

use clap::Args;
use lectern_api::{ANSWER_METRICS, RETRIEVAL_METRICS};
use lectern_runtime::process::{FatalError, local_address};
use lectern_shared::{
    address,
    config::{Settings, http_url},
    egress,
};
use reqwest::{Client, Method, StatusCode};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use url::Url;

use self::threshold::{RunPreview, Threshold, below, check, left_out};

/// The longest that a connection, and a silence of the service, may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_mins(1);
/// How often it is asked how far a run is.
const ASKED_EVERY: Duration = Duration::from_millis(500);
/// How often in a row the service may not answer: it may be restarting.
const MOST_UNANSWERED: u32 = 60;
/// Cases that are named which a run has lost against another one.
const NAMED: usize = 20;
/// Cases that are looked at at a time.
const CASES: usize = 200;
/// What a service says that has nothing to search by meaning with, and will not have by itself.
const NO_MODEL: &str = "no_embedding_model";

/// What to run, and what is enough.
#[derive(Args)]
pub(crate) struct EvalArgs {
    /// The id of the evaluation.
    #[arg(long)]
    set: String,
    /// The service, such as `https://lectern.example.com`; the one on this machine when left out. The API token that it is asked with is
    /// the setting `LECTERN_TOKEN`.
    #[arg(long, value_parser = http_url)]
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
    /// The least that is enough, such as `hit@5=0.8`, `dense.ndcg@10=0.5` or `verified=0.95`. Of searching there are hit@1, hit@5, hit@10,
    /// mrr, ndcg@10 and recall@10, with hybrid, dense or lexical and a point before them or without; of answers verified, cited, declined
    /// and right. May be given several times.
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
    check(args, &preview(&server, args, &evaluation).await?)?;
    if let Some(other) = &args.against {
        server.ask(Method::GET, &format!("{runs}/{other}"), None).await?;
    }
    let started = server.ask(Method::POST, &runs, Some(&body)).await?;
    let id = started["id"].as_str().ok_or("the service answers with something else than a run")?.to_owned();
    if let Some(why) = left_out(&args.least, &started) {
        server.ask(Method::POST, &format!("{runs}/{id}/cancel"), None).await?;
        return Err(format!("{why}; the run was cancelled").into());
    }
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

/// What is known of a run before it begins. The service is asked no more than what thresholds depend on.
async fn preview(
    server: &ServiceClient,
    args: &EvalArgs,
    evaluation: &str,
) -> Result<RunPreview, ServiceRefusal> {
    let told = server.ask(Method::GET, evaluation, None).await?;
    let is_answered =
        !args.least.iter().any(Threshold::needs_answered) || is_answered(server, evaluation).await?;
    let has_model =
        !args.least.iter().any(|threshold| threshold.needs_model(args)) || has_model(server).await;
    Ok(RunPreview { evaluation: told, is_answered, has_model })
}

/// Whether something answers one of the questions of an evaluation. One without cases does not run, which is told when it is to.
async fn is_answered(server: &ServiceClient, evaluation: &str) -> Result<bool, ServiceRefusal> {
    let first = format!("{evaluation}/cases?limit={CASES}");
    let (mut path, mut is_empty) = (first.clone(), true);
    loop {
        let page = server.answer(Method::GET, &path, None).await?;
        for case in page["data"].as_array().into_iter().flatten() {
            if case["expect"].is_array() {
                return Ok(true);
            }
            is_empty = false;
        }
        match page["nextCursor"].as_str() {
            Some(next) => path = format!("{first}&cursor={next}"),
            None => return Ok(is_empty),
        }
    }
}

/// Whether a service has an embedding model, be it there already or not. It is asked to search in nothing, which costs nothing.
async fn has_model(server: &ServiceClient) -> bool {
    let nothing = json!({"query": "?", "documentIds": [], "mode": "dense"});
    let found = server.ask(Method::POST, "search", Some(&nothing)).await;
    !found.is_err_and(|refusal| refusal.code == NO_MODEL)
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
    /// What the service calls it; nothing when it does not answer.
    code: String,
    /// Whether it would say the same again.
    is_final: bool,
}

impl ServiceClient {
    /// What the service answers with.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ServiceRefusal> {
        let answer = self.answer(method, path, body).await?;
        Ok(answer["data"].clone())
    }

    /// All of an answer: of a list, where it goes on, too.
    async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ServiceRefusal> {
        let url = format!("{}/api/v1/{path}", self.base.as_str().trim_end_matches('/'));
        let shown = Url::parse(&url).as_ref().map_or_else(|_| path.to_owned(), address::shown);
        let mut request = self.client.request(method, &url).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(|error| ServiceRefusal {
            what: format!("{shown} does not answer: {}", egress::why_unanswered(&error)),
            code: String::new(),
            is_final: false,
        })?;
        let status = answer.status();
        let body: Value = answer.json().await.unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let text = |field: &Value, key: &str| field[key].as_str().unwrap_or_default().to_owned();
        let (said, code) = (text(&body["error"], "message"), text(&body["error"], "code"));
        let fields = body["error"]["fields"].as_array().into_iter().flatten();
        let fields: Vec<String> =
            fields.map(|field| format!(" {}: {}.", text(field, "path"), text(field, "message"))).collect();
        let fields = fields.concat();
        let is_final = !(status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS);
        Err(ServiceRefusal { what: format!("{shown} answers {status}: {said}{fields}"), code, is_final })
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
        [("lost", "something that answers is not in the documents"), ("failed", "something failed")]
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
