//! `lectern workspace`: workspaces, their quotas and members, for the operator. Beside the running service, or without it.

use std::fmt::Write as _;

use bytesize::ByteSize;
use clap::{Args, Subcommand};
use lectern_api::{QuotaChange, WorkspaceOperator, WorkspaceReport};
use lectern_runtime::{ProcessRole, Runtime, process::FatalError};
use lectern_shared::{
    config::Settings,
    ids::WorkspaceId,
    model::workspace::{Role, Workspace, WorkspaceQuotas},
};

use crate::jobs::{counted, plain, say};

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Show every workspace, newest first. The own one of an account has the account's id.
    List,
    /// Show what a workspace may hold, what it holds, and its members.
    Show {
        /// Its id.
        id: WorkspaceId,
    },
    /// Set what a workspace may hold and use. What is not named stays as it is.
    Quotas {
        /// Its id.
        id: WorkspaceId,
        #[command(flatten)]
        quotas: QuotaOptions,
    },
    /// Add a member or give one another role, or remove one.
    Member {
        /// The workspace's id.
        id: WorkspaceId,
        /// The account's e-mail.
        email: String,
        /// What the member may do: asker, editor, builder or owner.
        #[arg(long, value_parser = role, required_unless_present = "remove")]
        role: Option<Role>,
        /// Remove the member, with the API tokens that it made there.
        #[arg(long, conflicts_with = "role")]
        remove: bool,
    },
}

/// Which quotas are set.
#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct QuotaOptions {
    /// Documents.
    #[arg(long, value_name = "N")]
    documents: Option<u64>,
    /// Bytes that are stored, such as 10GiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<ByteSize>,
    /// Tokens of models, read and written, in a calendar month.
    #[arg(long, value_name = "N")]
    tokens_per_month: Option<u64>,
    /// What models may cost in a calendar month, in the currency of `LECTERN_PRICES`.
    #[arg(long, value_name = "X", value_parser = cost)]
    cost_per_month: Option<f64>,
    /// Take all quotas away, but for those that are named besides.
    #[arg(long)]
    none: bool,
}

fn role(text: &str) -> Result<Role, String> {
    text.parse().map_err(|_| format!("it must be one of {}", Role::choices()))
}

fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "it must be a size such as 10GiB".to_owned())
}

fn cost(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost >= 0.0);
    cost.ok_or_else(|| "it must be a number of at least 0".to_owned())
}

impl From<QuotaOptions> for QuotaChange {
    fn from(options: QuotaOptions) -> Self {
        let QuotaOptions { documents, bytes, tokens_per_month, cost_per_month, none } = options;
        Self {
            clears: none,
            documents,
            bytes: bytes.map(|bytes| bytes.as_u64()),
            tokens_per_month,
            cost_per_month,
        }
    }
}

/// # Errors
/// When a workspace or an account is not there, or a workspace would have no owner.
pub(crate) async fn run(settings: Settings, command: WorkspaceCommand) -> Result<(), FatalError> {
    let runtime = Runtime::start(settings, ProcessRole::Command).await?;
    let done = execute(&lectern_api::workspaces(&runtime), command).await;
    runtime.close().await;
    done
}

async fn execute(workspaces: &WorkspaceOperator, command: WorkspaceCommand) -> Result<(), FatalError> {
    match command {
        WorkspaceCommand::List => say(&table(&workspaces.list().await?)),
        WorkspaceCommand::Show { id } => say(description(&workspaces.show(id).await?)?.trim_end()),
        WorkspaceCommand::Quotas { id, quotas } => {
            let quotas = workspaces.set_quotas(id, quotas.into()).await?;
            say(&limits(quotas))
        }
        WorkspaceCommand::Member { id, email, role: Some(role), .. } => {
            let user = workspaces.put_member(id, &email, role).await?;
            say(&format!("{user}  {role}"))
        }
        WorkspaceCommand::Member { id, email, role: None, .. } => {
            let user = workspaces.remove_member(id, &email).await?;
            say(&format!("{user}  removed"))
        }
    }
}

fn table(workspaces: &[Workspace]) -> String {
    let mut lines = vec![format!("{:36}  {:8}  {:32}  {}", "ID", "KIND", "CREATED", "NAME")];
    lines.extend(workspaces.iter().map(|workspace| {
        let kind = if workspace.is_personal { "personal" } else { "shared" };
        // Its own formatting knows no width.
        let created = workspace.created_at.to_string();
        format!("{}  {kind:8}  {created:32}  {}", workspace.id, plain(&workspace.name))
    }));
    lines.join("\n")
}

