//! More and more workspaces, each with as many documents as the others.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    GrowthClock, NEW,
    args::GrowArgs,
    feed::{self, DocumentPage, by_clients},
    figure::{GrowFigure, GrowthTable},
    plan,
    service::GrownService,
};
use crate::{
    api::{ApiClient, RequestProblem, id_of},
    bench::{
        BenchError, CLIENTS, RequestPlan, SMALL, ServiceMode, both, grouped, median, millis, timed,
        until_idle,
    },
    facts::DocumentLibrary,
    judge,
    random::SeededRandom,
    stats::{LatencyHistogram, rate},
};

/// Workspaces that one account may own.
const OWNED: usize = 100;
/// Documents on a page when all are read.
const PAGE: usize = 200;
/// Documents on a page that is timed.
const SHORT_PAGE: usize = 50;

/// The growth of the number of workspaces in one mode.
pub(super) struct ManyGrowth<'a> {
    pub(super) args: &'a GrowArgs,
    pub(super) mode: &'a ServiceMode<'a>,
}

impl ManyGrowth<'_> {
    /// Measures it at every step.
    pub(super) async fn run(&self, table: &mut GrowthTable) -> Result<(), BenchError> {
        let mut service = GrownService::start(self.mode).await?;
        let mut tenants = WorkspaceCrowd::new(service.api()?, self.args);
        let clock = GrowthClock::start(self.args);
        for (place, workspaces) in self.args.workspaces.all().iter().enumerate() {
            table.begin(*workspaces);
            self.grow(&mut tenants, usize::try_from(*workspaces).unwrap_or(usize::MAX), table).await?;
            service.memory(GrowFigure::MemoryIngested, table);
            let sample = tenants.sample(self.args.requests, *workspaces);
            let search = async |api: &_| tenants.first_search(api, sample.first).await;
            service = service.restarted(self.args.starts, table, search).await?;
            self.ask(&tenants, &sample, table).await?;
            self.add(&mut tenants, &sample, table).await?;
            service.memory(GrowFigure::MemoryAsked, table);
            service.disk(table).await?;
            if !clock.allows(place, &self.args.workspaces, table) {
                break;
            }
        }
        table.remark(format!(
            "{} documents of one passage in each workspace, by {CLIENTS} clients that add to all in turn; {OWNED} \
             workspaces an account; at most {} requests of each kind, one at a time, each in another workspace",
            self.args.each, self.args.requests
        ));
        service.remove().await
    }

    /// Makes workspaces until there are so many, and fills them.
    async fn grow(
        &self,
        tenants: &mut WorkspaceCrowd,
        until: usize,
        table: &mut GrowthTable,
    ) -> Result<(), BenchError> {
        table.note("workspaces");
        let made = tenants.open(until, table).await?;
        table.add(GrowFigure::Opening, format!("{made:.0} workspaces/s"));
        table.note("documents");
        let ingested = tenants.fill(table).await?;
        table.add(GrowFigure::Ingestion, format!("{ingested:.0} documents/s"));
        table.add(GrowFigure::Held, format!("{} documents", grouped(tenants.documents())));
        Ok(())
    }

    async fn ask(
        &self,
        tenants: &WorkspaceCrowd,
        sample: &WorkspaceSample,
        table: &mut GrowthTable,
    ) -> Result<(), BenchError> {
        table.note("requests");
        // Nothing before: the first request in a workspace is what is measured.
        let requests = sample.others.len() as u64;
        let plan = RequestPlan { warm_up: 0, requests, ..plan(self.args) };
        table.add(GrowFigure::SearchCold, both(&tenants.search(plan, &sample.others).await?, 0.0));
        table.add(GrowFigure::SearchWarm, both(&tenants.search(plan, &sample.others).await?, 0.0));
        table.add(GrowFigure::List, both(&tenants.list(plan, &sample.others).await?, 0.0));
        Ok(())
    }

    /// Adds documents one after the other, each to another workspace if there are enough.
    async fn add(
        &self,
        tenants: &mut WorkspaceCrowd,
        sample: &WorkspaceSample,
        table: &mut GrowthTable,
    ) -> Result<(), BenchError> {
        let (mut searchable, mut found) = (Vec::new(), Vec::new());
        for workspace in sample.others.iter().cycle().take(NEW) {
            let (until_searchable, search) = tenants.add_one(*workspace).await?;
            searchable.push(until_searchable);
            found.push(search);
        }
        table.add(GrowFigure::NewDocument, millis(median(&mut searchable)));
        table.add(GrowFigure::NewFound, millis(median(&mut found)));
        Ok(())
    }
}

