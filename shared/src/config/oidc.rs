//! Sign-in by OpenID Connect, and what is left of passwords beside it.

use secrecy::SecretString;
use url::{Host, Url};

use super::{ConfigError, SettingsSource, parse, parse::ParseResult};
use crate::{
    ids::WorkspaceId,
    model::{text_enum, workspace::Role},
};

text_enum! {
    /// Who may sign in, and up, with a password.
    PasswordPolicy {
        /// Everybody.
        On => "on",
        /// Admins, for the day on which the provider is away. Nobody signs up.
        Admins => "admins",
        /// Nobody.
        Off => "off",
    }
}

/// The group that stands for everybody who signs in by the provider.
const EVERYBODY: &str = "*";

/// The provider of sign-in by OpenID Connect, and this service's registration there.
#[derive(Clone, Debug)]
pub struct OidcSettings {
    /// The provider, as it writes itself: it has to be the same to the last character.
    pub issuer: String,
    /// How the provider calls this service.
    pub client_id: String,
    /// What proves to the provider that it is this service; a public client has none.
    pub client_secret: Option<SecretString>,
    /// What the provider is asked to tell.
    pub scopes: Vec<String>,
    /// What groups at the provider may do here.
    pub roles: Option<OidcRoleMap>,
    /// What the button says.
    pub name: String,
    /// Where browsers reach this service, and the provider sends them back to.
    pub public_url: Url,
}

/// What groups at the provider may do in a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcRoleMap {
    /// The claim that lists somebody's groups: its name, or the names on the way to it with points between them.
    pub claim: String,
    /// Groups and their roles.
    pub roles: Vec<(String, Role)>,
    /// The workspace.
    pub workspace: WorkspaceId,
}

impl OidcRoleMap {
    /// The highest role that one of these groups has; none when none of them has one.
    pub fn role_of(&self, groups: &[String]) -> Option<Role> {
        let granted = self.roles.iter().filter(|(group, _)| group == EVERYBODY || groups.contains(group));
        granted.map(|(_, role)| *role).reduce(|one, other| if one.includes(other) { one } else { other })
    }

    fn load(source: &SettingsSource) -> Result<Option<Self>, ConfigError> {
        const CLAIM: &str = "LECTERN_OIDC_ROLE_CLAIM";
        const ROLES: &str = "LECTERN_OIDC_ROLES";
        const WORKSPACE: &str = "LECTERN_OIDC_WORKSPACE";
        let claim = source.get(CLAIM)?.map(|claim| claim.trim().to_owned());
        let roles = source.optional(ROLES, role_list)?;
        let workspace = source.optional(WORKSPACE, workspace_id)?;
        match (claim, roles, workspace) {
            (None, None, None) => Ok(None),
            (Some(claim), Some(roles), Some(workspace)) => Ok(Some(Self { claim, roles, workspace })),
            (None, _, _) => Err(missing(CLAIM, "with the claim that lists groups")),
            (_, None, _) => {
                Err(missing(ROLES, "with the roles of groups, such as staff=asker,writers=editor"))
            }
            (_, _, None) => Err(missing(WORKSPACE, "with the id of the workspace that the roles are for")),
        }
    }
}

impl OidcSettings {
    /// Reads the settings of the provider; none when none is set.
    ///
    /// # Errors
    /// The first one that is wrong, or missing.
    pub(super) fn load(
        source: &SettingsSource,
        public_url: Option<&Url>,
    ) -> Result<Option<Self>, ConfigError> {
        let client_id = source.get("LECTERN_OIDC_CLIENT_ID")?;
        let Some(issuer) = source.optional("LECTERN_OIDC_ISSUER", issuer)? else {
            return match client_id {
                None => Ok(None),
                Some(_) => Err(missing("LECTERN_OIDC_ISSUER", "with the provider's address")),
            };
        };
        let client_id = client_id.map(|id| id.trim().to_owned());
        Ok(Some(Self {
            issuer,
            client_id: client_id.ok_or_else(|| {
                missing("LECTERN_OIDC_CLIENT_ID", "with what the provider calls this service")
            })?,
            client_secret: source.secret("LECTERN_OIDC_CLIENT_SECRET")?,
            scopes: source.parse("LECTERN_OIDC_SCOPES", "openid email profile", scopes)?,
            roles: OidcRoleMap::load(source)?,
            name: source
                .get("LECTERN_OIDC_NAME")?
                .map_or_else(|| "single sign-on".to_owned(), |name| name.trim().to_owned()),
            public_url: public_url.cloned().ok_or_else(|| {
                missing("LECTERN_PUBLIC_URL", "with the address that the provider sends browsers back to")
            })?,
        }))
    }
}

