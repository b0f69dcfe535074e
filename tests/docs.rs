//! What the documentation and the deployment files say is what the program does.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::{Path, PathBuf},
};

use lectern_shared::config::{SETTINGS, SettingSpec, SettingsSource};

const HEAD: &str = "| setting | default | meaning |\n|---|---|---|\n";
const README: &str = include_str!("../README.md");
const CHANGELOG: &str = include_str!("../CHANGELOG.md");
const ARCHITECTURE: &str = include_str!("../docs/architecture.md");
const INTERFACE: &str = include_str!("../docs/api.md");
const OPERATIONS: &str = include_str!("../docs/operations.md");
const COMPOSE: &str = include_str!("../docker-compose.yml");
const ENV_EXAMPLE: &str = include_str!("../.env.example");
const CI: &str = include_str!("../.github/workflows/ci.yml");
const DOCKERFILE: &str = include_str!("../Dockerfile");
const DOCKERIGNORE: &str = include_str!("../.dockerignore");
const CARGO: &str = include_str!("../Cargo.toml");

fn row(setting: &SettingSpec) -> String {
    format!("| `{}` | {} | {} |", setting.name, setting.default, setting.meaning)
}

/// The names that are set in the example of `.env`, those that are commented out included.
fn example_names() -> BTreeSet<&'static str> {
    let name = |line: &'static str| line.trim_start_matches('#').split_once('=').map(|(name, _)| name);
    let is_name = |name: &&str| {
        name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit())
    };
    ENV_EXAMPLE.lines().filter_map(name).filter(is_name).collect()
}

/// The documents that readers come to: those in the root folder, and all in docs/.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).expect("the folder docs");
    let docs = docs.map(|entry| entry.expect("an entry of docs").path());
    let mut found: Vec<_> = docs.filter(|path| path.extension().is_some_and(|ext| ext == "md")).collect();
    found.extend(["README.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    found.sort();
    found
}

/// A document without its blocks of code.
fn prose(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // Every second part stands between two fences.
    text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n")
}

/// Where the links of a document lead.
fn links(prose: &str) -> Vec<&str> {
    let targets = prose.split("](").skip(1);
    targets.map(|rest| rest.split([')', ' ', '\n']).next().unwrap_or_default()).collect()
}

/// The anchors that a site of repositories gives the headings of a document.
fn anchors(prose: &str) -> BTreeSet<String> {
    let mut times = BTreeMap::<String, usize>::new();
    let mut found = BTreeSet::new();
    let titles = prose.lines().filter(|line| line.starts_with('#'));
    for title in titles.filter_map(|line| line.trim_start_matches('#').strip_prefix(' ')) {
        let kept = title.trim().to_lowercase();
        let kept: String = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect();
        let anchor = kept.replace(' ', "-");
        let before = times.entry(anchor.clone()).or_default();
        found.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    found
}

#[test]
fn every_relative_link_leads_to_a_file_and_every_anchor_to_a_heading() {
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for document in documents() {
        let text = prose(&document);
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            looked_at += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => document.clone(),
                path => document.with_file_name(path),
            };
            let is_there =
                target.exists() && (anchor.is_empty() || anchors(&prose(&target)).contains(anchor));
            if !is_there {
                wrong.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(looked_at > 40, "only {looked_at} links were found");
    assert!(wrong.is_empty(), "these links lead nowhere:\n{}", wrong.join("\n"));
}

#[test]
fn the_operations_manual_has_every_setting() {
    let mut table = HEAD.to_owned();
    for setting in SETTINGS {
        writeln!(table, "{}", row(setting)).expect("a string takes all");
    }
    assert!(OPERATIONS.contains(&table), "docs/operations.md must hold this table:\n{table}");
}

#[test]
fn the_settings_of_the_readme_are_those_of_the_program() {
    let (_, table) = README.split_once(HEAD).expect("README.md has a table of settings");
    let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert!(!rows.is_empty());
    let known: Vec<_> = SETTINGS.iter().map(row).collect();
    for row in rows {
        assert!(known.iter().any(|known| known == row), "README.md says otherwise than the program: {row}");
    }
}

#[test]
fn the_example_of_env_names_settings_only_and_all_that_compose_asks_for() {
    let names = example_names();
    let pairs: Vec<_> = names.iter().map(|name| (*name, "x")).collect();
    assert_eq!(SettingsSource::from_pairs(&pairs).unknown(), Vec::<&str>::new());
    let asked = COMPOSE.split("${").skip(1).map(|rest| {
        let end = rest.find([':', '}']).expect("the end of a variable");
        rest.split_at(end).0
    });
    for name in asked {
        assert!(names.contains(name), ".env.example says nothing of {name}");
    }
}

/// Kept answers, backups and clients tell one program from another by its version.
#[test]
fn what_is_not_released_does_not_call_itself_by_the_name_of_what_is() {
    let mut sections = CHANGELOG.split("\n## [").skip(1).filter_map(|section| section.split_once(']'));
    let (name, changes) = sections.next().expect("a section");
    assert_eq!(name, "Unreleased");
    let (released, _) = sections.next().expect("a released version");
    let own = env!("CARGO_PKG_VERSION");
    assert!(changes.trim().is_empty() || own != released, "{own} is released already");
}

#[test]
fn compose_has_no_secret_of_its_own() {
    for name in ["POSTGRES_PASSWORD", "REDIS_PASSWORD", "QDRANT_API_KEY", "LECTERN_SECRET_KEY"] {
        let asked: Vec<_> = COMPOSE.split(&format!("${{{name}")).skip(1).collect();
        assert!(!asked.is_empty(), "{name} is not used");
        assert!(asked.iter().all(|rest| rest.starts_with(":?")), "{name} must be refused when it is not set");
        assert!(
            ENV_EXAMPLE.lines().any(|line| line == format!("{name}=")),
            "{name} must be empty in .env.example"
        );
    }
}

#[test]
fn ci_tests_with_the_qdrant_that_compose_runs() {
    let version = |text: &'static str| {
        let (_, rest) = text.split_once("image: qdrant/qdrant:").expect("an image of Qdrant");
        rest.split(|c: char| c.is_whitespace() || c == '-').next()
    };
    assert_eq!(version(CI), version(COMPOSE));
}

#[test]
fn ci_tests_with_the_servers_that_compose_runs() {
    for server in ["postgres", "redis"] {
        let image = format!("image: {server}:");
        let version = |text: &'static str| {
            let (_, rest) = text.split_once(&image).unwrap_or_else(|| panic!("an image of {server}"));
            rest.lines().next()
        };
        assert_eq!(version(CI), version(COMPOSE));
    }
}

#[test]
fn the_image_is_built_from_every_crate() {
    let (_, members) = CARGO.split_once("members = [").expect("the workspace has members");
    let (members, _) = members.split_once(']').expect("the end of the members");
    let members = members.split('"').skip(1).step_by(2);
    // A crate in the folder of another comes with it.
    let folders = members.filter_map(|member| member.split('/').next()).chain(["migrations", "src"]);
    for folder in folders.collect::<BTreeSet<_>>() {
        assert!(
            DOCKERIGNORE.lines().any(|line| line == format!("!{folder}")),
            ".dockerignore keeps {folder} from the build"
        );
        assert!(
            DOCKERFILE.lines().any(|line| line == format!("COPY {folder} {folder}")),
            "the Dockerfile does not copy {folder}"
        );
        let touched = DOCKERFILE.lines().find(|line| line.trim_start().starts_with("find "));
        assert!(
            touched.is_some_and(|line| line.split(' ').any(|word| word == folder)),
            "the Dockerfile leaves {folder} with the times of its checkout"
        );
    }
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// The files below a folder of the repository, as paths from its root.
fn files(folder: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry of it").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let path = path.strip_prefix(root).expect("it is below the root");
                found.push(path.to_str().expect("a name in UTF-8").to_owned());
            }
        }
    }
    found
}

