//! Servers of the Model Context Protocol that are programs: shell scripts here.

use std::time::Duration;

use lectern_shared::{config::McpProgram, model::tool::ToolType::Mcp};
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{
    super::{OpenedTool, ToolError, Toolbox},
    support::*,
};

/// Reads messages line by line, and answers as `$1` says: each line of it is a case of the shell on the whole message,
/// with its id in `$id`.
const SERVER: &str = r#"
while IFS= read -r line; do
  rest=${line#*'"id":'}; id=${rest%%,*}
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{}}}' ;;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"say","inputSchema":{"type":"object"}}]}}' ;;
    CALLS
  esac
done
"#;

/// A toolbox with one program, whose calls are answered by these cases.
fn with(calls: &str) -> Toolbox {
    let script = SERVER.replace("CALLS", calls);
    let command = ["sh", "-c", script.as_str()].map(str::to_owned).to_vec();
    let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    toolbox_with("", vec![McpProgram { name: "shell".to_owned(), command, environment }])
}

async fn open_shell(toolbox: &Toolbox) -> OpenedTool {
    toolbox.open(&stored(Mcp, "My tool", json!({"server": "shell"})), soon()).await
}

/// The case that answers a call with what the shell makes of this text.
fn saying(text: &str) -> String {
    format!(
        r#"*'"tools/call"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"content":[{{"type":"text","text":"%s"}}]}}}}\n' "$id" "{text}" ;;"#
    )
}

#[tokio::test]
async fn a_program_serves_all_runs_and_knows_nothing_of_the_services_environment() {
    let toolbox = with(&saying("$$ ${HOME:-nowhere} $PATH"));
    let mut answers = Vec::new();
    for _ in 0..3 {
        let opened = open_shell(&toolbox).await;
        assert_eq!(opened.tool.functions()[0].spec.name, "my_tool_say");
        answers.push(call(&opened, 0, json!({})).await.unwrap());
    }
    assert!(answers[0].ends_with(" nowhere /usr/bin:/bin"), "{answers:?}");
    assert!(answers.iter().all(|answer| *answer == answers[0]), "one process: {answers:?}");
}

#[tokio::test]
async fn a_program_that_hangs_costs_the_time_of_its_call_and_serves_others_meanwhile() {
    let toolbox = with(&format!("*'\"hang\"'*) : ;;\n{}", saying("here")));
    let opened = open_shell(&toolbox).await;
    let hanging =
        opened.tool.call(0, object(json!({"how": "hang"})), Instant::now() + Duration::from_millis(500));
    let (hung, answered) = tokio::join!(hanging, call(&opened, 0, json!({})));
    assert_eq!(hung, Err(ToolError::Timeout));
    assert_eq!(answered.unwrap(), "here");
}

#[tokio::test]
async fn a_program_that_ends_is_told_and_started_again() {
    let toolbox = with(&format!("*'\"die\"'*) exit 1 ;;\n{}", saying("$$")));
    let first = call(&open_shell(&toolbox).await, 0, json!({})).await.unwrap();
    let error = call(&open_shell(&toolbox).await, 0, json!({"how": "die"})).await.unwrap_err();
    assert_eq!(error, failure("The MCP server has ended before it answered."));
    let again = async {
        loop {
            match call(&open_shell(&toolbox).await, 0, json!({})).await {
                Ok(second) => return second,
                Err(error) => assert!(error.to_string().contains("started again in a moment"), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let second = timeout(Duration::from_secs(30), again).await.expect("it is started again");
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_line_without_end_and_nonsense_harm_nobody() {
    let toolbox = with(&format!("*'\"flood\"'*) yes | tr -d '\\n' ;;\n{}", saying("here")));
    let error = call(&open_shell(&toolbox).await, 0, json!({"how": "flood"})).await.unwrap_err();
    assert_eq!(error, failure("The MCP server has ended before it answered."));
    let chatty =
        format!("*'\"chat\"'*) echo hello; echo '{{}}'; echo '[]'; echo >&2 oh ;;\n{}", saying("here"));
    let opened = open_shell(&with(&chatty)).await;
    let soon = Instant::now() + Duration::from_millis(300);
    assert_eq!(opened.tool.call(0, object(json!({"how": "chat"})), soon).await, Err(ToolError::Timeout));
    assert_eq!(call(&opened, 0, json!({})).await.unwrap(), "here");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_told_without_its_command() {
    let command = vec!["/nowhere/mcp".to_owned(), "--key".to_owned(), KEY.to_owned()];
    let program = McpProgram { name: "shell".to_owned(), command, environment: Vec::new() };
    let error = call(&open_shell(&toolbox_with("", vec![program])).await, 0, json!({})).await.unwrap_err();
    let told = "The MCP server cannot be started; the service's operator finds the reason in the log.";
    assert_eq!(error, failure(told));
}

#[tokio::test]
async fn a_program_ends_with_whatever_it_has_started_when_nobody_needs_it() {
    let toolbox = with(&saying("$$"));
    let group = call(&open_shell(&toolbox).await, 0, json!({})).await.unwrap();
    let process = format!("/proc/{group}");
    drop(toolbox);
    let gone = async {
        while std::fs::exists(&process).unwrap() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(30), gone).await.expect("the process ends");
}

#[tokio::test]
async fn a_caller_without_patience_does_not_end_the_start_that_others_wait_for() {
    let folder = std::env::temp_dir().join(format!("lectern-mcp-{}", rand::random::<u64>()));
    std::fs::create_dir(&folder).unwrap();
    let (starts, ready) = (folder.join("starts"), folder.join("ready"));
    let script = SERVER.replace("CALLS", &saying("here"));
    let script = format!(
        "echo start >> '{}'\nwhile [ ! -e '{}' ]; do sleep 0.02; done\n{script}",
        starts.display(),
        ready.display()
    );
    let command = ["sh", "-c", script.as_str()].map(str::to_owned).to_vec();
    let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let toolbox = toolbox_with("", vec![McpProgram { name: "shell".to_owned(), command, environment }]);
    let tool = stored(Mcp, "My tool", json!({"server": "shell"}));
    let opened = toolbox.open(&tool, Instant::now() + Duration::from_millis(100)).await;
    assert_eq!(call(&opened, 0, json!({})).await, Err(ToolError::Timeout));
    std::fs::write(&ready, "").unwrap();
    assert_eq!(call(&open_shell(&toolbox).await, 0, json!({})).await.unwrap(), "here");
    assert_eq!(std::fs::read_to_string(&starts).unwrap(), "start\n", "it was started once");
    std::fs::remove_dir_all(&folder).unwrap();
}
