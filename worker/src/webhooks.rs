//! Tells events to webhooks, as Standard Webhooks 1.0 has it: signed, tried again on a schedule, at least once.

use std::{collections::HashMap, hash::Hash, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::{StreamExt, stream::FuturesUnordered};
use hmac::{Hmac, KeyInit, Mac};
use lectern_db::{
    DbError,
    webhooks::{self, AttemptResult, DueDelivery, OF_EACH, OF_WORKSPACE},
};
use lectern_runtime::Runtime;
use lectern_shared::{
    clock::Timestamp,
    egress::{EgressRequest, RequestLimits},
    ids::{WebhookId, WorkspaceId},
    model::webhook::WebhookSecrets,
    retry::{JitterRange, jitter, retry_after},
    secrets::CiphertextLocation,
    shutdown::Shutdown,
};
use reqwest::{
    Method,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT},
};
use secrecy::ExposeSecret;
use sha2::Sha256;
use url::Url;

/// How often it is looked for what is due.
const EVERY: Duration = Duration::from_millis(500);
/// How often, after the store has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// Deliveries that are under way at once. Those of one webhook and of one workspace are fewer, and half of the places are for workspaces
/// that have none, so that receivers that hang keep nobody else's waiting.
const AT_ONCE: usize = 32;
/// Due deliveries that are looked at, at a time.
const LOOKED_AT: u32 = 200;
/// How long a receiver may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// When a delivery may be tried by another process, if the one that tries it goes away: longer than an attempt takes.
const ABANDONED: Duration = Duration::from_mins(1);
/// The pauses between attempts. The first attempt is made at once, and after the last one a delivery is given up.
const PAUSES: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(14),
    Duration::from_hours(20),
    Duration::from_hours(24),
];

/// What a receiver answers that wants nothing any more.
const GONE: u16 = 410;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Starts to deliver in the background; it ends with `shutdown`, after what is under way.
pub(crate) fn start(runtime: Runtime, shutdown: &Shutdown) {
    let soft = shutdown.soft().clone();
    shutdown.spawn(async move {
        let mut failing = false;
        let mut attempts = FuturesUnordered::new();
        let mut under_way = UnderWay::default();
        loop {
            let worked = webhooks::due(&runtime.db, runtime.jobs.now(), LOOKED_AT).await;
            // One line for an outage, not one for every try.
            if let Some(error) = worked.as_ref().err().filter(|_| !failing) {
                tracing::warn!(%error, "what is to be told to webhooks cannot be read; trying again");
            }
            failing = worked.is_err();
            for due in worked.unwrap_or_default() {
                if under_way.begin(Receiver::of(&due)) {
                    attempts.push(attempt(&runtime, due));
                }
            }
            tokio::select! {
                biased;
                () = soft.cancelled() => break,
                Some(receiver) = attempts.next(), if !attempts.is_empty() => under_way.end(receiver),
                () = tokio::time::sleep(if failing { AFTER_FAILURE } else { EVERY }) => {}
            }
        }
        while attempts.next().await.is_some() {}
    });
}

/// Where a delivery goes, and whose it is.
#[derive(Clone, Copy, Debug)]
struct Receiver {
    workspace: WorkspaceId,
    webhook: WebhookId,
}

impl Receiver {
    fn of(due: &DueDelivery) -> Self {
        Self { workspace: due.delivery.workspace_id, webhook: due.delivery.webhook_id }
    }
}

/// How many deliveries are under way.
#[derive(Debug, Default)]
struct UnderWay {
    all: usize,
    of_workspace: HashMap<WorkspaceId, usize>,
    of_webhook: HashMap<WebhookId, usize>,
}

impl UnderWay {
    /// Notes that a delivery begins; false if it may not yet.
    fn begin(&mut self, Receiver { workspace, webhook }: Receiver) -> bool {
        let of_workspace = self.of_workspace.get(&workspace).copied().unwrap_or_default();
        let of_webhook = self.of_webhook.get(&webhook).copied().unwrap_or_default();
        let most = if self.all < AT_ONCE / 2 { OF_WORKSPACE } else { 1 };
        if self.all >= AT_ONCE || of_workspace >= most || of_webhook >= OF_EACH {
            return false;
        }
        self.all += 1;
        self.of_workspace.insert(workspace, of_workspace + 1);
        self.of_webhook.insert(webhook, of_webhook + 1);
        true
    }

    /// Notes that one is under way no more.
    fn end(&mut self, Receiver { workspace, webhook }: Receiver) {
        self.all -= 1;
        one_less(&mut self.of_workspace, workspace);
        one_less(&mut self.of_webhook, webhook);
    }
}