impl PasswordPolicy {
    /// Reads who may use passwords.
    ///
    /// # Errors
    /// When nobody could sign in any more.
    pub(super) fn load(source: &SettingsSource, has_provider: bool) -> Result<Self, ConfigError> {
        const NAME: &str = "LECTERN_PASSWORDS";
        let policy: Self = source.parse(NAME, "on", parse::choice)?;
        if policy == Self::Off && !has_provider {
            let problem = "`off` needs LECTERN_OIDC_ISSUER: nobody could sign in".to_owned();
            return Err(ConfigError { setting: NAME.to_owned(), problem });
        }
        Ok(policy)
    }
}

fn missing(setting: &str, with: &str) -> ConfigError {
    let problem = format!("must be set {with}, for sign-in by OpenID Connect");
    ConfigError { setting: setting.to_owned(), problem }
}

/// The address stays as it is written: what the provider calls itself is compared letter by letter.
fn issuer(text: &str) -> ParseResult<String> {
    let url = parse::http_url(text)?;
    let is_bare = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if !is_bare || url.password().is_some() {
        return Err("must be an address without a query, a fragment or a user name".to_owned());
    }
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    // Whoever stands between could put their own keys in the place of the provider's.
    if url.scheme() == "https" || is_here {
        Ok(text.to_owned())
    } else {
        Err("must begin with https://, unless the provider is on this machine".to_owned())
    }
}

fn scopes(text: &str) -> ParseResult<Vec<String>> {
    let scopes: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if scopes.iter().any(|scope| scope == "openid") {
        Ok(scopes)
    } else {
        Err("must be names separated by spaces, openid among them".to_owned())
    }
}

/// `group=role,group=role`. A group's name may hold `=`, such as a distinguished name of a directory.
fn role_list(text: &str) -> ParseResult<Vec<(String, Role)>> {
    let wrong = |pair: &str| {
        let roles = Role::choices();
        format!("must be group=role, separated by commas, with roles of {roles}; {pair:?} is none")
    };
    let pair = |pair: &str| {
        let (group, role) = pair.rsplit_once('=').ok_or_else(|| wrong(pair))?;
        let role = role.trim().parse().map_err(|_| wrong(pair))?;
        let group = group.trim();
        if group.is_empty() { Err(wrong(pair)) } else { Ok((group.to_owned(), role)) }
    };
    text.split(',').map(pair).collect()
}

