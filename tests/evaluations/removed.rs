//! Runs of somebody who may not have them any more.

use serde_json::json;

use super::{case, ended, evaluation};
use crate::support::{
    client::{data, id},
    in_both_modes,
    loopback::Gate,
    model::{Model, Reply},
    service::{Mode, Service},
};

in_both_modes!(a_run_ends_when_whoever_asked_for_it_may_not_any_more);

async fn a_run_ends_when_whoever_asked_for_it_may_not_any_more(mode: Mode) {
    let service = Service::in_mode(mode).env("LECTERN_EVALUATION_PARALLEL", "1").start().await;
    let ada = service.signed_up("ada@example.com").await;
    let team = ada.create("/workspaces", &json!({"name": "Archive"})).await;
    let (team, ada) = (id(&team), ada.in_workspace(id(&team)));
    let ben = service.signed_up("ben@example.com").await;
    let member = format!("/workspaces/{team}/members/{}", id(ben.user()));
    let model = Model::start().await;
    let agent = json!({"name": "clerk", "type": "CHATVENDOR", "llm": model.llm("m")});
    let agent = ada.create_agent(&agent).await;
    let set = evaluation(&ada, json!({"agentId": id(&agent)})).await;
    for question in ["Who founded the company?", "When was that?"] {
        case(&ada, &set, question, json!("decline")).await;
    }
    for is_removed in [false, true] {
        let invitation =
            ada.create(&format!("/workspaces/{team}/invitations"), &json!({"role": "builder"})).await;
        ben.create("/invitations/accept", &json!({"token": invitation["token"]})).await;
        let (asked, gate) = (model.requests().len(), Gate::default());
        model.reply(Reply::gated("Nobody ", &gate, "knows."));
        let runs = format!("/evaluations/{set}/runs");
        let begun = ben.in_workspace(team).create(&runs, &json!({"mode": "lexical"})).await;
        gate.wait_until_reached().await;
        if is_removed {
            data(ada.delete(&member).await);
        } else {
            data(ada.patch(&member, &json!({"role": "asker"})).await);
        }
        gate.release();
        let ended = ended(&ada, &set, &begun).await;
        assert_eq!(ended["state"], "failed", "{ended:#}");
        let error = ended["error"].as_str().expect("a reason");
        assert!(error.contains("Whoever asked for the run may not do so any more"), "{ended:#}");
        assert_eq!(model.requests().len(), asked + 1, "the second case is not asked");
        if !is_removed {
            data(ada.delete(&member).await);
        }
    }
}