fn description(report: &WorkspaceReport) -> Result<String, std::fmt::Error> {
    let WorkspaceReport { workspace, used, members } = report;
    let mut out = String::new();
    writeln!(out, "id       {}", workspace.id)?;
    writeln!(out, "name     {}", plain(&workspace.name))?;
    writeln!(out, "kind     {}", if workspace.is_personal { "personal" } else { "shared" })?;
    writeln!(out, "created  {}", workspace.created_at)?;
    writeln!(
        out,
        "used     {}, {}; this month {}, cost {:.2}",
        counted(used.documents, "document", "documents"),
        ByteSize(used.bytes),
        counted(used.tokens_this_month, "token", "tokens"),
        used.cost_this_month
    )?;
    writeln!(out, "quotas   {}", limits(report.quotas()))?;
    for member in members {
        writeln!(out, "{:7}  {}  {}", member.role.as_str(), member.user_id, plain(&member.email))?;
    }
    Ok(out)
}

/// Quotas in one line.
fn limits(quotas: WorkspaceQuotas) -> String {
    let WorkspaceQuotas { documents, bytes, tokens_per_month, cost_per_month } = quotas;
    let parts = [
        documents.map(|documents| counted(documents, "document", "documents")),
        bytes.map(|bytes| ByteSize(bytes).to_string()),
        tokens_per_month.map(|tokens| counted(tokens, "token a month", "tokens a month")),
        cost_per_month.map(|cost| format!("cost {cost:.2} a month")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    const ID: &str = "019a8f41-3c5d-7e10-9b42-6d8e1f2a3b4c";

    #[derive(Debug, Parser)]
    struct Shell {
        #[command(subcommand)]
        command: WorkspaceCommand,
    }

    fn parse(words: &[&str]) -> Option<WorkspaceCommand> {
        let words = ["workspace"].iter().chain(words);
        Shell::try_parse_from(words).ok().map(|shell| shell.command)
    }

    #[test]
    fn quotas_are_named_one_by_one_or_taken_away() {
        let set = ["quotas", ID, "--documents", "100", "--bytes", "10GiB", "--cost-per-month", "2.5"];
        let Some(WorkspaceCommand::Quotas { quotas, .. }) = parse(&set) else { panic!("no quotas") };
        let change = QuotaChange::from(quotas);
        assert_eq!((change.documents, change.bytes), (Some(100), Some(10 << 30)));
        assert_eq!((change.cost_per_month, change.tokens_per_month, change.clears), (Some(2.5), None, false));
        let Some(WorkspaceCommand::Quotas { quotas, .. }) = parse(&["quotas", ID, "--none"]) else {
            panic!("no quotas")
        };
        assert!(QuotaChange::from(quotas).clears);
        assert!(parse(&["quotas", ID]).is_none());
        assert!(parse(&["quotas", ID, "--cost-per-month", "NaN"]).is_none());
        assert!(parse(&["quotas", "mine", "--none"]).is_none());
    }

    #[test]
    fn a_member_gets_a_role_or_is_removed() {
        let member = ["member", ID, "ada@example.com"];
        let with = |more: &[&'static str]| parse(&[&member[..], more].concat());
        assert!(matches!(
            with(&["--role", "builder"]),
            Some(WorkspaceCommand::Member { role: Some(Role::Builder), remove: false, .. })
        ));
        assert!(matches!(
            with(&["--remove"]),
            Some(WorkspaceCommand::Member { role: None, remove: true, .. })
        ));
        assert!(with(&[]).is_none());
        assert!(with(&["--role", "boss"]).is_none());
        assert!(with(&["--role", "asker", "--remove"]).is_none());
    }

    #[test]
    fn quotas_are_told_in_one_line() {
        assert_eq!(limits(WorkspaceQuotas::default()), "none");
        let quotas = WorkspaceQuotas { documents: Some(5), cost_per_month: Some(1.0), ..Default::default() };
        assert_eq!(limits(quotas), "5 documents, cost 1.00 a month");
        let least = WorkspaceQuotas { documents: Some(1), tokens_per_month: Some(1), ..Default::default() };
        assert_eq!(limits(least), "1 document, 1 token a month");
    }
}