fn one_less<K: Copy + Eq + Hash>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

/// Tries one delivery; whose it is.
async fn attempt(runtime: &Runtime, due: DueDelivery) -> Receiver {
    let receiver = Receiver::of(&due);
    if let Err(error) = try_and_note(runtime, &due).await {
        // It is tried again when it is due again.
        tracing::warn!(%error, webhook = %receiver.webhook, "what came of a delivery cannot be noted");
    }
    receiver
}

/// Tries one delivery, and notes what came of it.
async fn try_and_note(runtime: &Runtime, due: &DueDelivery) -> Result<(), DbError> {
    let delivery = &due.delivery;
    let mut tx = runtime.db.begin_essential().await?;
    let is_ours = webhooks::claim(&mut tx, delivery, runtime.jobs.now().plus(ABANDONED)).await?;
    tx.commit().await?;
    if !is_ours {
        return Ok(());
    }
    let number = delivery.attempts + 1;
    let sent = send(runtime, due).await;
    let now = runtime.jobs.now();
    let mut tx = runtime.db.begin_essential().await?;
    let (status, error, asked) = match &sent {
        Ok(status) => (Some(*status), None, None),
        Err(failure) => (failure.status, Some(failure.words.as_str()), failure.retry_after),
    };
    let is_gone = status == Some(GONE);
    let retry_at = error.filter(|_| !is_gone).and_then(|_| pause_after(number)).map(|pause| {
        let pause = jitter(pause, JitterRange::Fifth);
        // A receiver may ask for more time, within the longest pause.
        now.plus(asked.unwrap_or_default().min(Duration::from_hours(24)).max(pause))
    });
    let result = AttemptResult { status, error, retry_at };
    webhooks::finish(&mut tx, delivery.id, number, &result, now).await?;
    if is_gone {
        let why = "The receiver answered 410 Gone, which means that it wants no more events.";
        webhooks::disable(&mut tx, delivery.webhook_id, &due.address, why, now).await?;
    }
    tx.commit().await?;
    let (webhook, event) = (delivery.webhook_id, delivery.event);
    if let Some(error) = error {
        tracing::info!(%webhook, %event, attempt = number, error, "an event was not delivered");
    } else {
        tracing::debug!(%webhook, %event, attempt = number, "an event was delivered");
    }
    Ok(())
}

/// The pause after an attempt that failed; none after the last one.
fn pause_after(attempt: i64) -> Option<Duration> {
    usize::try_from(attempt).ok()?.checked_sub(1).and_then(|failed| PAUSES.get(failed)).copied()
}

/// Why a receiver has not taken a delivery.
struct DeliveryFailure {
    status: Option<u16>,
    words: String,
    retry_after: Option<Duration>,
}

impl DeliveryFailure {
    fn new(words: impl Into<String>) -> Self {
        Self { status: None, words: words.into(), retry_after: None }
    }
}

/// Sends a delivery, signed, and returns the status of the answer if that means that it was taken.
async fn send(runtime: &Runtime, due: &DueDelivery) -> Result<u16, DeliveryFailure> {
    let delivery = &due.delivery;
    let url = due.address.open(&runtime.keyring, delivery.webhook_id).ok();
    let url = url.and_then(|url| Url::parse(&url).ok());
    let url = url.ok_or_else(|| DeliveryFailure::new("The address cannot be read."))?;
    let place = CiphertextLocation::webhook_secret(delivery.webhook_id.as_uuid());
    let secrets = runtime.keyring.decrypt_text(place, &due.secret_sealed).ok();
    let secrets: Option<WebhookSecrets> =
        secrets.and_then(|text| serde_json::from_str(text.expose_secret()).ok());
    // Nothing is ever sent without a signature.
    let secrets = secrets.ok_or_else(|| DeliveryFailure::new("The secret cannot be read; set a new one."))?;
    let id = format!("msg_{}", delivery.id);
    let now = runtime.jobs.now();
    let signature = signatures(&secrets, &id, &delivery.body, now)
        .ok_or_else(|| DeliveryFailure::new("The secret cannot be read; set a new one."))?;
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (CONTENT_TYPE, "application/json".to_owned()),
        (USER_AGENT, "Lectern".to_owned()),
        (ID, id),
        (TIMESTAMP, now.as_secs().to_string()),
        (SIGNATURE, signature),
    ] {
        let value = HeaderValue::try_from(value).map_err(|_| DeliveryFailure::new("It cannot be sent."))?;
        headers.insert(name, value);
    }
    // The status alone decides. Nothing of the body is read, so it may be as long as it says.
    let limits = RequestLimits { total_timeout: PATIENCE, idle_timeout: PATIENCE, max_bytes: u64::MAX };
    let request = EgressRequest {
        headers,
        body: Some(Bytes::from(delivery.body.clone())),
        // A receiver that has moved says so to whoever set the address.
        follow_redirects: false,
        ..EgressRequest::new(Method::POST, url, limits)
    };
    let answer =
        runtime.egress.send(request).await.map_err(|error| DeliveryFailure::new(format!("{error}.")))?;
    let status = answer.status;
    if (200..300).contains(&status) {
        return Ok(status);
    }
    Err(DeliveryFailure {
        status: Some(status),
        words: format!("The receiver answered {status}."),
        retry_after: retry_after(&answer.headers),
    })
}