/// Workspaces by their places, at one step.
struct WorkspaceSample {
    /// The one that is searched first after each start.
    first: usize,
    /// Those that are asked then, each once.
    others: Vec<usize>,
}

/// Workspaces, and the accounts that own them.
struct WorkspaceCrowd {
    /// A client that is not signed in.
    service: ApiClient,
    accounts: Vec<ApiClient>,
    /// Their ids, of each account [`OWNED`] one after the other.
    workspaces: Vec<String>,
    /// How many of them have their documents.
    filled: usize,
    /// Documents that each is filled with.
    each: u64,
    /// Workspaces of the documents that were added besides, in the order of their numbers.
    besides: Vec<usize>,
    /// The number of the first of these.
    first_besides: u64,
    library: DocumentLibrary,
}

impl WorkspaceCrowd {
    fn new(service: &ApiClient, args: &GrowArgs) -> Self {
        let most = args.workspaces.all().last().copied().unwrap_or(0);
        Self {
            service: service.clone(),
            accounts: Vec::new(),
            workspaces: Vec::new(),
            filled: 0,
            each: args.each,
            besides: Vec::new(),
            first_besides: most * args.each,
            library: DocumentLibrary::new("Many", 1),
        }
    }

    fn documents(&self) -> u64 {
        self.filled as u64 * self.each + self.besides.len() as u64
    }

    /// Different workspaces, in any order.
    fn sample(&self, requests: u64, seed: u64) -> WorkspaceSample {
        let mut random = SeededRandom::new(seed);
        let mut others: Vec<usize> = (0..self.workspaces.len()).collect();
        for place in (1..others.len()).rev() {
            others.swap(place, random.below(place + 1));
        }
        let first = others.pop().unwrap_or(0);
        others.truncate(usize::try_from(requests).unwrap_or(usize::MAX));
        WorkspaceSample { first, others }
    }

    /// A client in a workspace.
    fn client(&self, workspace: usize) -> ApiClient {
        let account = self.accounts[workspace / OWNED].moved_to(&self.service);
        account.with_workspace(&self.workspaces[workspace])
    }

    /// Makes workspaces until there are so many, with accounts for them; how many were made in a second.
    async fn open(&mut self, until: usize, table: &GrowthTable) -> Result<f64, RequestProblem> {
        // One after the other: only so many passwords are hashed at once, and further sign-ups refused.
        while self.accounts.len() * OWNED < until {
            let email = format!("grow-{}@example.com", self.accounts.len());
            self.accounts.push(self.service.sign_up(&email, "correct horse battery staple").await?);
        }
        let from = self.workspaces.len();
        let count = until.saturating_sub(from) as u64;
        let began = Instant::now();
        let ids = by_clients(count, table, async |number| {
            let place = from + usize::try_from(number).unwrap_or(0);
            let account = self.accounts[place / OWNED].moved_to(&self.service);
            id_of(&account.post("/workspaces", &json!({"name": format!("Workspace {place}")})).await?)
        })
        .await?;
        let lasted = began.elapsed();
        self.workspaces.extend(ids);
        Ok(rate(count, lasted))
    }

    /// Fills the workspaces that are empty, all of them in turn; how many documents became searchable in a second.
    async fn fill(&mut self, table: &GrowthTable) -> Result<f64, RequestProblem> {
        let from = self.filled;
        let new = (self.workspaces.len() - from) as u64;
        let count = new * self.each;
        let began = Instant::now();
        by_clients(count, table, async |number| {
            let workspace = from + usize::try_from(number % new).unwrap_or(0);
            self.send(workspace, self.first_of(workspace) + number / new).await.map(drop)
        })
        .await?;
        table.note("waiting until all are ingested");
        until_idle(&self.service).await?;
        let lasted = began.elapsed();
        table.note("checking them");
        by_clients(new, table, async |number| self.check(from + usize::try_from(number).unwrap_or(0)).await)
            .await?;
        self.filled = self.workspaces.len();
        Ok(rate(count, lasted))
    }

