//! Patterns, and what a source is asked for.

use super::*;

#[test]
fn a_pattern_says_what_it_looks_like() {
    for (pattern, path, is_meant) in [
        ("/docs/*", "/docs/a/b", true),
        ("/docs/*", "/docs/", true),
        ("/docs/*", "/blog/docs/", false),
        ("*.pdf", "/a/b.pdf", true),
        ("*.pdf", "/a/b.pdf?x", false),
        ("/a/*/c*", "/a/b/c/d", true),
        ("/a/*/c", "/a/b/c/d", false),
        ("/a", "/a", true),
        ("/a", "/ab", false),
        ("*", "", true),
        ("a*a", "a", false),
        ("*a*a", "ba", false),
    ] {
        assert_eq!(matches(pattern, path), is_meant, "{pattern} {path}");
    }
}

#[test]
fn what_is_left_out_is_so_although_it_would_pass() {
    let filter = PathFilter { include: vec!["/docs/*".to_owned()], exclude: vec!["*/old/*".to_owned()] };
    assert!(filter.admits("/docs/new"));
    assert!(!filter.admits("/docs/old/one") && !filter.admits("/blog"));
    assert!(PathFilter::default().admits("anything"));
    assert!(filter.excludes("/x/old/y") && !filter.excludes("/blog"));
}

#[test]
fn what_is_hidden_in_a_folder_is_meant_only_where_it_is_named() {
    let filter = |include: &str| PathFilter {
        include: include.split_whitespace().map(str::to_owned).collect(),
        exclude: Vec::new(),
    };
    for (include, path, is_hidden) in [
        ("", "a.txt", false),
        ("", ".secret", true),
        ("", ".git/config", true),
        ("", "docs/.env", true),
        ("", "docs/~$plan.docx", true),
        ("", "docs/a~$.docx", false),
        ("*", ".env", true),
        ("*.env", ".env", true),
        ("*/config", ".git/config", true),
        (".env", ".env", false),
        ("*/.env", "docs/.env", false),
        ("*/.env", ".git/.env", true),
        ("*.md .github/*", ".github/a/one.md", false),
        (".github/*", ".git/config", true),
        (".well-known/*", ".well-known/.hidden", true),
    ] {
        assert_eq!(filter(include).hides(path), is_hidden, "{include} {path}");
    }
    assert!(filter("*/.env").hides_folder(".git") && !filter(".git*/*").hides_folder(".git"));
    assert!(!filter("").hides_folder("docs"));
}

#[test]
fn a_configuration_is_one_object_with_its_type() {
    let config = SyncConfig::Folder(FolderConfig {
        path: "/srv/docs".to_owned(),
        filter: PathFilter { include: Vec::new(), exclude: vec!["*.tmp".to_owned()] },
        max_documents: 10,
    });
    let json = serde_json::json!(config);
    let expected = serde_json::json!({
        "type": "folder", "path": "/srv/docs", "include": [], "exclude": ["*.tmp"], "maxDocuments": 10
    });
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_value::<SyncConfig>(json).unwrap(), config);
}
