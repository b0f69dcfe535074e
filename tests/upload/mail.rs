//! E-mails that are uploaded.

use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::json;

use super::{Form, ingest, upload};
use crate::{
    ingestion::chunks,
    support::{
        client::{data, id, send},
        in_both_modes,
        service::{Mode, Service},
    },
};

in_both_modes!(an_e_mail_is_read_as_who_wrote_it_and_what_it_says);

async fn an_e_mail_is_read_as_who_wrote_it_and_what_it_says(mode: Mode) {
    let service = Service::in_mode(mode).start().await;
    let ada = service.signed_up("ada@example.com").await;
    let mail = "Subject: =?utf-8?Q?Die_M=C3=BChle?=\r\nFrom: Eve <eve@example.com>\r\nMIME-Version: 1.0\r\n\
                Content-Type: multipart/mixed; boundary=b\r\n\r\n\
                --b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n\
                RGFzIE3DvGhscmFkIHN0ZWh0IHN0aWxsLg==\r\n\
                --b\r\nContent-Type: application/pdf; name=plan.pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n\
                JVBERi0xLjQ=\r\n--b--\r\n";
    // By its name, by its type, and by what it says itself.
    for (name, content_type) in [
        ("letter.eml", "application/octet-stream"),
        ("letter", "message/rfc822"),
        ("1700000000.M1P2.host", "text/plain"),
    ] {
        let document = ingest(&ada, Form::default().typed_file(name, content_type, mail.as_bytes())).await;
        assert_eq!((&document["type"], &document["name"]), (&json!("TXT"), &json!(name)));
        let ingestion = &document["ingestion"];
        assert_eq!(ingestion["source"]["title"], "Die Mühle", "{ingestion:#}");
        assert_eq!(ingestion["warnings"][0]["code"], "unread_attachments", "{ingestion:#}");
        assert_eq!(
            chunks(&ada, id(&document)).await[0]["text"],
            "Subject: Die Mühle\nFrom: Eve <eve@example.com>\nAttachments: plan.pdf\n\nDas Mühlrad steht still."
        );
        let file = send(ada.request(Method::GET, &format!("/documents/{}/source", id(&document)))).await;
        assert_eq!(file.headers()[CONTENT_TYPE], "message/rfc822", "{name}");
    }
    let page = b"From: <Saved by Blink>\nContent-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n\
                 <title>Mills</title><p>The mill stands by the river.</p>\n--b--\n";
    let archive = ingest(&ada, Form::default().file("page.mht", page)).await;
    assert_eq!(archive["ingestion"]["source"]["title"], "Mills", "{archive:#}");
    let said = chunks(&ada, id(&archive)).await[0]["text"].to_string();
    assert!(said.contains("The mill stands by the river."), "{said}");
    let secret = b"From: eve@example.com\nContent-Type: multipart/encrypted; boundary=b\n\n--b\n\n--b--\n";
    let document = data(upload(&ada, Form::default().file("secret.eml", secret)).await);
    let failed = ada.wait_until_ingested(id(&document)).await;
    assert_eq!(failed["ingestion"]["error"]["code"], "unsupported_content_type", "{failed:#}");
}
