//! OPENAPI.

use lectern_shared::model::tool::ToolType::OpenApi;
use serde_json::{Value, json};

use super::{
    super::{OpenedTool, ToolError},
    pets::{THREE, THREE_ONE, TWO},
    support::*,
};

/// A server that gives out a document, and answers everything else by saying what it was asked.
async fn site(document: &str) -> Site {
    let document = document.to_owned();
    Site::new(move |seen| {
        if seen.line == "GET /docs/openapi" {
            let host = seen.header("host").unwrap_or_default();
            Reply::Body(200, "text/plain", document.replace("HOST", host).into())
        } else {
            json(&json!({"asked": seen.line}))
        }
    })
    .await
}

async fn opened(site: &Site, more: Value) -> OpenedTool {
    let mut metadata = json!({"openApiUrl": format!("{}/docs/openapi", site.base)});
    for (name, value) in object(more) {
        metadata[name] = value;
    }
    open(OpenApi, metadata).await
}

fn names(opened: &OpenedTool) -> Vec<&str> {
    opened.tool.functions().iter().map(|function| function.spec.name.as_str()).collect()
}

#[tokio::test]
async fn the_same_operations_give_the_same_functions_in_every_dialect() {
    let mut all = Vec::new();
    for document in [TWO, THREE, THREE_ONE] {
        let site = site(document).await;
        let opened = opened(&site, json!({"headers": {"X-Own": KEY}})).await;
        let expected = ["listPets", "createPet", "getPet", "renamePet", "delete_pets_petId"];
        assert_eq!(names(&opened), expected.map(|name| format!("my_tool_{name}")));
        all.push(opened.tool.functions().to_vec());
    }
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);
    let list = &all[0][0].spec;
    assert_eq!(list.description, "Lists pets. Newest first.\nGET /pets");
    assert_eq!(
        list.parameters,
        json!({
            "type": "object",
            "properties": {
                "query": {
                    "type": "object",
                    "properties": {
                        "limit": {"type": "integer", "exclusiveMinimum": 0, "maximum": 100, "description": "How many."},
                        "tags": {"type": "array", "items": {"type": "string"}},
                        "ids": {"type": "array", "items": {"type": "integer"}},
                        "status": {"type": "string", "enum": ["available", "sold"]},
                    },
                    "required": ["status"],
                    "additionalProperties": false,
                },
                "header": {"type": "object", "properties": {"X-Trace": {"type": "string"}}, "additionalProperties": false},
            },
            "required": ["query"],
            "additionalProperties": false,
        })
    );
    let body = &all[0][1].spec.parameters["properties"]["body"];
    assert_eq!(
        *body,
        json!({
            "type": "object",
            "description": "The pet.",
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "nickname": {"type": ["string", "null"]},
                "category": {"type": "string", "enum": ["cat", "dog"]},
                "parent": {"description": "As the value that this one is in."},
            },
            "required": ["name"],
        })
    );
}