fn workspace_id(text: &str) -> ParseResult<WorkspaceId> {
    text.parse().map_err(|_| "must be the id of a workspace".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    const WORKSPACE: &str = "019a8f3c-5b1e-7c40-9d2a-3f6b8e1c7a55";

    fn load(more: &[(&str, &str)]) -> Result<Option<OidcSettings>, ConfigError> {
        let mut pairs = vec![
            ("LECTERN_PUBLIC_URL", "https://lectern.example.com"),
            ("LECTERN_OIDC_ISSUER", "https://login.example.com"),
            ("LECTERN_OIDC_CLIENT_ID", "lectern"),
            ("LECTERN_OIDC_CLIENT_SECRET", "hunter2"),
        ];
        pairs.extend(more);
        // The last of a name counts; an empty one is as good as none.
        Settings::load(&SettingsSource::from_pairs(&pairs)).map(|settings| settings.oidc)
    }

    #[test]
    fn a_provider_is_as_it_is_written_and_its_secret_is_not_shown() {
        let oidc = load(&[]).unwrap().unwrap();
        assert_eq!(oidc.issuer, "https://login.example.com", "no slash is added");
        assert_eq!(oidc.scopes, ["openid", "email", "profile"]);
        assert_eq!((oidc.name.as_str(), &oidc.roles), ("single sign-on", &None));
        assert!(!format!("{oidc:?}").contains("hunter2"));
        for local in ["http://localhost:8080/realms/main", "http://127.0.0.1:3000/", "http://[::1]"] {
            let oidc = load(&[("LECTERN_OIDC_ISSUER", local)]).unwrap().unwrap();
            assert_eq!(oidc.issuer, local);
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (name, value, hint) in [
            ("LECTERN_PUBLIC_URL", "", "sends browsers back to"),
            ("LECTERN_OIDC_CLIENT_ID", "", "must be set"),
            ("LECTERN_OIDC_ISSUER", "", "must be set"),
            ("LECTERN_OIDC_ISSUER", "http://login.example.com", "https://"),
            ("LECTERN_OIDC_ISSUER", "https://login.example.com?tenant=1", "without a query"),
            ("LECTERN_OIDC_ISSUER", "https://me@login.example.com", "user name"),
            ("LECTERN_OIDC_SCOPES", "email profile", "openid"),
            ("LECTERN_OIDC_ROLES", "staff", "group=role"),
            ("LECTERN_OIDC_ROLES", "staff=king", "asker, editor, builder, owner"),
            ("LECTERN_OIDC_ROLES", "=asker", "group=role"),
            ("LECTERN_OIDC_WORKSPACE", "main", "id of a workspace"),
            ("LECTERN_PASSWORDS", "never", "on, admins, off"),
        ] {
            let error = load(&[(name, value)]).unwrap_err();
            assert_eq!(error.setting, name, "{error}");
            assert!(error.problem.contains(hint), "{error}");
        }
        let off = SettingsSource::from_pairs(&[("LECTERN_PASSWORDS", "off")]);
        assert_eq!(Settings::load(&off).unwrap_err().setting, "LECTERN_PASSWORDS");
        assert!(load(&[("LECTERN_PASSWORDS", "off")]).unwrap().is_some());
    }

    #[test]
    fn roles_need_their_claim_and_their_workspace() {
        let all = [
            ("LECTERN_OIDC_ROLE_CLAIM", "groups"),
            ("LECTERN_OIDC_ROLES", "staff=asker, cn=writers,ou=x=editor"),
            ("LECTERN_OIDC_WORKSPACE", WORKSPACE),
        ];
        // A comma ends a pair, even one in a name.
        assert_eq!(load(&all).unwrap_err().setting, "LECTERN_OIDC_ROLES");
        let all = all.map(|(name, value)| (name, value.replace("writers,ou=x", "writers")));
        let all: Vec<_> = all.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let map = load(&all).unwrap().unwrap().roles.unwrap();
        assert_eq!((map.claim.as_str(), map.workspace.to_string().as_str()), ("groups", WORKSPACE));
        let expected = [("staff", Role::Asker), ("cn=writers", Role::Editor)];
        assert_eq!(map.roles, expected.map(|(group, role)| (group.to_owned(), role)));
        for left_out in 0..all.len() {
            let mut some = all.clone();
            let (name, _) = some.remove(left_out);
            assert_eq!(load(&some).unwrap_err().setting, name);
        }
    }

    #[test]
    fn the_highest_role_of_somebodys_groups_counts() {
        let map = |pairs: &str| OidcRoleMap {
            claim: "groups".to_owned(),
            roles: role_list(pairs).unwrap(),
            workspace: WORKSPACE.parse().unwrap(),
        };
        let groups = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let some = map("staff=asker,leads=owner,writers=editor");
        for (names, role) in [
            (&["staff"][..], Some(Role::Asker)),
            (&["staff", "writers"], Some(Role::Editor)),
            (&["writers", "leads", "staff"], Some(Role::Owner)),
            (&["Staff", "others"], None),
            (&[], None),
        ] {
            assert_eq!(some.role_of(&groups(names)), role, "{names:?}");
        }
        let all = map("*=asker,writers=editor");
        assert_eq!(all.role_of(&[]), Some(Role::Asker), "everybody has one");
        assert_eq!(all.role_of(&groups(&["writers"])), Some(Role::Editor));
    }
}
