//! Memory that a user's own documents can take of the service.

use futures::{StreamExt, stream};
use serde_json::{Map, Value, json};

use crate::support::{client::data, service::Service};

/// About as much metadata as a document may have, in as many values as fit into it.
pub fn metadata(team: &str) -> Value {
    let numbers = (0..1_800).map(|n| (format!("{n:x}"), json!(n % 10)));
    Value::Object(numbers.chain([("team".to_owned(), json!(team))]).collect::<Map<_, _>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filtered_search_over_large_metadata_takes_no_more_memory_than_its_text() {
    const DOCUMENTS: usize = 240;
    let service = Service::start().await;
    let ada = service.signed_up("ada@example.com").await;
    let adding = stream::iter(0..DOCUMENTS).map(|n| {
        let ada = &ada;
        async move {
            let team = if n % 2 == 0 { "legal" } else { "sales" };
            let text = format!("Gate {n} opens at nine.");
            ada.ingest(&json!({"type": "TXT", "name": format!("gate {n}"), "content": text, "metadata": metadata(team)}))
                .await;
        }
    });
    adding.buffer_unordered(8).collect::<Vec<()>>().await;
    let found = async |filter: Value| {
        let search = json!({"query": "gate", "limit": 50, "filter": filter});
        data(ada.post("/search", &search).await).as_array().map_or(0, Vec::len)
    };
    // What any search needs is in memory before it is measured.
    assert_eq!(found(json!({})).await, 50);
    let text = metadata("legal").to_string().len() * DOCUMENTS;
    let before = service.rss_bytes();
    for filter in [json!({"team": "legal"}), json!({"team": ["sales", "legal"], "1": 1}), json!({"7": 7})] {
        assert_eq!(found(filter).await, 50);
    }
    assert_eq!(found(json!({"team": "nobody's"})).await, 0);
    let grown = service.rss_bytes().saturating_sub(before);
    // As values it took more than ten times its text. Pages of the database that are read are kept too.
    assert!(grown < 6 * text as u64, "{} KiB of metadata took {} KiB", text >> 10, grown >> 10);
}
