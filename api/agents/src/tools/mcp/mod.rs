//! `MCP`: the tools of a server of the Model Context Protocol, one function each. The server is at an address, or it is a
//! program of this machine that the operator has named.
//!
//! Nothing that a server says is believed but what its tools answer: its list is checked entry by entry, what it asks of its
//! client is refused, and it is never asked twice for the same call.

mod catalog;
mod header;
mod http_channel;
mod message;
mod program;
mod program_link;
mod raw;
mod result;
mod schema;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lectern_shared::{compute::ComputePool, config::McpProgram, model::tool::Tool as Stored};
use secrecy::SecretString;
use serde_json::{Map, Value, value::RawValue};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use self::{
    catalog::{CatalogBuilder, McpCatalog},
    http_channel::HttpChannel,
    message::{McpFailure, McpRequest, McpRevision, RpcError},
    program::{ProgramServer, ProgramServers},
};
use super::{
    CallableTool, ToolError, ToolFunction, arguments,
    cache::ToolCache,
    configuration::{ToolConfiguration, failed},
    http::ServiceClient,
};

/// Most pages of a server's list.
const PAGES: usize = 8;
/// How long a server may take to say what it offers: the question waits for it.
const DISCOVERY: Duration = Duration::from_secs(10);
/// For how long a server is not asked again that could not say it.
const FAILED: Duration = Duration::from_secs(30);
/// Sessions that are being ended at once.
const FAREWELLS: usize = 32;

/// What all MCP tools share.
pub(super) struct McpServers {
    catalogs: ToolCache<McpCatalog>,
    /// Why it is not known what a tool's server offers.
    failures: ToolCache<ToolError>,
    farewells: Arc<Semaphore>,
    programs: ProgramServers,
}

impl McpServers {
    /// `programs` are those that the operator has named.
    pub(super) fn new(programs: Vec<McpProgram>, compute: &ComputePool) -> Self {
        Self {
            catalogs: ToolCache::new(),
            failures: ToolCache::keeping(FAILED),
            farewells: Arc::new(Semaphore::new(FAREWELLS)),
            programs: ProgramServers::new(programs, compute),
        }
    }
}

/// The way to a server.
enum McpChannel {
    Http(Box<HttpChannel>),
    Program(Arc<ProgramServer>),
}

impl McpChannel {
    /// Finds out how the server wants to be spoken to.
    async fn greet(&self, until: Instant) -> Result<McpRevision, McpFailure> {
        match self {
            Self::Http(channel) => channel.greet(until).await,
            // It is agreed on when the program is started, each time.
            Self::Program(_) => Ok(McpRevision::Handshake),
        }
    }

    async fn request(
        &self,
        revision: McpRevision,
        request: &McpRequest,
        until: Instant,
    ) -> Result<Box<RawValue>, McpFailure> {
        match self {
            Self::Http(channel) => channel.request(revision, request, until).await,
            Self::Program(program) => program.request(request, until).await,
        }
    }

    fn is_http(&self) -> bool {
        match self {
            Self::Http(_) => true,
            Self::Program(_) => false,
        }
    }

    /// How often the server has said that its tools are others.
    fn changes(&self) -> u64 {
        match self {
            Self::Http(channel) => channel.changes(),
            Self::Program(program) => program.changes(),
        }
    }
}

pub(super) struct McpTool {
    tool: Stored,
    service: ServiceClient,
    servers: Arc<McpServers>,
    channel: McpChannel,
    catalog: Arc<McpCatalog>,
    functions: Vec<ToolFunction>,
    /// How often the server had said when this was opened that its tools are others.
    changes: u64,
}

impl McpTool {
    pub(super) async fn open(
        tool: &Stored,
        configuration: &ToolConfiguration<'_>,
        secrets: Vec<SecretString>,
        service: ServiceClient,
        servers: &Arc<McpServers>,
        deadline: Instant,
    ) -> Result<Self, ToolError> {
        let channel = match (configuration.text("server"), configuration.url("url")) {
            (Some(name), _) => McpChannel::Program(servers.programs.find(name).ok_or_else(|| {
                failed("This tool's `server` is not among those that the operator has named.")
            })?),
            (None, Some(url)) => {
                let farewells = Arc::clone(&servers.farewells);
                let headers = configuration.headers();
                McpChannel::Http(Box::new(HttpChannel::new(service.clone(), url, headers, farewells)))
            }
            (None, None) => return Err(failed("This tool has no `url` that can be asked.")),
        };
        let known = servers.catalogs.get(tool).filter(|known| match &channel {
            McpChannel::Http(_) => true,
            McpChannel::Program(program) => program.changes() == known.changes,
        });
        let catalog = match known {
            Some(catalog) => catalog,
            None => {
                let builder = CatalogBuilder::new(tool.clone(), configuration.texts("tools"), secrets);
                learn(tool, builder, &channel, &service, servers, deadline).await?
            }
        };
        let changes = channel.changes();
        let described = Arc::clone(&catalog);
        let functions = service.compute().run(move || described.functions()).await;
        let functions = functions.map_err(|_| service.malformed_answer())?;
        let (tool, servers) = (tool.clone(), Arc::clone(servers));
        Ok(Self { tool, service, servers, channel, catalog, functions, changes })
    }

