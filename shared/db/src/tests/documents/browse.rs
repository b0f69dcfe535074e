//! Documents as people look for them.

use lectern_shared::{
    ids::WorkspaceId,
    model::job::{JobKind, JobState},
};
use serde_json::{Value, json};

use crate::{
    DbError,
    documents::{
        self, NewDocumentRow,
        browse::{DocumentFilter, DocumentOrder, MetadataMatch, browse, count},
    },
    jobs,
    testing::{TestDb, at, both, commit, document, enqueue, plain, workspace},
};

async fn described(t: &TestDb, workspace: WorkspaceId, name: &str, metadata: &Value) {
    let document = NewDocumentRow { metadata: metadata.as_object(), ..plain(workspace, name) };
    commit!(t.db, |tx| documents::insert(tx, &document, at(0)));
    enqueue(&t.db, workspace, document.id, at(0)).await;
}

async fn names(t: &TestDb, workspace: WorkspaceId, filter: &DocumentFilter) -> Vec<String> {
    let found = browse(&t.db, workspace, filter, DocumentOrder::Oldest, None, 100).await.unwrap();
    found.into_iter().map(|document| document.name).collect()
}

fn having(key: &str, value: &str) -> DocumentFilter {
    DocumentFilter { metadata: Some(MetadataMatch::typed(key, value)), ..DocumentFilter::default() }
}

#[tokio::test]
async fn documents_are_found_by_a_value_of_their_metadata_as_searches_find_them() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        for (name, metadata) in [
            ("own", json!({"dept": "people"})),
            ("among several", json!({"a": 1, "dept": "people", "z": "x"})),
            ("listed", json!({"dept": ["sales", "people"]})),
            ("within", json!({"unit": {"dept": "people"}})),
            ("within its own", json!({"dept": {"dept": "people"}})),
            ("within a list", json!({"dept": [["people"], {"dept": "people"}]})),
            ("large key", json!({"DEPT": "people"})),
            ("large value", json!({"dept": "People"})),
            ("as a text", json!({"note": "\"dept\":\"people\""})),
            ("beginning", json!({"dept": "people and places"})),
            ("three", json!({"dept": 3})),
            ("three as a float", json!({"dept": 3.0})),
            ("three as a text", json!({"dept": "3"})),
            ("three among others", json!({"dept": [1, 3.0]})),
            ("thirty", json!({"dept": [30, 13, 3.5, -3]})),
            ("true", json!({"dept": true})),
            ("true as a text", json!({"dept": "true"})),
            ("null", json!({"dept": null})),
            ("nothing", json!({"dept": ""})),
            ("with a zero byte", json!({"dept": "a%b", "nul": "\u{0}"})),
            ("without a percent sign", json!({"dept": "a and b"})),
            ("quoted", json!({"de\"pt": "Übung \\ \"1\"\n"})),
            ("huge", json!({"dept": 9_007_199_254_740_993_u64})),
            ("rounded", json!({"dept": 1e21})),
        ] {
            described(t, owner, name, &metadata).await;
        }
        document(&t.db, owner, "bare", at(0)).await;
        let other = workspace(&t.db, at(0)).await;
        described(t, other, "theirs", &json!({"dept": "people"})).await;

        let threes = ["three", "three as a float", "three as a text", "three among others"];
        for (key, value, found) in [
            ("dept", "people", &["own", "among several", "listed"][..]),
            ("DEPT", "people", &["large key"]),
            ("dept", "People", &["large value"]),
            ("dept", "3", &threes),
            ("dept", "3.0", &["three", "three as a float", "three among others"]),
            ("dept", "3e0", &["three", "three as a float", "three among others"]),
            ("dept", "-3", &["thirty"]),
            ("dept", "true", &["true", "true as a text"]),
            ("dept", "null", &[]),
            ("dept", "", &["nothing"]),
            ("dept", "a%b", &["with a zero byte"]),
            ("de\"pt", "Übung \\ \"1\"\n", &["quoted"]),
            ("dept", "9007199254740993", &["huge"]),
            ("dept", "9007199254740992", &[]),
            ("dept", "1000000000000000000000", &["rounded"]),
            ("missing", "people", &[]),
        ] {
            assert_eq!(names(t, owner, &having(key, value)).await, found, "{}: {key}={value}", t.name);
        }
        let nothing = MetadataMatch { key: "dept".to_owned(), values: Vec::new() };
        let nothing = DocumentFilter { metadata: Some(nothing), ..DocumentFilter::default() };
        assert!(names(t, owner, &nothing).await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn how_a_document_of_another_workspace_is_called_cannot_be_told_from_a_list_behind_it() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        document(&t.db, owner, "zebra", at(0)).await;
        let theirs = plain(other, "horse");
        commit!(t.db, |tx| documents::insert(tx, &theirs, at(0)));
        let (all, order) = (DocumentFilter::default(), DocumentOrder::Name);
        let behind = browse(&t.db, owner, &all, order, Some(theirs.id), 10).await.unwrap();
        assert!(behind.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn documents_with_a_value_come_page_by_page_from_among_many_that_look_alike() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let (hit, alike) = (json!({"dept": "people"}), json!({"dept": "sales", "of": "people"}));
        let mut hits = Vec::new();
        commit!(t.db, |tx| async {
            // More than are read at once.
            for number in 0..620 {
                let is_hit = matches!(number, 0 | 498..502 | 619);
                let name = format!("{number:04}");
                let metadata = if is_hit { &hit } else { &alike };
                let document = NewDocumentRow { metadata: metadata.as_object(), ..plain(owner, &name) };
                documents::insert(tx, &document, at(0)).await?;
                jobs::enqueue(tx, owner, document.id, JobKind::Ingest, 1, at(0)).await?;
                if is_hit {
                    hits.push(document.id);
                }
            }
            Ok::<_, DbError>(())
        });
        for order in [DocumentOrder::Oldest, DocumentOrder::Newest, DocumentOrder::Name] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let page = browse(&t.db, owner, &having("dept", "people"), order, after, 4).await.unwrap();
                found.extend(page.iter().map(|document| document.id));
                after = page.last().map(|document| document.id);
                if page.len() < 4 {
                    break;
                }
            }
            if order == DocumentOrder::Newest {
                found.reverse();
            }
            assert_eq!(found, hits, "{}: {order:?}", t.name);
        }
    }
}

