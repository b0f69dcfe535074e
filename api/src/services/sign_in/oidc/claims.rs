//! What the provider tells of somebody, in the ID token and, if that does not tell enough, at its user info endpoint.

use lectern_shared::config::OidcRoleMap;
use openidconnect::{AdditionalClaims, EndUserEmail, EndUserName, LocalizedClaim};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Claims that the standard does not name.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct ProviderClaims {
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl AdditionalClaims for ProviderClaims {}

/// Somebody, as the provider tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProviderIdentity {
    /// The provider's own name for them, which stays.
    pub(super) subject: String,
    /// An e-mail of which the provider says that it is theirs.
    pub(super) verified_email: Option<String>,
    /// How they are called.
    pub(super) name: Option<String>,
    /// The groups that the role claim lists.
    pub(super) groups: Vec<String>,
}

/// What one answer of the provider tells.
pub(super) struct ClaimSet<'a> {
    email: Option<&'a EndUserEmail>,
    email_verified: Option<bool>,
    name: Option<&'a LocalizedClaim<EndUserName>>,
    more: &'a ProviderClaims,
}

impl<'a> ClaimSet<'a> {
    pub(super) fn new(
        email: Option<&'a EndUserEmail>,
        email_verified: Option<bool>,
        name: Option<&'a LocalizedClaim<EndUserName>>,
        more: &'a ProviderClaims,
    ) -> Self {
        Self { email, email_verified, name, more }
    }

    /// Whether there is nothing more to ask.
    pub(super) fn is_enough(&self, roles: Option<&OidcRoleMap>) -> bool {
        self.tells_of_email() && roles.is_none_or(|map| self.groups(map).is_some())
    }

    fn tells_of_email(&self) -> bool {
        self.email.is_some() && self.email_verified.is_some()
    }

    fn groups(&self, map: &OidcRoleMap) -> Option<Vec<String>> {
        listed_groups(&self.more.rest, &map.claim)
    }
}

impl ProviderIdentity {
    /// What the ID token tells, and what user info does besides. An e-mail counts as verified if the answer that has it says so.
    pub(super) fn new(
        subject: &str,
        token: &ClaimSet<'_>,
        info: Option<&ClaimSet<'_>>,
        roles: Option<&OidcRoleMap>,
    ) -> Self {
        let sets = || [Some(token), info].into_iter().flatten();
        let of_email = sets().find(|set| set.tells_of_email());
        let verified = of_email.filter(|set| set.email_verified == Some(true)).and_then(|set| set.email);
        let name = sets().find_map(|set| set.name?.get(None));
        let groups = roles.and_then(|map| sets().find_map(|set| set.groups(map)));
        Self {
            subject: subject.to_owned(),
            verified_email: verified.map(|email| email.as_str().to_owned()),
            name: name.map(|name| name.as_str().to_owned()),
            groups: groups.unwrap_or_default(),
        }
    }
}

/// The groups in the claim of this name, or at the end of this way; none when there is no such claim.
fn listed_groups(claims: &Map<String, Value>, claim: &str) -> Option<Vec<String>> {
    // A name may have points in it, as names do that are addresses.
    let value = claims.get(claim).or_else(|| {
        let mut steps = claim.split('.');
        let first = claims.get(steps.next()?)?;
        steps.try_fold(first, |value, step| value.get(step))
    })?;
    Some(match value {
        Value::String(group) => vec![group.clone()],
        Value::Array(groups) => groups.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use lectern_shared::model::workspace::Role;
    use serde_json::json;

    use super::*;

    fn groups(claims: &Value, claim: &str) -> Option<Vec<String>> {
        listed_groups(claims.as_object().unwrap(), claim)
    }

    #[test]
    fn groups_are_found_by_the_name_of_their_claim_or_the_way_to_it() {
        let claims = json!({
            "groups": ["staff", 5, "writers"],
            "role": "staff",
            "realm_access": {"roles": ["staff"]},
            "https://example.com/groups": ["staff"],
            "none": null,
        });
        for (claim, found) in [
            ("groups", Some(&["staff", "writers"][..])),
            ("role", Some(&["staff"])),
            ("realm_access.roles", Some(&["staff"])),
            ("https://example.com/groups", Some(&["staff"])),
            ("none", Some(&[])),
            ("realm_access", Some(&[])),
            ("realm_access.groups", None),
            ("missing", None),
            ("", None),
        ] {
            let found = found.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            assert_eq!(groups(&claims, claim), found, "{claim}");
        }
    }

    #[test]
    fn an_e_mail_is_verified_only_by_the_answer_that_it_is_in() {
        let nothing = ProviderClaims { rest: Map::new() };
        let (one, other) = ("one@example.com", "other@example.com");
        let set =
            |email: Option<&'static EndUserEmail>, verified| ClaimSet::new(email, verified, None, &nothing);
        let email = |text: &str| &*Box::leak(Box::new(EndUserEmail::new(text.to_owned())));
        let verified = |token: &ClaimSet<'_>, info: Option<&ClaimSet<'_>>| {
            ProviderIdentity::new("s", token, info, None).verified_email
        };
        let says = |text, verified| set(Some(email(text)), verified);
        assert_eq!(verified(&says(one, Some(true)), None).as_deref(), Some(one));
        assert_eq!(verified(&says(one, Some(false)), Some(&says(other, Some(true)))), None);
        assert_eq!(verified(&says(one, None), Some(&says(other, Some(true)))).as_deref(), Some(other));
        assert_eq!(verified(&says(one, None), Some(&set(None, Some(true)))), None);
        assert_eq!(verified(&set(None, Some(true)), Some(&says(other, None))), None);
        assert_eq!(verified(&says(one, None), None), None);
    }

    #[test]
    fn more_is_asked_for_only_when_something_is_missing() {
        let map = OidcRoleMap {
            claim: "groups".to_owned(),
            roles: vec![("staff".to_owned(), Role::Asker)],
            workspace: "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55".parse().unwrap(),
        };
        let claims = |value: Value| serde_json::from_value::<ProviderClaims>(value).unwrap();
        let (without, with) = (claims(json!({"x": 1})), claims(json!({"groups": ["staff"]})));
        let email = EndUserEmail::new("ada@example.com".to_owned());
        let set = |verified, more| ClaimSet::new(Some(&email), verified, None, more);
        assert!(set(Some(true), &without).is_enough(None));
        assert!(!set(None, &without).is_enough(None));
        assert!(!set(Some(true), &without).is_enough(Some(&map)));
        assert!(set(Some(false), &with).is_enough(Some(&map)));
        let told = ProviderIdentity::new("s", &set(None, &without), Some(&set(None, &with)), Some(&map));
        assert_eq!(told.groups, ["staff"]);
    }
}