    /// Why a call failed. Where the list may be to blame, it is fetched anew by the next run.
    fn explain(&self, failure: McpFailure) -> ToolError {
        let is_doubtful = match &failure {
            McpFailure::Refused(error) => error.is_about_request(),
            McpFailure::Status(status) => matches!(status, 400 | 404 | 405),
            McpFailure::Unanswered | McpFailure::Other(_) => false,
        };
        if is_doubtful {
            self.servers.catalogs.forget(&self.tool);
        }
        explain(&self.service, failure)
    }
}

/// Asks a server what it offers, and remembers that, or that it could not say it.
async fn learn(
    tool: &Stored,
    builder: CatalogBuilder,
    channel: &McpChannel,
    service: &ServiceClient,
    servers: &McpServers,
    deadline: Instant,
) -> Result<Arc<McpCatalog>, ToolError> {
    if let Some(failure) = servers.failures.get(tool) {
        return Err(ToolError::clone(&failure));
    }
    let until = service.until(deadline).min(Instant::now() + DISCOVERY);
    let listing = discover(builder, channel, service, until);
    match timeout_at(until, listing).await.unwrap_or(Err(ToolError::Timeout)) {
        Ok(catalog) => {
            let bytes = catalog.bytes();
            Ok(servers.catalogs.put(tool, catalog, bytes))
        }
        Err(failure) => {
            // A run that ends has not given the server its time, and a program is started anew when it is time for that.
            let is_servers = until < deadline && (failure == ToolError::Timeout || channel.is_http());
            if is_servers {
                let failure = failure.clone();
                let bytes = failure.to_string().len();
                servers.failures.put(tool, failure, bytes);
            }
            Err(failure)
        }
    }
}

/// Asks a server what it offers, page by page.
async fn discover(
    mut builder: CatalogBuilder,
    channel: &McpChannel,
    service: &ServiceClient,
    until: Instant,
) -> Result<McpCatalog, ToolError> {
    let revision = channel.greet(until).await.map_err(|failure| explain(service, failure))?;
    let mut cursor = None;
    for _ in 0..PAGES {
        let ask = McpRequest::new("tools/list");
        let ask = match cursor.take() {
            Some(cursor) => ask.with("cursor", cursor),
            None => ask,
        };
        let page = channel.request(revision, &ask, until).await;
        let page = page.map_err(|failure| explain(service, failure))?;
        let read = service.compute().run(move || {
            let next = builder.add(&page);
            (builder, next)
        });
        let (returned, next) = read.await.map_err(|_| service.malformed_answer())?;
        builder = returned;
        cursor = next.map_err(|()| service.malformed_answer())?;
        if cursor.is_none() {
            break;
        }
    }
    builder.build(revision, channel.changes()).map_err(|what| service.failed(&what))
}

fn explain(service: &ServiceClient, failure: McpFailure) -> ToolError {
    match failure {
        McpFailure::Refused(RpcError { message, .. }) if message.is_empty() => {
            service.failed("refused the call without saying why")
        }
        McpFailure::Refused(RpcError { message, .. }) => {
            ToolError::Reported(format!("The MCP server refused the call: {message}"))
        }
        McpFailure::Status(300..=399) => {
            service.failed("answered with a redirect, which is not followed; `url` must be where it is")
        }
        McpFailure::Status(status) => service.refused(status),
        McpFailure::Unanswered => service.malformed_answer(),
        McpFailure::Other(error) => error,
    }
}

#[async_trait]
impl CallableTool for McpTool {
    fn functions(&self) -> &[ToolFunction] {
        &self.functions
    }

    async fn call(
        &self,
        function: usize,
        arguments: Map<String, Value>,
        deadline: Instant,
    ) -> Result<String, ToolError> {
        let (Some(offered), Some(listed)) = (self.functions.get(function), self.catalog.tools.get(function))
        else {
            return Err(self.service.malformed_answer());
        };
        arguments::check(&offered.spec.parameters, &arguments)?;
        let until = self.service.until(deadline);
        let called = self.channel.request(self.catalog.revision, &listed.call(arguments), until).await;
        if self.channel.changes() != self.changes {
            self.servers.catalogs.forget(&self.tool);
        }
        let result = called.map_err(|failure| self.explain(failure))?;
        let read = self.service.compute().run(move || result::read(&result)).await;
        read.map_err(|_| self.service.malformed_answer())?
    }
}
