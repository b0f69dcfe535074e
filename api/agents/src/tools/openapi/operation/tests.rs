use super::*;

fn read(document: &Value) -> OpenApiDocument {
    OpenApiDocument::read(document.to_string().as_bytes()).ok().unwrap()
}

#[test]
fn only_so_many_operations_are_looked_at() {
    let paths: Map<_, _> = (0..=LOOKED_AT).map(|n| (format!("/{n}"), json!({"get": {}}))).collect();
    let document = read(&json!({"openapi": "3.0.0", "paths": paths}));
    assert_eq!(FoundOperation::all(&document, None).count(), LOOKED_AT);
    let last = [format!("GET /{LOOKED_AT}")];
    assert_eq!(FoundOperation::all(&document, Some(last.as_slice())).count(), 1);
}

#[test]
fn only_so_many_parameters_are_looked_at_and_each_is_taken_once() {
    let query = |name: &str| json!({"name": name, "in": "query"});
    for (parameters, kept) in [
        (vec![query("a"), query("a"), json!({"name": "a", "in": "path"}), query("b")], 3),
        ((0..4 * PARAMETERS).map(|n| query(&n.to_string())).collect(), PARAMETERS),
        ([vec![query("a"); 4 * PARAMETERS], vec![query("b")]].concat(), 1),
        // Neither has a name that is a text.
        (vec![json!({"name": [1], "in": "query"}), json!({"name": [2], "in": "query"})], 1),
        (vec![query(&"n".repeat(PATH)), query(&"n".repeat(PATH + 1))], 1),
    ] {
        let document =
            read(&json!({"openapi": "3.0.0", "paths": {"/": {"get": {"parameters": parameters}}}}));
        let found = FoundOperation::all(&document, None).next().unwrap();
        assert_eq!(found.declared(&document).len(), kept);
    }
}

#[test]
fn only_so_much_of_what_an_operation_lists_is_kept() {
    let encoding: Map<_, _> = (0..1_000).map(|n| (format!("f{n}"), json!({"style": "form"}))).collect();
    let form = json!({"application/x-www-form-urlencoded": {"encoding": encoding}});
    let mut kinds: Map<_, _> = (0..PARAMETERS).map(|n| (format!("image/{n}"), json!({}))).collect();
    kinds.insert("application/json".to_owned(), json!({}));
    let id = "i".repeat(PATH + 1);
    let document = read(&json!({"openapi": "3.0.0", "paths": {
        "/form": {"post": {"operationId": id, "requestBody": {"content": form}}},
        "/kinds": {"post": {"requestBody": {"content": kinds}}},
    }}));
    let mut schemas = SchemaCopier::new(&document);
    let mut all: Vec<_> =
        FoundOperation::all(&document, None).map(|found| found.read(&document, &mut schemas, &[])).collect();
    assert!(all.pop().unwrap().is_none());
    let operation = all.pop().unwrap().unwrap();
    assert_eq!(operation.name, "post /form");
    assert_eq!(operation.body.unwrap().form.unwrap().len(), PARAMETERS);
}
