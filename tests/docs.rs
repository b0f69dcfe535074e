//! What the documentation and the deployment files say is what the program does.

use std::collections::BTreeSet;
use std::fmt::Write;

use lectern_shared::config::{SETTINGS, Setting, Source};

const HEAD: &str = "| setting | default | meaning |\n|---|---|---|\n";
const README: &str = include_str!("../README.md");
const OPERATIONS: &str = include_str!("../docs/operations.md");
const COMPOSE: &str = include_str!("../docker-compose.yml");
const ENV_EXAMPLE: &str = include_str!("../.env.example");
const CI: &str = include_str!("../.github/workflows/ci.yml");

fn row(setting: &Setting) -> String {
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
    assert_eq!(Source::from_pairs(&pairs).unknown(), Vec::<&str>::new());
    let asked = COMPOSE.split("${").skip(1).map(|rest| {
        let end = rest.find([':', '}']).expect("the end of a variable");
        rest.split_at(end).0
    });
    for name in asked {
        assert!(names.contains(name), ".env.example says nothing of {name}");
    }
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
