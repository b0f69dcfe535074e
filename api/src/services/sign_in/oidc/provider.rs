//! The provider: its own description and keys, the way to it, and what it answers. What is said of tokens is checked here, and
//! nothing is believed before.

use std::{fmt::Display, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use lectern_shared::{
    clock::Timestamp,
    config::OidcSettings,
    egress::{Egress, EgressError, EgressRequest, RequestLimits},
};
use openidconnect::{
    AsyncHttpClient, AuthType, AuthenticationFlow, AuthorizationCode, ClaimsVerificationError, Client,
    ClientId, ClientSecret, CsrfToken, DiscoveryError, EmptyExtraTokenFields, EndpointMaybeSet,
    EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, IdTokenFields, IdTokenVerifier, IssuerUrl, Nonce,
    OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    SignatureVerificationError, StandardErrorResponse, StandardTokenResponse, TokenResponse, UserInfoClaims,
    UserInfoError,
    core::{
        CoreAuthDisplay, CoreAuthPrompt, CoreClientAuthMethod, CoreErrorResponseType, CoreGenderClaim,
        CoreJsonWebKey, CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata,
        CoreResponseType, CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse,
        CoreTokenType,
    },
    http::StatusCode,
};
use parking_lot::Mutex;
use secrecy::ExposeSecret;
use url::Url;

use super::{
    claims::{ClaimSet, ProviderClaims, ProviderIdentity},
    failure::OidcFailure,
    sealed::PendingSignIn,
};

/// Where the provider sends browsers back to, behind the public address.
const CALLBACK: &str = "/api/v1/auth/oidc/callback";
/// How long the provider's description and keys are taken for what they are.
const FRESH: Duration = Duration::from_mins(5);
/// Longest subject, in bytes: what the standard allows.
const LONGEST_SUBJECT: usize = 255;
/// What one answer of the provider may take.
const LIMITS: RequestLimits = RequestLimits {
    max_bytes: 1 << 20,
    total_timeout: Duration::from_secs(10),
    idle_timeout: Duration::from_secs(5),
};
/// Signatures by a key that the provider alone has. Those by the client's secret, and none at all, are not among them.
const SIGNATURES: [CoreJwsSigningAlgorithm; 2] =
    [CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256, CoreJwsSigningAlgorithm::EcdsaP256Sha256];

type ProviderTokens = StandardTokenResponse<
    IdTokenFields<
        ProviderClaims,
        EmptyExtraTokenFields,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;

/// This service as a client of the provider, which is asked where its endpoints are.
type ProviderClient = Client<
    ProviderClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    ProviderTokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// The provider.
pub(super) struct OidcProvider {
    settings: OidcSettings,
    callback: RedirectUrl,
    http: ProviderHttp,
    /// What it said of itself, and when.
    described: Mutex<Option<(Timestamp, Arc<ProviderClient>)>>,
}

/// The library's way to the provider.
struct ProviderHttp(Egress);

impl OidcProvider {
    pub(super) fn new(settings: OidcSettings, egress: Egress) -> Self {
        let mut callback = settings.public_url.clone();
        let path = format!("{}{CALLBACK}", callback.path().trim_end_matches('/'));
        callback.set_path(&path);
        let callback = RedirectUrl::from_url(callback);
        Self { settings, callback, http: ProviderHttp(egress), described: Mutex::default() }
    }

    /// Where somebody is sent who wants to sign in.
    ///
    /// # Errors
    /// When the provider is away.
    pub(super) async fn authorization_url(
        &self,
        pending: &PendingSignIn,
        now: Timestamp,
    ) -> Result<Url, OidcFailure> {
        let client = self.client(now).await?;
        let (state, nonce) = (CsrfToken::new(pending.state.clone()), Nonce::new(pending.nonce.clone()));
        let verifier = PkceCodeVerifier::new(pending.verifier.clone());
        // The library asks for `openid` by itself.
        let scopes = self.settings.scopes.iter().filter(|scope| *scope != "openid");
        let flow = AuthenticationFlow::<CoreResponseType>::AuthorizationCode;
        let (url, _, _) = client
            .authorize_url(flow, move || state, move || nonce)
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .add_scopes(scopes.map(|scope| Scope::new(scope.clone())))
            .url();
        Ok(url)
    }

    /// Who it is that comes back with a code.
    ///
    /// # Errors
    /// When the provider is away, does not take the code, or answers what cannot be believed.
    pub(super) async fn identity(
        &self,
        code: String,
        pending: &PendingSignIn,
        now: Timestamp,
    ) -> Result<ProviderIdentity, OidcFailure> {
        let mut client = self.client(now).await?;
        let tokens = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| away(&error))?
            .set_pkce_verifier(PkceCodeVerifier::new(pending.verifier.clone()))
            .request_async(&self.http)
            .await
            .map_err(|error| match error {
                RequestTokenError::Request(cause) => away(&cause),
                error => not_believed(&error),
            })?;
        let token = tokens.id_token().ok_or_else(|| not_believed(&"there is no ID token"))?;
        let nonce = Nonce::new(pending.nonce.clone());
        let mut claims = token.claims(&verifier(&client, now), &nonce);
        let is_other_key = matches!(
            &claims,
            Err(ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey))
        );
        if is_other_key {
            // The provider's keys may have changed.
            client = self.describe(now).await?;
            claims = token.claims(&verifier(&client, now), &nonce);
        }
        let claims = claims.map_err(|error| match &error {
            ClaimsVerificationError::SignatureVerification(cause) => not_believed(cause),
            error => not_believed(error),
        })?;
        let subject = claims.subject();
        if subject.len() > LONGEST_SUBJECT || subject.chars().any(char::is_control) {
            return Err(not_believed(&"the subject is not one"));
        }
        let told =
            ClaimSet::new(claims.email(), claims.email_verified(), claims.name(), claims.additional_claims());
        let roles = self.settings.roles.as_ref();
        if told.is_enough(roles) || client.user_info_url().is_none() {
            return Ok(ProviderIdentity::new(subject.as_str(), &told, None, roles));
        }
        let info: UserInfoClaims<ProviderClaims, CoreGenderClaim> = client
            .user_info(tokens.access_token().clone(), Some(subject.clone()))
            .map_err(|error| away(&error))?
            .request_async(&self.http)
            .await
            .map_err(|error| match error {
                UserInfoError::Request(cause) => away(&cause),
                error => not_believed(&error),
            })?;
        let info = ClaimSet::new(info.email(), info.email_verified(), info.name(), info.additional_claims());
        Ok(ProviderIdentity::new(subject.as_str(), &told, Some(&info), roles))
    }

    /// The client, by what the provider said of itself of late.
    async fn client(&self, now: Timestamp) -> Result<Arc<ProviderClient>, OidcFailure> {
        let known = self.described.lock().clone();
        match known {
            Some((at, client)) if now.since(at) < FRESH => Ok(client),
            Some(_) | None => self.describe(now).await,
        }
    }

    /// Asks the provider where its endpoints are, and for its keys.
    async fn describe(&self, now: Timestamp) -> Result<Arc<ProviderClient>, OidcFailure> {
        let issuer = IssuerUrl::new(self.settings.issuer.clone()).map_err(|error| away(&error))?;
        let metadata = CoreProviderMetadata::discover_async(issuer, &self.http).await;
        let metadata = metadata.map_err(|error| match error {
            DiscoveryError::Request(cause) => away(&cause),
            error => away(&error),
        })?;
        let methods = metadata.token_endpoint_auth_methods_supported();
        // The standard's default, unless the provider takes only the other one.
        let takes = |method| methods.is_none_or(|methods| methods.contains(&method));
        let by_body =
            !takes(CoreClientAuthMethod::ClientSecretBasic) && takes(CoreClientAuthMethod::ClientSecretPost);
        let auth = if by_body { AuthType::RequestBody } else { AuthType::BasicAuth };
        let secret = self.settings.client_secret.as_ref();
        let secret = secret.map(|secret| ClientSecret::new(secret.expose_secret().to_owned()));
        let id = ClientId::new(self.settings.client_id.clone());
        let client = ProviderClient::from_provider_metadata(metadata, id, secret)
            .set_auth_type(auth)
            .set_redirect_uri(self.callback.clone());
        let client = Arc::new(client);
        *self.described.lock() = Some((now, Arc::clone(&client)));
        Ok(client)
    }
}

