use lectern_derive::RequestBody;
use lectern_shared::{
    clock::Timestamp,
    ids::{AgentId, DocumentId},
    model::agent::AgentType,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::*;

const ID: &str = "019a8f41-9c33-7d21-b0aa-7e54d1c2b3f0";

/// A field of each type.
#[derive(RequestBody, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "most of it is only read from JSON")]
struct Everything {
    #[schema(min_length = 1, max_length = 5, pattern = r"\S")]
    long_name: String,
    #[schema(max_length = 5)]
    note: Option<String>,
    #[schema(value_type = Option<String>, max_length = 5)]
    #[body(default)]
    text: String,
    #[schema(value_type = String, min_length = 1, max_length = 5)]
    secret: SecretString,
    #[schema(value_type = String)]
    r#type: AgentType,
    #[schema(required = false, default = true)]
    shown: bool,
    count: Option<u32>,
    #[schema(minimum = 1, maximum = 50)]
    #[body(default = 10)]
    limit: usize,
    #[schema(minimum = 0.5, maximum = 2)]
    ratio: Option<f64>,
    #[schema(value_type = Option<String>)]
    expires_at: Option<Timestamp>,
    #[schema(value_type = String)]
    agent_id: GivenId<AgentId>,
    #[schema(value_type = Option<Vec<String>>, max_items = 2)]
    document_ids: Option<GivenIds<DocumentId>>,
    #[schema(max_items = 2)]
    origins: Option<Vec<String>>,
    #[schema(rename = "inside")]
    inner: Inner,
    #[body(with = even)]
    even: Option<u32>,
}

/// A body within another, with whatever else is given.
#[derive(RequestBody, ToSchema)]
struct Inner {
    #[schema(min_length = 1)]
    key: String,
    #[schema(value_type = Object)]
    #[serde(flatten)]
    others: Map<String, Value>,
}

fn even(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<u32> {
    let number = fields.count(rule.name)?;
    if number % 2 == 1 {
        fields.refuse(rule.name, "must be even");
    }
    Some(number)
}

fn good() -> Value {
    json!({"longName": "Ada", "secret": "key", "type": "REACT", "agentId": ID, "inside": {"key": "k", "more": 1}})
}

fn errors<T: FromFields>(body: &Value) -> Vec<String> {
    let Err(error) = validate::<T>(body) else { return Vec::new() };
    error.fields.into_iter().map(|field| format!("{} {}", field.path, field.message)).collect()
}

/// What is said of a good body with this field in the place of its own.
fn said_of(name: &str, value: Value) -> Vec<String> {
    let mut body = good();
    body[name] = value;
    errors::<Everything>(&body)
}

#[test]
fn what_is_left_out_is_none_or_its_default() {
    for body in [good(), {
        let mut nulls = good();
        for name in ["note", "text", "shown", "limit", "documentIds", "even"] {
            nulls[name] = Value::Null;
        }
        nulls
    }] {
        let read = validate::<Everything>(&body).unwrap();
        assert_eq!((read.long_name.as_str(), read.note, read.text.as_str()), ("Ada", None, ""));
        assert_eq!((read.secret.expose_secret(), read.r#type), ("key", AgentType::React));
        assert_eq!((read.shown, read.count, read.limit, read.even), (true, None, 10, None));
        assert_eq!(read.agent_id.unwrap().to_string(), ID);
        assert!(read.document_ids.is_none() && read.expires_at.is_none());
        assert_eq!((read.inner.key.as_str(), &read.inner.others["more"]), ("k", &json!(1)));
    }
}

#[test]
fn what_has_to_be_there_is_asked_for_all_at_once_in_the_order_of_the_fields() {
    let required = [
        "longName is required",
        "secret is required",
        "type is required: one of CHATVENDOR, REACT",
        "agentId is required",
        "inside is required",
    ];
    assert_eq!(errors::<Everything>(&json!({})), required);
    let nulls = json!({"inside": null, "agentId": null, "type": null, "secret": null, "longName": null});
    assert_eq!(errors::<Everything>(&nulls), required);
    assert_eq!(said_of("inside", json!({"more": 1})), ["inside.key is required"]);
}

#[test]
fn every_limit_is_the_one_that_is_described() {
    for (name, value, message) in [
        ("longName", json!("longer"), "longName must have at most 5 characters"),
        ("longName", json!("  "), "longName must not be blanks only"),
        ("longName", json!(1), "longName must be a string"),
        ("note", json!("longer"), "note must have at most 5 characters"),
        ("secret", json!(""), "secret must not be empty"),
        ("type", json!("react"), "type must be one of CHATVENDOR, REACT"),
        ("shown", json!("yes"), "shown must be true or false"),
        ("count", json!(0), "count must be a whole number of at least 1"),
        ("count", json!(1.5), "count must be a whole number of at least 1"),
        ("count", json!(-3.0), "count must be a whole number of at least 1"),
        ("count", json!(1e20), "count must be a whole number from 1 to 4294967295"),
        ("count", json!("99999999999999999999"), "count must be a whole number from 1 to 4294967295"),
        ("limit", json!(51), "limit must be a whole number between 1 and 50"),
        ("limit", json!("5"), "limit must be a whole number between 1 and 50"),
        ("limit", json!(1.5), "limit must be a whole number between 1 and 50"),
        ("ratio", json!(0.4), "ratio must be a number between 0.5 and 2"),
        ("expiresAt", json!("tomorrow"), "expiresAt must be a time such as 2026-01-31T08:00:00Z"),
        (
            "expiresAt",
            json!("9999-12-31T23:59:59-01:00"),
            "expiresAt must be a time such as 2026-01-31T08:00:00Z",
        ),
        ("agentId", json!(1), "agentId must be a string"),
        ("documentIds", json!(ID), "documentIds must be an array of document ids"),
        ("documentIds", json!([ID, ID, ID]), "documentIds must have at most 2 items"),
        ("documentIds", json!([ID, 1]), "documentIds.1 must be a string"),
        ("origins", json!({}), "origins must be an array of strings"),
        ("origins", json!([null, "a"]), "origins.0 must be a string"),
        ("inside", json!([]), "inside must be an object"),
        ("even", json!(3), "even must be even"),
    ] {
        assert_eq!(said_of(name, value.clone()), [message], "{value}");
    }
    for (name, value) in [
        ("note", json!(" ")),
        ("count", json!("7")),
        ("count", json!(7.0)),
        ("limit", json!(50)),
        ("limit", json!(50.0)),
        ("ratio", json!(2)),
        ("expiresAt", json!("2026-01-31T09:00:00+01:00")),
        ("agentId", json!("nobody's")),
        ("documentIds", json!([])),
        ("unknown", json!("is nobody's business")),
    ] {
        assert_eq!(said_of(name, value.clone()), [""; 0], "{value}");
    }
    let schema = json!(Everything::schema());
    assert_eq!(schema["properties"]["limit"]["maximum"], 50);
    assert_eq!(schema["properties"]["longName"]["maxLength"], 5);
}

#[test]
fn text_that_cannot_be_an_id_is_an_unknown_one() {
    let mut body = good();
    body["agentId"] = json!("nobody's");
    body["documentIds"] = json!([ID, "nobody's"]);
    let read = validate::<Everything>(&body).unwrap();
    assert!(read.agent_id.is_err() && read.document_ids.is_some_and(|ids| ids.is_err()));
}

/// A change of what has bodies in it: one that is closed, which has another, and one that takes whatever is given.
#[derive(RequestBody, ToSchema)]
#[body(change)]
#[expect(dead_code, reason = "it is only read from JSON")]
struct OuterChange {
    #[schema(nullable = false)]
    closed: Option<Closed>,
    #[schema(nullable = false)]
    open: Option<Inner>,
}

#[derive(RequestBody, ToSchema)]
#[expect(dead_code, reason = "it is only read from JSON")]
struct Closed {
    #[body(with = renamed, alias = "oldNumber")]
    number: Option<u32>,
    within: Option<Innermost>,
}

#[derive(RequestBody, ToSchema)]
#[expect(dead_code, reason = "it is only read from JSON")]
struct Innermost {
    note: Option<String>,
}

fn renamed(fields: &mut JsonFields<'_>, rule: &FieldRule) -> Option<u32> {
    let name = if fields.given("oldNumber") { "oldNumber" } else { rule.name };
    fields.count(name)
}

#[test]
fn what_a_change_does_not_know_is_refused_in_its_objects_too() {
    let body = json!({
        "closed": {"nmuber": 1, "within": {"ntoe": "n"}},
        "open": {"key": "k", "more": {"whatever": 1}},
    });
    assert_eq!(
        errors::<OuterChange>(&body),
        [
            "closed.nmuber cannot be set; these can: number, oldNumber, within",
            "closed.within.ntoe cannot be set; these can: note",
        ]
    );
    assert_eq!(errors::<OuterChange>(&json!({"closed": {"oldNumber": 1, "within": {}}})), [""; 0]);
    assert_eq!(errors::<Closed>(&json!({"nmuber": 1, "within": {"ntoe": "n"}})), [""; 0], "it is no change");
}

#[test]
fn whole_numbers_are_told_from_others_however_they_are_written() {
    for (number, whole) in [
        (json!(0), Some(0)),
        (json!(-0.0), Some(0)),
        (json!(3.0), Some(3)),
        (json!(9_007_199_254_740_991.0), Some(9_007_199_254_740_991)),
        (json!(u64::MAX), Some(u64::MAX)),
        (json!(1e300), None),
        (json!(0.5), None),
        (json!(-1.0), None),
        (json!("3"), None),
    ] {
        assert_eq!(as_whole(&number), whole, "{number}");
    }
}

/// A change that has every way to be left out.
#[derive(RequestBody, ToSchema)]
#[body(change, stranger, first(note), before = refuse_secrets, after = check_pair)]
#[expect(clippy::option_option, reason = "absent, null and a value are three things")]
struct Change {
    #[schema(min_length = 1, nullable = false)]
    name: Option<String>,
    #[schema(max_length = 5)]
    note: Option<String>,
    #[schema(value_type = Option<String>)]
    agent_id: Option<Option<GivenId<AgentId>>>,
    #[schema(nullable = false)]
    #[body(with = even)]
    even: Option<u32>,
    #[body(default = 7)]
    lucky: Option<u32>,
}

fn refuse_secrets(fields: &mut JsonFields<'_>) {
    if fields.given("note") && fields.given("lucky") {
        fields.refuse("lucky", "cannot be noted");
    }
}

fn check_pair(change: &Change, fields: &mut JsonFields<'_>) {
    if change.name.is_some() && change.even.is_some() {
        fields.refuse("even", "cannot be named");
    }
}

#[test]
fn a_change_tells_absent_and_null_and_a_value_apart() {
    let read = |body: Value| validate::<Change>(&body).unwrap();
    let nothing = read(json!({}));
    assert!(nothing.name.is_none() && nothing.note.is_none() && nothing.agent_id.is_none());
    assert!(nothing.even.is_none() && nothing.lucky.is_none());
    let emptied = read(json!({"note": null, "agent_id": null}));
    assert_eq!((emptied.note.as_deref(), emptied.agent_id), (Some(""), Some(None)));
    assert_eq!(read(json!({"lucky": null})).lucky, Some(7));
    let set = read(json!({"name": "Ada", "note": "n", "agent_id": ID}));
    assert_eq!((set.name.as_deref(), set.note.as_deref()), (Some("Ada"), Some("n")));
    assert!(set.agent_id.is_some_and(|agent| agent.is_some_and(|agent| agent.is_ok())));
}

#[test]
fn of_a_change_unknown_fields_and_nulls_are_refused_first_then_it_is_read_in_order() {
    let unknown = "cannot be set; these can: name, note, agent_id, even, lucky";
    let null = "must not be null; leave it out to keep it as it is";
    assert_eq!(
        errors::<Change>(&json!({"id": 1, "even": null, "name": " ", "note": "longer", "lucky": 0})),
        [
            &format!("id {unknown}"),
            &format!("even {null}"),
            "lucky cannot be noted",
            "note must have at most 5 characters",
            "name must not be blanks only",
            "lucky must be a whole number of at least 1",
        ]
    );
    assert_eq!(errors::<Change>(&json!({"name": "Ada", "even": 2})), ["even cannot be named"]);
    assert_eq!((Change::SENDER, Inner::SENDER), (SenderTrust::Stranger, SenderTrust::Known));
}

/// What takes only a name.
#[derive(Debug)]
struct Named;

impl FromFields for Named {
    fn from_fields(fields: &mut JsonFields<'_>) -> Self {
        fields.only(&["name"]);
        fields.nested("name", |fields| fields.only(&[]));
        Self
    }
}

#[test]
fn of_many_wrong_fields_a_hundred_are_named() {
    let many = |name: &dyn Fn(usize) -> String| {
        Value::Object((0..100_000).map(|number| (name(number), json!(number))).collect())
    };
    let (unknown, nul) = (many(&|number| number.to_string()), many(&|number| format!("\0{number}")));
    let texts = json!({"name": {"texts": vec!["\0"; 100_000]}});
    for body in [json!({"name": unknown.clone()}), unknown, nul, texts] {
        let error = validate::<Named>(&body).unwrap_err();
        assert_eq!((error.kind.status(), error.fields.len()), (422, 100));
        assert!(error.message.contains("100"), "{}", error.message);
    }
}

#[test]
fn a_name_that_is_very_long_is_not_repeated_whole() {
    let long = "ä".repeat(500_000);
    for body in [json!({long.clone(): 1}), json!({"name": {long.clone(): 1}}), json!({long: "\0"})] {
        let error = validate::<Named>(&body).unwrap_err();
        let longest = error.fields.iter().map(|field| field.path.len()).max().unwrap();
        assert!((100..1_000).contains(&longest), "{longest}");
    }
}