#[tokio::test]
async fn the_same_arguments_give_the_same_requests_in_every_dialect() {
    for document in [TWO, THREE, THREE_ONE] {
        let site = site(document).await;
        let opened = opened(&site, json!({"headers": {"X-Own": KEY}})).await;
        let arguments = [
            json!({
                "query": {"limit": "5", "tags": ["a b", "c&d"], "ids": [1, 2], "status": "sold"},
                "header": {"X-Trace": "t1"},
            }),
            json!({"body": {"name": "Tom", "nickname": null, "category": "cat", "parent": {"name": "Kit"}}}),
            json!({"path": {"petId": "a/b?c=#ü"}}),
            json!({"path": {"petId": 7}, "body": {"name": "Tim & co", "tags": ["x", "y"]}}),
            json!({"path": {"petId": "x"}}),
        ];
        for (function, arguments) in arguments.into_iter().enumerate() {
            let answer = call(&opened, function, arguments).await.unwrap();
            assert!(answer.starts_with("Status 200\n{\"asked\":\""), "{answer}");
        }
        let seen = site.seen();
        let lines: Vec<_> = seen.iter().skip(1).map(|seen| seen.line.as_str()).collect();
        assert_eq!(
            lines,
            [
                "GET /v2/pets?limit=5&tags=a%20b&tags=c%26d&ids=1,2&status=sold",
                "POST /v2/pets",
                "GET /v2/pets/a%2Fb%3Fc%3D%23%C3%BC",
                "POST /v2/pets/7",
                "DELETE /v2/pets/x",
            ]
        );
        assert_eq!(seen[1].header("x-trace"), Some("t1"));
        let pet = json!({"name": "Tom", "nickname": null, "category": "cat", "parent": {"name": "Kit"}});
        assert_eq!((seen[2].json(), seen[2].header("content-type")), (pet, Some("application/json")));
        assert_eq!(seen[4].body, "name=Tim+%26+co&tags=x&tags=y");
        assert_eq!(seen[4].header("content-type"), Some("application/x-www-form-urlencoded"));
        assert!(seen.iter().all(|seen| seen.header("x-own") == Some(KEY)));
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_sent_back_with_what_is_right() {
    let site = site(THREE).await;
    let opened = opened(&site, json!({})).await;
    for (function, arguments, told) in [
        (0, json!({}), "`query` is required: an object with `status`"),
        (0, json!({"query": {"status": "dead"}}), "`query.status` must be one of `available`, `sold`"),
        (0, json!({"query": {"status": "sold", "limit": "many"}}), "`query.limit` must be a whole number"),
        (
            0,
            json!({"query": {"status": "sold", "page": 1}}),
            "`query.page` is unknown; known here: `limit`, `tags`",
        ),
        (
            0,
            json!({"query": {"status": "sold"}, "header": {"X-Trace": "a\r\nb"}}),
            "`header.X-Trace` must be plain text",
        ),
        (
            0,
            json!({"query": {"status": "sold"}, "header": {"Authorization": "x"}}),
            "`header.Authorization` is unknown",
        ),
        (0, json!({"query": {"status": "sold"}, "header": {"Cookie": "x"}}), "`header.Cookie` is unknown"),
        (1, json!({"body": "Tom"}), "`body` must be an object"),
        (1, json!({"body": {"name": 7}}), "`body.name` must be a string"),
        (
            1,
            json!({"name": "Tom"}),
            "`body` is required: an object with `name`; `name` is unknown; known here: `body`",
        ),
        (2, json!({"path": {"petId": ".."}}), "must not be `.` or `..`"),
        (2, json!({"path": {"petId": ""}}), "`path.petId` must not be empty"),
        (2, json!({"path": {"petId": null}}), "`path.petId` is required: a string"),
        (2, json!({"path": {"petId": "x".repeat(20_000)}}), "too long"),
    ] {
        let error = call(&opened, function, arguments.clone()).await.unwrap_err();
        assert!(matches!(&error, ToolError::Arguments(text) if text.contains(told)), "{arguments}: {error}");
    }
    // The document alone was asked for.
    assert_eq!(site.lines().len(), 1);
}

#[tokio::test]
async fn a_value_cannot_leave_its_place_in_the_path() {
    let site = site(THREE).await;
    let opened = opened(&site, json!({})).await;
    for (value, sent) in [
        ("%2e%2e", "/v2/pets/%252e%252e"),
        ("../../admin", "/v2/pets/..%2F..%2Fadmin"),
        ("..\\admin", "/v2/pets/..%5Cadmin"),
        ("{petId}", "/v2/pets/%7BpetId%7D"),
        ("//evil.example", "/v2/pets/%2F%2Fevil.example"),
    ] {
        call(&opened, 2, json!({"path": {"petId": value}})).await.unwrap();
        assert_eq!(site.lines().pop().unwrap(), format!("GET {sent}"));
    }
}

#[tokio::test]
async fn only_what_is_listed_is_offered() {
    let site = site(TWO).await;
    let listed = json!({"operations": ["getPet", "delete /pets/{petId}", "uploadPhoto", "unknown"]});
    assert_eq!(names(&opened(&site, listed).await), ["my_tool_getPet", "my_tool_delete_pets_petId"]);
    let none = opened(&site, json!({"operations": ["uploadPhoto"]})).await;
    let error = call(&none, 0, json!({})).await.unwrap_err().to_string();
    assert!(error.contains("none of the tool's `operations`"), "{error}");
}

#[tokio::test]
async fn base_url_wins_over_what_the_document_says() {
    for document in [TWO, THREE, THREE_ONE] {
        let elsewhere = Site::new(|_| json(&json!({}))).await;
        let site = site(document).await;
        let more = json!({"headers": {"X-Own": KEY}, "base_url": format!("{}/api/", elsewhere.base)});
        let opened = opened(&site, more).await;
        call(&opened, 2, json!({"path": {"petId": "1"}})).await.unwrap();
        assert_eq!(elsewhere.lines(), ["GET /api/pets/1"]);
        assert_eq!(elsewhere.seen()[0].header("x-own"), Some(KEY));
        // The document is somewhere else than the API that the headers are for.
        assert_eq!(site.seen()[0].header("x-own"), None);
    }
}

#[tokio::test]
async fn values_are_written_as_their_styles_say() {
    let document = json!({
        "openapi": "3.0.0",
        "paths": {"/a/{list}/{object}": {"get": {"operationId": "get", "parameters": [
            {"name": "list", "in": "path", "schema": {"type": "array"}},
            {"name": "object", "in": "path", "explode": true, "schema": {"type": "object"}},
            {"name": "space", "in": "query", "style": "spaceDelimited", "explode": false, "schema": {"type": "array"}},
            {"name": "pipe", "in": "query", "style": "pipeDelimited", "explode": false, "schema": {"type": "array"}},
            {"name": "deep", "in": "query", "style": "deepObject", "explode": true, "schema": {"type": "object"}},
            {"name": "form", "in": "query", "schema": {"type": "object"}},
            {"name": "flat", "in": "query", "explode": false, "schema": {"type": "object"}},
            {"name": "json", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
            {"name": "empty", "in": "query", "schema": {"type": "array"}},
            {"name": "odd[name]", "in": "query", "schema": {}},
            {"name": "X-List", "in": "header", "schema": {"type": "array"}},
            {"name": "label", "in": "query", "style": "label", "schema": {}},
        ]}}},
    });
    let site = site(&document.to_string()).await;
    let opened = opened(&site, json!({})).await;
    let arguments = json!({
        "path": {"list": ["a", "b,c"], "object": {"k": "v", "l": 1}},
        "query": {
            "space": ["a", "b"], "pipe": [1, 2], "deep": {"from": 1, "to": "x y"}, "form": {"f": 1, "g": true},
            "flat": {"h": 1}, "json": {"a": [1]}, "empty": [], "odd[name]": false,
        },
        "header": {"X-List": ["a", "b"]},
    });
    call(&opened, 0, arguments).await.unwrap();
    let seen = site.seen().pop().unwrap();
    assert_eq!(
        seen.line,
        "GET /a/a,b%2Cc/k=v,l=1?space=a%20b&pipe=1%7C2&deep[from]=1&deep[to]=x%20y&f=1&g=true&flat=h,1\
         &json=%7B%22a%22%3A%5B1%5D%7D&odd%5Bname%5D=false"
    );
    assert_eq!(seen.header("x-list"), Some("a,b"));
}

#[tokio::test]
async fn answers_are_given_back_as_what_they_are() {
    let long = "line\n".repeat(40_000);
    for (reply, expected) in [
        (
            Reply::Body(
                200,
                "application/json",
                b"{\n  \"a b\\\\\": 12345678901234567890123 ,\n\"\\\" \": 1.10 }".into(),
            ),
            "Status 200\n{\"a b\\\\\":12345678901234567890123,\"\\\" \":1.10}",
        ),
        (Reply::Body(200, "application/problem+json", b"{ }".into()), "Status 200\n{}"),
        (Reply::Body(204, "text/plain", Vec::new()), "Status 204, without content."),
        (Reply::Body(200, "application/json", b"not json".into()), "Status 200\nnot json"),
        (Reply::Body(200, "image/png", vec![0; 10]), "Status 200, 10 bytes, image/png, which is not shown."),
        (
            Reply::Body(200, "application/json", vec![0xff; 10]),
            "Status 200, 10 bytes, application/json, which is not shown.",
        ),
        (Reply::Body(200, "text/csv", long.into()), "Status 200\nline\nline\n"),
    ] {
        let site =
            Site::new(
                move |seen| {
                    if seen.line == "GET /docs/openapi" { text(200, THREE_ONE) } else { reply.clone() }
                },
            )
            .await;
        let answer = call(&opened(&site, json!({})).await, 2, json!({"path": {"petId": "1"}})).await.unwrap();
        assert!(answer.starts_with(expected), "{expected}: {answer}");
        assert!(answer.len() < 66_000);
    }
}

#[tokio::test]
async fn a_call_that_the_api_refuses_is_a_failure_in_its_own_words() {
    for (reply, told) in [
        (
            Reply::Body(404, "application/json", b"{ \"error\": \"no pet\" }".into()),
            "Status 404\n{\"error\":\"no pet\"}",
        ),
        (text(500, "out of pets"), "Status 500\nout of pets"),
        (text(401, "who are you?"), "Status 401\nwho are you?"),
        (Reply::Body(503, "text/plain", Vec::new()), "Status 503, without content."),
    ] {
        let site =
            Site::new(
                move |seen| {
                    if seen.line == "GET /docs/openapi" { text(200, THREE_ONE) } else { reply.clone() }
                },
            )
            .await;
        let refused = call(&opened(&site, json!({})).await, 2, json!({"path": {"petId": "1"}})).await;
        assert_eq!(refused, Err(ToolError::Reported(told.to_owned())));
    }
}

#[tokio::test]
async fn a_body_that_a_redirect_would_drop_is_a_failure_and_one_that_it_keeps_is_sent_on() {
    let moved = "The API answered with a redirect, and what was sent is not sent on; set `base_url` to the new address.";
    let post = "POST /v2/pets";
    for (status, target, sent) in [
        (301, "/v2/animals", vec![post]),
        (302, "/v2/animals", vec![post]),
        (303, "/v2/animals", vec![post, "GET /v2/animals"]),
        (307, "/v2/animals", vec![post, "POST /v2/animals"]),
        (308, "http://127.0.0.9:1/v2/pets", vec![post]),
    ] {
        let site = Site::new(move |seen| match seen.line.as_str() {
            "GET /docs/openapi" => text(200, THREE_ONE),
            "POST /v2/pets" => Reply::To(status, target.to_owned()),
            _ => json(&json!({"done": true})),
        })
        .await;
        let told = call(&opened(&site, json!({})).await, 1, json!({"body": {"name": "Tom"}})).await;
        let expected = match sent.len() {
            1 => Err(failure(moved)),
            _ => Ok("Status 200\n{\"done\":true}".to_owned()),
        };
        assert_eq!(told, expected, "{status}");
        assert_eq!(site.lines()[1..], sent, "{status}");
    }
}

#[tokio::test]
async fn of_an_answer_that_is_too_large_the_beginning_is_told_and_that_it_is_one() {
    let list = format!("[{}\"end\"]", "{\"name\":\"Bärbel\"},".repeat(400_000));
    for (kind, body, told) in [
        ("application/json", list.into_bytes(), Some("[{\"name\":\"Bärbel\"},{\"name\"")),
        // It is cut within a character, too.
        ("application/json", format!("x{}", "é".repeat(600_000)).into_bytes(), Some("xéé")),
        ("text/csv", "name,age\n".repeat(700_000).into_bytes(), Some("name,age\nname")),
        ("application/zip", vec![0; 6_000_000], None),
    ] {
        let site = Site::new(move |seen| {
            if seen.line == "GET /docs/openapi" {
                let host = seen.header("host").unwrap_or_default();
                Reply::Body(200, "text/plain", THREE.replace("HOST", host).into())
            } else {
                Reply::Body(200, kind, body.clone())
            }
        })
        .await;
        let opened = opened(&site, json!({})).await;
        let answer = call(&opened, 2, json!({"path": {"petId": "1"}})).await.unwrap();
        let Some(told) = told else {
            assert_eq!(answer, format!("Status 200, more than 1048576 bytes, {kind}, which is not shown."));
            continue;
        };
        assert!(answer.starts_with(&format!("Status 200\n{told}")), "{kind}: {:?}", answer.get(..40));
        let (_, note) = answer.rsplit_once('\n').unwrap();
        let is_note = note.starts_with("[The rest was left out") && note.contains(" of more than 104857");
        assert!(is_note, "{kind}: {note}");
        assert!(answer.len() < 65 * 1024, "{kind}: {}", answer.len());
    }
}

#[tokio::test]
async fn a_document_that_cannot_be_had_or_read_leaves_a_function_that_says_why() {
    for (reply, told) in [
        (text(404, KEY), "could not be fetched: its server refused the request (status 404)."),
        (text(403, KEY), "could not be fetched: its server rejected the credentials of this tool."),
        (Reply::Body(200, "text/html", b"<html><body>hello</body></html>".into()), "is no OpenAPI document"),
        (text(200, "{\"openapi\": \"4.0\"}"), "is no OpenAPI document of version 2.0, 3.0 or 3.1."),
        (text(200, "{\"openapi\": \"3.0.0\""), "is neither JSON nor YAML"),
        (text(200, "{\"openapi\": \"3.0.0\", \"paths\": []}"), "has no operation that can be called."),
        (Reply::Body(200, "text/plain", vec![0xff; 10]), "is neither JSON nor YAML"),
        (Reply::Body(200, "text/plain", vec![b'['; 2 * 1024 * 1024]), "is neither JSON nor YAML"),
        (
            Reply::Body(200, "text/plain", vec![b'x'; 2 * 1024 * 1024 + 1]),
            "gave an answer that is too large.",
        ),
        (
            Reply::Raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
            "gave an answer that could not be read.",
        ),
        (Reply::Raw("nonsense"), "could not be read."),
    ] {
        let site = Site::new(move |_| reply.clone()).await;
        let opened = opened(&site, json!({"headers": {"X-Own": KEY}})).await;
        assert_eq!(names(&opened), ["my_tool"]);
        let error = call(&opened, 0, json!({"input": "x"})).await.unwrap_err().to_string();
        assert!(error.starts_with("The OpenAPI document ") && error.contains(told), "{told}: {error}");
        assert!(!error.contains(KEY));
    }
}

#[tokio::test]
async fn a_document_that_would_unfold_without_end_is_cut() {
    let mut schemas = serde_json::Map::new();
    for level in 0..30 {
        let below = json!({"$ref": format!("#/components/schemas/S{}", level + 1)});
        let properties: serde_json::Map<_, _> = (0..10).map(|n| (format!("p{n}"), below.clone())).collect();
        schemas.insert(format!("S{level}"), json!({"type": "object", "properties": properties}));
    }
    schemas.insert("S30".to_owned(), json!({"type": "string", "description": "x".repeat(100_000)}));
    let body = json!({"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}});
    let paths: serde_json::Map<_, _> =
        (0..500).map(|n| (format!("/p{n}"), json!({"post": {"requestBody": body}}))).collect();
    let mut document = json!({"openapi": "3.1.0", "paths": paths, "components": {"schemas": schemas}});
    document["paths"]["/loop"] = json!({"$ref": "#/paths/~1loop"});
    let site = site(&document.to_string()).await;
    let opened = opened(&site, json!({})).await;
    assert_eq!(opened.tool.functions().len(), 64);
    for function in opened.tool.functions() {
        let size = function.spec.parameters.to_string().len();
        assert!((1_000..60_000).contains(&size), "{size}");
    }
}

#[tokio::test]
async fn what_a_path_leaves_open_is_asked_for() {
    let document = json!({"openapi": "3.1.0", "paths": {"/a/{x}/b": {"get": {
        "parameters": [{"name": "y", "in": "path", "required": true, "schema": {}}],
    }}}});
    let site = site(&document.to_string()).await;
    let opened = opened(&site, json!({})).await;
    let group = &opened.tool.functions()[0].spec.parameters["properties"]["path"];
    assert_eq!(group["properties"], json!({"x": {"type": "string"}}));
    call(&opened, 0, json!({"path": {"x": "1"}})).await.unwrap();
    assert_eq!(site.lines()[1], "GET /a/1/b");
}