/// Checks signature, issuer, audience and time. The nonce is given with the token.
fn verifier(client: &ProviderClient, now: Timestamp) -> IdTokenVerifier<'_, CoreJsonWebKey> {
    // A time that cannot be told is after the end of every token.
    let now = DateTime::<Utc>::from_timestamp_micros(now.as_micros()).unwrap_or(DateTime::<Utc>::MAX_UTC);
    client.id_token_verifier().set_allowed_algs(SIGNATURES).set_time_fn(move || now)
}

fn away(error: &impl Display) -> OidcFailure {
    tracing::warn!(%error, "the provider of OpenID Connect cannot be used");
    OidcFailure::Away
}

fn not_believed(error: &impl Display) -> OidcFailure {
    tracing::warn!(%error, "what the provider of OpenID Connect answers is not believed");
    OidcFailure::Token
}

impl ProviderHttp {
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, EgressError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())
            .map_err(|_| EgressError::InvalidUrl { reason: "it is not a valid web address" })?;
        let mut outgoing = EgressRequest::new(parts.method, url, LIMITS);
        outgoing.headers = parts.headers;
        outgoing.body = (!body.is_empty()).then(|| Bytes::from(body));
        // The provider says where its endpoints are: nothing else leads elsewhere.
        outgoing.follow_redirects = false;
        let answer = self.0.send(outgoing).await?;
        let (status, headers) = (answer.status, answer.headers.clone());
        let mut response = HttpResponse::new(answer.bytes().await?.to_vec());
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        *response.headers_mut() = headers;
        Ok(response)
    }
}

impl<'c> AsyncHttpClient<'c> for ProviderHttp {
    type Error = EgressError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, EgressError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.exchange(request))
    }
}
