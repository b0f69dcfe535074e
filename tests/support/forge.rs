//! Tokens that the service did not make: right in every way, and wrong in one thing each.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use lectern_shared::secrets::Keyring;
use secrecy::SecretString;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::Client;

/// The key of a service whose tokens are forged.
pub const SECRET: &str = "the secret key of a service whose tokens are forged";

/// Signs tokens as the service with that secret does, and in ways in which it does not.
pub struct Forge(Vec<u8>);

impl Forge {
    /// A forger who knows the service's key.
    pub fn new(secret: &str) -> Self {
        let keyring = Keyring::new(&SecretString::from(secret), None).expect("a secret that is long enough");
        Self(keyring.jwt_keys().next().expect("the key that signs").to_vec())
    }

    /// What a token of the user's says.
    pub fn claims_of(&self, user: &Client) -> Value {
        let key = DecodingKey::from_secret(&self.0);
        let token = decode(user.token(), &key, &Validation::new(Algorithm::HS256));
        token.expect("a token of the service").claims
    }

    /// A token that says this.
    pub fn sign(&self, algorithm: Algorithm, claims: &Value) -> String {
        let key = EncodingKey::from_secret(&self.0);
        encode(&Header::new(algorithm), claims, &key).expect("claims that can be signed")
    }
}

/// Tokens that are wrong in one thing each.
pub fn forged_tokens(
    forge: &Forge,
    ada: &Client,
    grace: &Client,
    api_token: &str,
) -> Vec<(&'static str, String)> {
    // {"alg":"none","typ":"JWT"}
    const NONE: &str = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";
    let claims = forge.claims_of(ada);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut claims = claims.clone();
        change(&mut claims);
        forge.sign(Algorithm::HS256, &claims)
    };
    let parts = |token: &str| -> [String; 3] {
        let parts: Vec<_> = token.split('.').map(str::to_owned).collect();
        parts.try_into().expect("a token of three parts")
    };
    let [header, payload, signature] = parts(ada.token());
    let [_, foreign_payload, _] = parts(grace.token());
    let version = claims["ver"].as_i64().expect("a version");
    let mut misspelt = api_token.to_owned();
    let last = misspelt.pop();
    misspelt.push(if last == Some('a') { 'b' } else { 'a' });
    vec![
        ("garbage", "garbage".to_owned()),
        ("a lot of garbage", "x.y.".repeat(1_000)),
        ("a token that has ended", with(&|claims| claims["exp"] = json!(1_700_000_000))),
        ("a token without an end", with(&|claims| drop(claims.as_object_mut().map(|all| all.remove("exp"))))),
        ("a token of an account that is not there", with(&|claims| claims["sub"] = json!(Uuid::now_v7()))),
        ("a token of no account", with(&|claims| claims["sub"] = json!("' OR 1=1 --"))),
        ("a token of an earlier version", with(&|claims| claims["ver"] = json!(version - 1))),
        ("a token of a later version", with(&|claims| claims["ver"] = json!(version + 1))),
        ("an unsigned token", format!("{NONE}.{payload}.")),
        ("a signature under alg none", format!("{NONE}.{payload}.{signature}")),
        ("no signature", format!("{header}.{payload}.")),
        ("two parts of a token", format!("{header}.{payload}")),
        ("another user's claims under this signature", format!("{header}.{foreign_payload}.{signature}")),
        ("HS384", forge.sign(Algorithm::HS384, &claims)),
        ("HS512", forge.sign(Algorithm::HS512, &claims)),
        ("a key of another service", Forge::new(&SECRET.repeat(2)).sign(Algorithm::HS256, &claims)),
        ("the secret itself as key", Forge(SECRET.into()).sign(Algorithm::HS256, &claims)),
        ("an empty key", Forge(Vec::new()).sign(Algorithm::HS256, &claims)),
        ("an API token that was never made", format!("lec_{}", "0".repeat(43))),
        ("an API token with another last digit", misspelt),
        ("an API token without its digits", "lec_".to_owned()),
        ("an API token without its prefix", api_token.trim_start_matches("lec_").to_owned()),
    ]
}
