//! What there has to be before the load, and what is taken away after it.

use std::{sync::Arc, time::Duration};

use reqwest::Method;
use serde_json::json;
use tokio::{sync::watch as flag, time::Instant};
use uuid::Uuid;

use super::{MixArgs, MixError, corpus::Corpus, user::LoadUser};
use crate::{
    api::{ApiClient, RequestProblem, envelope, id_of},
    facts::DocumentLibrary,
    out::say,
    stats::{StatsRecorder, rate},
};

/// Documents that are sent at once before the load.
const SEEDERS: usize = 8;
/// A service in which no document becomes searchable for so long will not do it any more.
const STALLED: Duration = Duration::from_mins(2);

/// A client of the account that the load is put on.
pub(super) async fn sign_in(args: &MixArgs) -> Result<ApiClient, MixError> {
    let api = ApiClient::new(&args.url).map_err(MixError::setup("no HTTP client"))?;
    let live = envelope(api.request(Method::GET, "/health/live")).await;
    live.map_err(MixError::setup("no Lectern answers at --url"))?;
    if let Some(token) = &args.token {
        let api = api.with_token(token);
        api.get("/users/me").await.map_err(MixError::setup("--token is not accepted"))?;
        return Ok(api);
    }
    match (&args.email, &args.password) {
        (Some(email), Some(password)) => {
            api.enter(email, password).await.map_err(MixError::setup("the account cannot be used"))
        }
        _ => {
            let email = format!("load-{}@example.com", Uuid::now_v7().simple());
            // Nobody needs it again.
            let entered = api.sign_up(&email, &Uuid::now_v7().simple().to_string()).await;
            entered.map_err(MixError::setup(
                "no account can be made; start the service with LECTERN_SIGN_UP=open, or give --email and --password",
            ))
        }
    }
}

/// Makes the agent, and all that the tasks share.
pub(super) async fn prepare(
    args: &MixArgs,
    api: ApiClient,
    given_up: flag::Receiver<bool>,
) -> Result<LoadUser, MixError> {
    // Several runs may use the same account, one after the other or at once.
    let id = Uuid::now_v7().simple().to_string();
    let run = format!("Load {}", &id[id.len() - 8..]);
    let agent = json!({
        "name": run, "type": "CHATVENDOR", "llm": {"provider": "extractive", "model": "extractive"},
    });
    let agent = api.post("/agents", &agent).await.and_then(|agent| id_of(&agent));
    let user = LoadUser {
        api,
        library: DocumentLibrary::new(&run, args.seed),
        corpus: Corpus::default(),
        recorder: StatsRecorder::default(),
        agent: agent.map_err(MixError::setup("no agent can be made"))?,
        run,
        given_up,
    };
    Ok(user)
}

/// Sends the documents that the load begins with, as fast as the service takes them.
pub(super) async fn seed(args: &MixArgs, user: &Arc<LoadUser>) -> Result<(), MixError> {
    say(&format!("{} documents are added before the load", args.corpus))?;
    let began = Instant::now();
    let corpus = args.corpus;
    let seeders = (0..SEEDERS).map(|seeder| async move {
        for _ in (seeder..corpus).step_by(SEEDERS) {
            // One that does not come through ends the run; the others would only say the same.
            if user.recorder.errors() == 0 {
                user.add(Instant::now()).await;
            }
        }
    });
    tokio::select! {
        _ = futures::future::join_all(seeders) => {}
        () = stalled(&user.corpus) => {
            return Err(MixError::Documents(format!(
                "none became searchable for {}; is there a worker?",
                humantime::format_duration(STALLED)
            )));
        }
    }
    if let Some(problem) = user.recorder.examples().into_iter().next() {
        return Err(MixError::Documents(problem));
    }
    let lasted = began.elapsed();
    let (seconds, rate) = (lasted.as_secs_f64(), rate(user.corpus.len() as u64, lasted));
    say(&format!("they are searchable after {seconds:.1} s, {rate:.0} a second"))?;
    user.recorder.forget();
    Ok(())
}

/// Returns when no document has become searchable for a while.
async fn stalled(corpus: &Corpus) {
    let (mut known, mut changed) = (corpus.len(), Instant::now());
    while changed.elapsed() < STALLED {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if corpus.len() != known {
            (known, changed) = (corpus.len(), Instant::now());
        }
    }
}

/// Deletes what this run has made. The account stays: accounts cannot be deleted.
pub(super) async fn clean_up(user: &LoadUser) -> Result<(), RequestProblem> {
    let delete = |path: String| async move { user.api.call(Method::DELETE, &path, None).await.map(drop) };
    delete(format!("/agents/{}", user.agent)).await?;
    for document in user.corpus.all() {
        match delete(format!("/documents/{}", document.id)).await {
            Err(problem) if problem.code != "not_found" => return Err(problem),
            _ => {}
        }
    }
    Ok(())
}