/// The signatures of a message: by the secret, and by those before it as long as they count.
fn signatures(secrets: &WebhookSecrets, id: &str, body: &str, now: Timestamp) -> Option<String> {
    let signed = secrets.in_force(now).map(|secret| signature(secret, id, body, now));
    signed.collect::<Option<Vec<_>>>().map(|signed| signed.join(" "))
}

fn signature(secret: &str, id: &str, body: &str, now: Timestamp) -> Option<String> {
    let key = STANDARD.decode(secret.strip_prefix("whsec_")?).ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{}.{body}", now.as_secs()).as_bytes());
    Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_signed_as_the_specification_shows_it() {
        // The example of the specification's own libraries.
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let now = Timestamp::from_micros(1_614_265_330_000_000);
        let signed = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "{\"test\": 2432232314}", now);
        assert_eq!(signed.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
        assert_eq!(signature("MfKQ", "id", "{}", now), None, "a secret of another form signs nothing");
    }

    #[test]
    fn both_secrets_sign_until_the_earlier_one_counts_no_more() {
        let secret = |letter: &str| format!("whsec_{}", STANDARD.encode(letter.repeat(24)));
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        let secrets = WebhookSecrets::new(secret("b")).renewed(secret("a"), at(0), at(100));
        let count = |seconds| signatures(&secrets, "id", "{}", at(seconds)).unwrap().split(' ').count();
        assert_eq!((count(99), count(100)), (2, 1));
    }

    #[test]
    fn ten_attempts_are_made_over_three_days() {
        assert_eq!(pause_after(1), Some(Duration::from_secs(5)));
        assert_eq!(pause_after(9), Some(Duration::from_hours(24)));
        assert_eq!((pause_after(10), pause_after(0)), (None, None));
        assert!(PAUSES.iter().sum::<Duration>() > Duration::from_hours(72));
    }

    #[test]
    fn receivers_that_hang_keep_nobody_elses_deliveries_waiting() {
        let mut under_way = UnderWay::default();
        let receivers = |workspace: WorkspaceId| {
            (0..20).map(move |_| Receiver { workspace, webhook: WebhookId::generate() }).collect::<Vec<_>>()
        };
        let (ours, theirs) = (receivers(WorkspaceId::generate()), receivers(WorkspaceId::generate()));
        // Two of each webhook, and four of the workspace.
        let begun = ours.iter().flat_map(|one| [*one; 3]).filter(|one| under_way.begin(*one)).count();
        assert_eq!((begun, under_way.begin(ours[19])), (OF_WORKSPACE, false));
        assert_eq!([theirs[0]; 3].map(|one| under_way.begin(one)), [true, true, false]);
        under_way.end(ours[0]);
        assert_eq!([ours[1], ours[5]].map(|one| under_way.begin(one)), [false, true]);
        // However many have something to tell, so many are under way.
        let others = (0..AT_ONCE).filter(|_| under_way.begin(receivers(WorkspaceId::generate())[0])).count();
        assert_eq!((others, under_way.all), (AT_ONCE - OF_WORKSPACE - 2, AT_ONCE));
        for one in [ours[0], ours[1], ours[1], ours[5], theirs[0], theirs[0]] {
            under_way.end(one);
        }
        assert_eq!((under_way.of_workspace.len(), under_way.of_webhook.len()), (others, others));
    }

    #[test]
    fn half_of_the_places_are_for_workspaces_that_have_none() {
        let mut under_way = UnderWay::default();
        let mut begin = |workspace| under_way.begin(Receiver { workspace, webhook: WebhookId::generate() });
        let hanging = [(); 8].map(|()| WorkspaceId::generate());
        let of_each = hanging.map(|workspace| (0..20).filter(|_| begin(workspace)).count());
        assert_eq!(of_each, [4, 4, 4, 4, 1, 1, 1, 1]);
        let others = (0..AT_ONCE).filter(|_| begin(WorkspaceId::generate())).count();
        assert_eq!(others, AT_ONCE / 2 - 4);
    }
}