#[test]
fn the_files_that_the_page_of_the_architecture_names_are_there() {
    const FOLDERS: [&str; 8] = ["api", "load", "migrations", "shared", "src", "tests", "worker", "docs"];
    let files: Vec<_> = FOLDERS.into_iter().flat_map(files).map(|path| format!("/{path}")).collect();
    let mut looked_at = 0;
    let wrong: Vec<_> = ARCHITECTURE
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| is_rust(name) || (name.ends_with('/') && !name.contains(' ')))
        .filter(|name| {
            looked_at += 1;
            // From the root, or short for what is in the folder that the text is about.
            let place = format!("/{name}");
            !files.iter().any(|file| file.contains(&place))
        })
        .collect();
    assert!(looked_at > 100, "only {looked_at} names were found");
    assert!(wrong.is_empty(), "docs/architecture.md names what is not there: {wrong:?}");
}

#[test]
fn the_page_of_the_interface_has_every_code_that_requests_are_refused_with() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The types of OpenAI's form are its own, and so is what pages say to people.
    let sources = files("api/src").into_iter().filter(|path| path != "api/src/openai/error.rs");
    let sources = sources.filter(|path| !path.ends_with("tests.rs") && !path.contains("/tests/"));
    let mut codes = BTreeSet::new();
    for path in sources.filter(|path| is_rust(path)) {
        let text = std::fs::read_to_string(root.join(path)).expect("a file of the source");
        let (text, _) = text.split_once("#[cfg(test)]\nmod tests").unwrap_or((&text, ""));
        for rest in text.split("ApiErrorKind::").chain(text.split("ApiError::too_many")).skip(1) {
            let Some((_, rest)) = rest.split_once([',', '(']) else { continue };
            let code = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
            let code = code.filter(|code| code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
            codes.extend(code.map(str::to_owned));
        }
    }
    assert!(codes.len() > 40, "only {codes:?} were found");
    let missing: Vec<_> = codes.iter().filter(|code| !INTERFACE.contains(&format!("`{code}`"))).collect();
    assert!(missing.is_empty(), "docs/api.md does not say what to do about {missing:?}");
}
