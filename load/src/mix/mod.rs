//! `lectern-load mix`: documents, searches and questions at set rates against a running service, every answer checked.

mod args;
mod corpus;
mod drive;
mod report;
mod setup;
mod user;
mod watch;

use std::{sync::Arc, time::Duration};

use reqwest::Method;
use tokio::{sync::watch as flag, time::Instant};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use url::Url;

use self::{
    drive::{LoadPlan, LoadStream, drive},
    report::MixReport,
    setup::{clean_up, prepare, seed, sign_in},
    user::LoadUser,
    watch::{JobCounts, ProcessWatch},
};
use crate::{
    api::{ApiClient, RequestProblem},
    out::say,
    stop,
    units::mebibytes,
};

pub(crate) use args::MixArgs;

/// A service that does not answer for so long is gone.
const GONE: Duration = Duration::from_secs(10);

/// Why a run could not be made, or not be ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MixError {
    /// Arguments that do not fit together.
    #[error("{0}")]
    Arguments(&'static str),
    /// What the load needs could not be made.
    #[error("{what}: {problem}")]
    Setup {
        /// What was to be done.
        what: &'static str,
        /// What the service said.
        problem: RequestProblem,
    },
    /// The documents to begin with did not become searchable.
    #[error("the documents to begin with cannot be added: {0}")]
    Documents(String),
    /// The service went away before the load.
    #[error("the service at {0} does not answer any more")]
    Gone(Url),
    /// Somebody asked for it.
    #[error("stopped before the load")]
    Stopped,
    /// Standard output is closed.
    #[error("the report cannot be written: {0}")]
    Output(#[from] std::io::Error),
}

impl MixError {
    fn setup(what: &'static str) -> impl Fn(RequestProblem) -> Self {
        move |problem| Self::Setup { what, problem }
    }
}

/// Why the load ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadEnding {
    /// Its time was over.
    Complete,
    /// Somebody asked for it.
    Interrupted,
    /// The service does not answer any more.
    Gone,
}

/// Runs the load; whether the service passed.
pub(crate) async fn run(args: MixArgs) -> Result<bool, MixError> {
    if args.interval.is_zero() || args.duration.is_zero() || args.in_flight == 0 {
        return Err(MixError::Arguments("--duration, --interval and --in-flight must be more than 0"));
    }
    if args.warm_up() >= args.duration {
        return Err(MixError::Arguments("--warm-up must be shorter than --duration"));
    }
    let api = sign_in(&args).await?;
    let (give_up, given_up) = flag::channel(false);
    let user = Arc::new(prepare(&args, api, given_up).await?);
    let outcome = load(&args, &user, &give_up).await;
    if !args.keep && !matches!(outcome, Ok((_, LoadEnding::Gone)) | Err(MixError::Gone(_))) {
        say("cleaning up")?;
        if let Err(problem) = clean_up(&user).await {
            say(&format!("not everything that was made could be deleted: {problem}"))?;
        }
    }
    outcome.map(|(passed, _)| passed)
}