#[tokio::test]
async fn a_name_is_found_in_whichever_case_it_is_typed() {
    for t in &both().await {
        let owner = workspace(&t.db, at(0)).await;
        let all =
            ["Übersicht", "ГОДОВОЙ отчёт", "CAFÉ Straße 100%", "日本語", "plain", "İstanbul", "Mo\u{308}bel"];
        for name in all {
            document(&t.db, owner, name, at(0)).await;
        }
        for (typed, found) in [
            ("Übersicht", &["Übersicht"][..]),
            ("übersicht", &["Übersicht"]),
            ("ÜBERSICHT", &["Übersicht"]),
            ("bersicht", &["Übersicht"]),
            ("ubersicht", &[]),
            ("годовой ОТЧЁТ", &["ГОДОВОЙ отчёт"]),
            ("Годовой", &["ГОДОВОЙ отчёт"]),
            ("café straße", &["CAFÉ Straße 100%"]),
            ("é s", &["CAFÉ Straße 100%"]),
            ("0%", &["CAFÉ Straße 100%"]),
            ("É_", &[]),
            ("本", &["日本語"]),
            ("PLAIN", &["plain"]),
            ("İstanbul", &["İstanbul"]),
            ("istan", &["İstanbul"]),
            // Some systems write their files' names with the accents apart, and people type them in one piece.
            ("möbel", &["Mo\u{308}bel"]),
            ("U\u{308}BER", &["Übersicht"]),
        ] {
            let filter = DocumentFilter { name: typed.to_owned(), ..DocumentFilter::default() };
            assert_eq!(names(t, owner, &filter).await, found, "{}: {typed}", t.name);
        }
        // Every letter of several alphabets.
        let name: String = ('\u{c0}'..'\u{587}').collect();
        let filter = DocumentFilter { name, ..DocumentFilter::default() };
        assert!(names(t, owner, &filter).await.is_empty(), "{}", t.name);
    }
}

#[tokio::test]
async fn what_passes_a_filter_is_counted_up_to_a_bound() {
    for t in &both().await {
        let (owner, other) = (workspace(&t.db, at(0)).await, workspace(&t.db, at(0)).await);
        for dept in ["people", "sales", "people"] {
            described(t, owner, dept, &json!({"dept": dept})).await;
        }
        described(t, other, "people", &json!({"dept": "people"})).await;
        let named = DocumentFilter { name: "PEOPLE".to_owned(), ..DocumentFilter::default() };
        let queued = DocumentFilter { state: Some(JobState::Queued), ..DocumentFilter::default() };
        let dead = DocumentFilter { state: Some(JobState::Dead), ..DocumentFilter::default() };
        let metadata = having("dept", "people").metadata;
        for (filter, most, expected) in [
            (&DocumentFilter::default(), 10, 3),
            (&DocumentFilter::default(), 2, 2),
            (&named, 10, 2),
            (&queued, 10, 3),
            (&dead, 10, 0),
            (&having("dept", "people"), 10, 2),
            (&having("dept", "people"), 1, 1),
            (&DocumentFilter { metadata: metadata.clone(), ..queued.clone() }, 10, 2),
            (&DocumentFilter { metadata, ..dead.clone() }, 10, 0),
        ] {
            let counted = count(&t.db, owner, filter, most).await.unwrap();
            assert_eq!(counted, expected, "{}: {filter:?}", t.name);
        }
    }
}
