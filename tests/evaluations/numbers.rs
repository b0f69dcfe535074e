//! The numbers, beside those of the program that everybody measures with.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use super::{document, evaluation, run, signed_up};
use crate::support::{client::id, in_both_modes, service::Mode};

in_both_modes!(numbers_are_those_of_an_independent_program);

/// What `trec_eval` says of judgements and rankings, by the name that we have for each number.
fn trec_eval(judgements: &Value, rankings: &Value) -> Option<Value> {
    let python = std::env::var("TEST_CLIENTS_PYTHON").ok()?;
    let script = "import sys, json, pytrec_eval\n\
        names = {'success_1': 'hit@1', 'success_5': 'hit@5', 'success_10': 'hit@10', 'recip_rank': 'mrr',\n\
                 'ndcg_cut_10': 'ndcg@10', 'recall_10': 'recall@10'}\n\
        qrel, run = json.load(sys.stdin)\n\
        measures = {'success.1,5,10', 'recip_rank', 'ndcg_cut.10', 'recall.10'}\n\
        by_question = pytrec_eval.RelevanceEvaluator(qrel, measures).evaluate(run)\n\
        print(json.dumps({ours: sum(one[theirs] for one in by_question.values()) / len(qrel) for theirs, ours in names.items()}))";
    let mut child = Command::new(Path::new(&python).join("bin/python"))
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("python");
    let input = json!([judgements, rankings]).to_string();
    std::io::Write::write_all(&mut child.stdin.take().expect("its input"), input.as_bytes())
        .expect("it reads");
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

async fn numbers_are_those_of_an_independent_program(mode: Mode) {
    let (_service, client) = signed_up(mode).await;
    let things = ["harbour", "lock", "tide", "pier", "ferry", "rope", "anchor", "sail"];
    let mut documents = Vec::new();
    for at in 0..40_usize {
        let words: Vec<&str> =
            (0..6).map(|step| things[(at * 3 + step * (at % 5 + 1)) % things.len()]).collect();
        let content = format!("Entry {at} tells of the {}.", words.join(" and the "));
        documents.push(document(&client, &format!("Entry {at}"), &content).await);
    }
    let set = evaluation(&client, json!({})).await;
    let mut judgements = json!({});
    let mut cases = Vec::new();
    for at in 0..60_usize {
        let question =
            format!("What of the {} and the {}, asked {at}?", things[at % 8], things[(at / 3 + 1) % 8]);
        // Several answer, some better than others.
        let gold: Vec<(usize, usize)> =
            (0..=at % 4).map(|step| ((at * 7 + step * 11) % 40, step % 3 + 1)).collect();
        let expect: Vec<Value> = gold
            .iter()
            .map(|(document, grade)| json!({"documentId": documents[*document], "grade": grade}))
            .collect();
        for (document, grade) in &gold {
            judgements[&question][&documents[*document]] = json!(grade);
        }
        cases.push(json!({"question": question, "expect": expect}));
    }
    client.create(&format!("/evaluations/{set}/cases"), &json!({"cases": cases})).await;
    let done = run(&client, &set, json!({"mode": "lexical"})).await;

    // The same questions, asked as anybody asks them.
    let mut rankings = json!({});
    for question in judgements.as_object().expect("questions").keys() {
        let asked = json!({"query": question, "mode": "lexical", "limit": 50});
        let hits = client.create("/search", &asked).await;
        let mut ranking = serde_json::Map::new();
        for hit in hits.as_array().expect("a list") {
            let document = hit["documentId"].as_str().expect("an id").to_owned();
            let score = 1_000 - ranking.len();
            ranking.entry(document).or_insert(json!(score));
        }
        rankings[question] = Value::Object(ranking);
    }
    let Some(theirs) = trec_eval(&judgements, &rankings) else {
        eprintln!(
            "TEST_CLIENTS_PYTHON is not set: the numbers were NOT compared with those of an independent program"
        );
        return;
    };
    for (name, value) in theirs.as_object().expect("numbers") {
        let ours = done["metrics"]["retrieval"]["lexical"][name]["value"].as_f64().expect("a number");
        let theirs = value.as_f64().expect("a number");
        assert!((ours - theirs).abs() < 1e-6, "{name}: {ours} and {theirs}");
        assert!(theirs > 0.05 && theirs < 0.999, "{name} tells nothing: {theirs}");
    }
    assert!(!id(&done).is_empty());
}