    /// The number of the first document of a workspace.
    fn first_of(&self, workspace: usize) -> u64 {
        workspace as u64 * self.each
    }

    async fn send(&self, workspace: usize, number: u64) -> Result<String, RequestProblem> {
        let content = self.library.text_of_size(number, SMALL);
        feed::add(&self.client(workspace), &self.library.name(number), &content, &json!({})).await
    }

    /// A workspace that was just filled has its documents, and no others.
    async fn check(&self, workspace: usize) -> Result<(), RequestProblem> {
        let client = self.client(workspace);
        let (mut count, mut cursor) = (0, None::<String>);
        loop {
            let page = DocumentPage::read(&client, PAGE, cursor.as_deref()).await?;
            count += page.documents.len() as u64;
            self.only_of(workspace, &page.documents, "name")?;
            let Some(next) = page.next else { break };
            cursor = Some(next);
        }
        if count == self.each {
            return Ok(());
        }
        Err(RequestProblem::new("lost", format!("{count} documents in a workspace of {}", self.each)))
    }

    /// The workspace that a document was put into.
    fn owner_of(&self, number: u64) -> Option<usize> {
        match number.checked_sub(self.first_besides) {
            Some(besides) => self.besides.get(usize::try_from(besides).ok()?).copied(),
            None => usize::try_from(number / self.each).ok(),
        }
    }

    /// All of these are of documents of this workspace; `field` is where they have the document's name.
    fn only_of(&self, workspace: usize, items: &[Value], field: &str) -> Result<(), RequestProblem> {
        let is_own = |item: &&Value| {
            let number = item[field].as_str().and_then(|name| self.library.number(name));
            number.and_then(|number| self.owner_of(number)) == Some(workspace)
        };
        match items.iter().find(|item| !is_own(item)) {
            None => Ok(()),
            Some(other) => Err(RequestProblem::new("document_of_others", other[field].to_string())),
        }
    }

    /// POST /search, one in each of these workspaces.
    async fn search(&self, plan: RequestPlan, workspaces: &[usize]) -> Result<LatencyHistogram, BenchError> {
        let mut random = SeededRandom::new(2);
        timed(plan, async |request| {
            let workspace = workspaces[usize::try_from(request).unwrap_or(0)];
            let document = random.below(usize::try_from(self.each).unwrap_or(1)) as u64;
            self.search_for(workspace, self.first_of(workspace) + document).await
        })
        .await
    }

    /// GET of the newest documents, one in each of these workspaces.
    async fn list(&self, plan: RequestPlan, workspaces: &[usize]) -> Result<LatencyHistogram, BenchError> {
        timed(plan, async |request| {
            let workspace = workspaces[usize::try_from(request).unwrap_or(0)];
            let page = DocumentPage::read(&self.client(workspace), SHORT_PAGE, None).await?;
            self.only_of(workspace, &page.documents, "name").map(|()| page.took)
        })
        .await
    }

    /// The first search after a start, of the service at `api`, where requests go from now on.
    async fn first_search(&mut self, api: &ApiClient, workspace: usize) -> Result<Duration, RequestProblem> {
        self.service = api.clone();
        self.search_for(workspace, self.first_of(workspace)).await
    }

    /// Adds one document. The time from its POST until it was ingested, and that of the search which then finds it.
    async fn add_one(&mut self, workspace: usize) -> Result<(Duration, Duration), RequestProblem> {
        let number = self.first_besides + self.besides.len() as u64;
        self.besides.push(workspace);
        let began = Instant::now();
        let id = self.send(workspace, number).await?;
        feed::until_searchable(&self.client(workspace), &id).await?;
        Ok((began.elapsed(), self.search_for(workspace, number).await?))
    }

    /// Searches for a fact of a document, which has to be found, and nothing of other workspaces.
    async fn search_for(&self, workspace: usize, number: u64) -> Result<Duration, RequestProblem> {
        let client = self.client(workspace);
        let fact = self.library.fact(number, 0);
        let body = json!({"query": fact.question, "mode": "lexical"});
        let began = Instant::now();
        let passages = client.post("/search", &body).await?;
        let time = began.elapsed();
        self.only_of(workspace, judge::array(&passages)?, "documentName")?;
        judge::found(&passages, &fact).map(|()| time)
    }
}
