//! Makes stored tools ready to be called.

use std::sync::Arc;

use lectern_runtime::Runtime;
use lectern_shared::{
    compute::ComputePool,
    config::McpProgram,
    egress::Egress,
    model::tool::{Tool as Stored, ToolType},
    secrets::Keyring,
};
use secrecy::SecretString;
use tokio::time::Instant;

use super::{
    CallableTool, ToolError,
    automation::AutomationTool,
    cache::ToolCache,
    compute_alpha::ComputeAlphaTool,
    configuration::{ToolConfiguration, failed},
    http::ServiceClient,
    mcp::{McpServers, McpTool},
    model_host::{CancellationLimit, ModelHostTool},
    openapi::OpenApiTool,
    search::WebSearchTool,
    secrets,
    unusable::UnusableTool,
};

/// Opens tools. Cheap to clone; clones share what was learnt from outside.
#[derive(Clone)]
pub struct Toolbox {
    inner: Arc<SharedToolbox>,
}

struct SharedToolbox {
    keyring: Arc<Keyring>,
    egress: Egress,
    compute: ComputePool,
    plans: ToolCache<super::openapi::OpenApiPlan>,
    actions: ToolCache<super::automation::ActionCatalog>,
    cancels: CancellationLimit,
    mcp: Arc<McpServers>,
}

/// A tool that can be called.
#[derive(Clone)]
pub(crate) struct OpenedTool {
    /// The tool.
    pub(crate) tool: Arc<dyn CallableTool>,
    /// Every secret of its configuration, in each spelling in which it can turn up in an address or a JSON text, the
    /// longest first. None may be seen in what the tool answers or a model writes.
    pub(crate) secrets: Vec<SecretString>,
}

impl Toolbox {
    /// A toolbox that asks services in the runtime's name.
    pub fn new(runtime: &Runtime) -> Self {
        let programs = runtime.settings.mcp_servers.clone();
        Self::with(Arc::clone(&runtime.keyring), runtime.egress.clone(), runtime.compute.clone(), programs)
    }

    pub(super) fn with(
        keyring: Arc<Keyring>,
        egress: Egress,
        compute: ComputePool,
        programs: Vec<McpProgram>,
    ) -> Self {
        let (plans, actions) = (ToolCache::new(), ToolCache::new());
        let mcp = Arc::new(McpServers::new(programs, &compute));
        Self {
            inner: Arc::new(SharedToolbox {
                keyring,
                egress,
                compute,
                plans,
                actions,
                cancels: CancellationLimit::default(),
                mcp,
            }),
        }
    }

    /// Makes a tool ready, and asks its service what it offers where that has to be known, at the latest until `deadline`.
    ///
    /// It does not fail: a tool that cannot be used has one function, which says why. So has an AGENT tool, which a run
    /// answers itself.
    pub(crate) async fn open(&self, tool: &Stored, deadline: Instant) -> OpenedTool {
        let metadata = match secrets::reveal(&self.inner.keyring, tool) {
            Ok(metadata) => metadata,
            Err(error) => {
                tracing::error!(%error, tool = %tool.id, "the secrets of a tool cannot be read");
                let error =
                    failed("The configuration of this tool cannot be read; its owner must set it again.");
                return OpenedTool { tool: Arc::new(UnusableTool::new(tool, error)), secrets: Vec::new() };
            }
        };
        let secrets = secrets::values(metadata.clone());
        let opened = self.inner.open(tool, &ToolConfiguration(&metadata), &secrets, deadline).await;
        let opened = opened.unwrap_or_else(|error| Arc::new(UnusableTool::new(tool, error)));
        OpenedTool { tool: opened, secrets }
    }
}

impl SharedToolbox {
    async fn open(
        &self,
        tool: &Stored,
        configuration: &ToolConfiguration<'_>,
        secrets: &[SecretString],
        deadline: Instant,
    ) -> Result<Arc<dyn CallableTool>, ToolError> {
        let service = |subject| {
            ServiceClient::new(self.egress.clone(), self.compute.clone(), subject, configuration.timeout())
        };
        Ok(match tool.r#type {
            ToolType::Search => {
                Arc::new(WebSearchTool::new(tool, configuration, service("The search service"))?)
            }
            ToolType::ComputeAlpha => {
                Arc::new(ComputeAlphaTool::new(tool, configuration, service("The computation service"))?)
            }
            ToolType::ModelHost => {
                let service = service("The model host");
                Arc::new(ModelHostTool::new(tool, configuration, service, self.cancels.clone())?)
            }
            ToolType::AutomationNla => {
                let service = service("The automation service");
                Arc::new(AutomationTool::open(tool, configuration, service, &self.actions, deadline).await?)
            }
            ToolType::OpenApi => Arc::new(
                OpenApiTool::open(tool, configuration, service("The API"), &self.plans, deadline).await?,
            ),
            ToolType::Mcp => {
                let (service, secrets) = (service("The MCP server"), secrets.to_vec());
                Arc::new(McpTool::open(tool, configuration, secrets, service, &self.mcp, deadline).await?)
            }
            ToolType::Agent => {
                return Err(failed("This tool asks another agent, which is not possible here."));
            }
        })
    }
}