/// Puts the load on, and prints the report; whether the service has passed, and why the load ended.
async fn load(
    args: &MixArgs,
    user: &Arc<LoadUser>,
    give_up: &flag::Sender<bool>,
) -> Result<(bool, LoadEnding), MixError> {
    let requested = stop::requested()?;
    tokio::select! {
        seeded = seed(args, user) => seeded?,
        () = stop::wait(requested.clone(), 1) => return Err(MixError::Stopped),
        () = gone(&user.api) => return Err(MixError::Gone(args.url.clone())),
    }
    let mut metrics = args.metrics.clone();
    if metrics.is_empty() {
        let own = format!("{}/metrics", args.url.as_str().trim_end_matches('/'));
        metrics.extend(Url::parse(&own));
    }
    let watch = ProcessWatch::new(&user.api, metrics);
    let dead_before = watch.jobs().await.map_err(MixError::setup("the jobs cannot be counted"))?.dead();
    let begin = Instant::now();
    // So often that an interval has a median worth its name.
    let sampling = AbortOnDropHandle::new(tokio::spawn({
        let (watch, pause) = (Arc::clone(&watch), (args.interval / 10).max(Duration::from_millis(100)));
        async move { watch.sample(begin, pause).await }
    }));
    let plan = LoadPlan {
        begin,
        duration: args.duration,
        in_flight: args.in_flight,
        seed: args.seed,
        tasks: TaskTracker::new(),
    };
    say(&format!(
        "load for {}: documents {}, searches {}, questions {}, lists {}, changes {}",
        humantime::format_duration(args.duration),
        args.documents,
        args.searches,
        args.questions,
        args.lists,
        args.patches
    ))?;
    let drivers = drivers(args, user, &plan);
    let ending = tokio::select! {
        printed = progress(args, user, &watch, plan.begin) => { printed?; LoadEnding::Complete }
        () = stop::wait(requested.clone(), 1) => LoadEnding::Interrupted,
        () = gone(&user.api) => LoadEnding::Gone,
    };
    let lasted = plan.begin.elapsed();
    drop(sampling);
    drop(drivers);
    plan.tasks.close();
    let mut jobs = None;
    if ending != LoadEnding::Gone {
        say(&format!(
            "the load is over; the service has {} to finish",
            humantime::format_duration(args.drain)
        ))?;
        let deadline = Instant::now() + args.drain;
        let drained = async {
            let _ = tokio::time::timeout_at(deadline, plan.tasks.wait()).await;
            until_idle(&watch, deadline).await
        };
        tokio::select! {
            left = drained => jobs = left,
            () = gone(&user.api) => {}
            () = stop::wait(requested.clone(), 2) => {}
        }
    }
    let unfinished = user.corpus.unfinished();
    give_up.send_replace(true);
    // What is under way now ends by itself, or with its time limit.
    let _ = tokio::time::timeout(Duration::from_secs(5), plan.tasks.wait()).await;
    let report = MixReport { args, user, watch: &watch, lasted, ending, unfinished, jobs, dead_before };
    Ok((report.print()?, ending))
}

/// One task for each kind of request. They end when they are dropped.
fn drivers(args: &MixArgs, user: &Arc<LoadUser>, plan: &LoadPlan) -> Vec<AbortOnDropHandle<()>> {
    let streams = [
        (LoadStream::Documents, args.documents),
        (LoadStream::Questions, args.questions),
        (LoadStream::Searches, args.searches),
        (LoadStream::Lists, args.lists),
        (LoadStream::Patches, args.patches),
        // As many as come, or the corpus would grow.
        (LoadStream::Deletes(args.corpus), args.documents),
    ];
    let any = streams.into_iter().filter(|(_, rate)| rate.is_any());
    let start = |(stream, rate)| tokio::spawn(drive(plan.clone(), Arc::clone(user), stream, rate));
    any.map(start).map(AbortOnDropHandle::new).collect()
}

/// Prints a line an interval until the load has lasted as long as it should.
async fn progress(
    args: &MixArgs,
    user: &LoadUser,
    watch: &ProcessWatch,
    begin: Instant,
) -> Result<(), MixError> {
    let mut from = begin;
    loop {
        let until = (from + args.interval).min(begin + args.duration);
        tokio::time::sleep_until(until).await;
        let now = Instant::now();
        let line = user.recorder.interval(now - from);
        let held: Vec<String> = watch
            .courses()
            .iter()
            .map(|(_, course)| {
                let median = course.median(from - begin, now - begin);
                median.map_or_else(|| "unknown".to_owned(), mebibytes)
            })
            .collect();
        let jobs = watch.jobs().await.map_or_else(|problem| problem.to_string(), |jobs| jobs.to_string());
        say(&format!(
            "{:>7} {line} | memory {} | {} documents | jobs: {jobs}",
            humantime::format_duration(Duration::from_secs((now - begin).as_secs())).to_string(),
            held.join(" + "),
            user.corpus.len(),
        ))?;
        from = now;
        if now >= begin + args.duration {
            return Ok(());
        }
    }
}

/// Returns when the service has not answered for a while.
async fn gone(api: &ApiClient) {
    let mut heard = Instant::now();
    while heard.elapsed() < GONE {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asked = api.request(Method::GET, "/health/live").timeout(GONE / 2).send();
        if asked.await.is_ok() {
            heard = Instant::now();
        }
    }
}

/// Waits until no job is left, at most until `deadline`; the jobs as they are then.
async fn until_idle(watch: &ProcessWatch, deadline: Instant) -> Option<JobCounts> {
    loop {
        let jobs = watch.jobs().await.ok();
        if Instant::now() >= deadline || jobs.as_ref().is_some_and(|jobs| jobs.left() == 0) {
            return jobs;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
