//! What is read of the settings, and which of them are refused.

use super::*;

fn load(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    Settings::load(&SettingsSource::from_pairs(pairs))
}

#[test]
fn without_any_setting_everything_is_embedded() {
    let settings = load(&[]).unwrap();
    assert_eq!(settings.addr.to_string(), "127.0.0.1:8080");
    assert!(matches!(settings.database, DatabaseLocation::Sqlite(path) if path.ends_with("data/lectern.db")));
    assert_eq!(settings.jwt_ttl, Duration::from_hours(30 * 24));
    assert_eq!(settings.index_cache, 512 << 20);
    assert_eq!(settings.sign_up, SignUp::First);
}

#[test]
fn a_wrong_value_is_refused_by_name_with_what_would_be_right() {
    for (name, value, hint) in [
        ("LECTERN_JWT_TTL", "soon", "5s, 15m or 30d"),
        ("LECTERN_ADDR", "localhost", "127.0.0.1:8080"),
        ("LECTERN_SIGN_UP", "maybe", "open, closed, first"),
        ("LECTERN_INDEX_CACHE", "lots", "512MiB"),
        ("LECTERN_INDEX_CACHE", "512", "at least 1048576"),
        ("LECTERN_MAX_BODY", "0", "at least 1024"),
        ("LECTERN_MAX_SOURCE", "0", "at least 1024"),
        ("LECTERN_EGRESS_ALLOW", "10.0.0.0/99", "10.0.0.0/99"),
        ("LECTERN_JOB_MAX_ATTEMPTS", "0", "between 1 and 1000"),
        ("LECTERN_DEFAULT_LLM", "gpt", "provider/model"),
        ("LECTERN_BLOBS", "ftp://x", "file://"),
        ("LECTERN_BLOBS", "s3:///prefix", "bucket"),
        ("LECTERN_WORKER_ADDR", "8081", "127.0.0.1:8080"),
        ("LECTERN_RATE_LIMIT", "fast", "200/s"),
        ("LECTERN_REFUSAL_RATE", "20", "200/s"),
        ("LECTERN_CORS_ORIGINS", "app.example.com", "https://app.example.com"),
        ("QDRANT_URL", "qdrant:6334", "http://"),
        ("LECTERN_EMBEDDER", "gpu", "auto, local, openai-compatible, none"),
        ("LECTERN_EMBEDDING_LANGUAGES", "en,xx", "en,de,zh"),
        ("LECTERN_EMBEDDING_URL", "https://me@models.example.com", "user name"),
        ("LECTERN_EMBEDDING_URL", "https://:hunter2@models.example.com", "password"),
        ("OLLAMA_HOST", "http://me:hunter2@box:11434", "no user name"),
        ("AZURE_OPENAI_ENDPOINT", "http://me:hunter2@azure.example.com", "no user name"),
        ("LECTERN_VIDEO_SITE", "www.example.com", "https://"),
        ("LECTERN_VIDEO_SITE", "https://www.example.com/watch", "no path"),
        ("LECTERN_CITATION_LINKS", "0s", "at least 60s"),
        ("LECTERN_PUBLIC_URL", "lectern.example.com", "https://"),
        ("LECTERN_PUBLIC_URL", "https://lectern.example.com/?page=1", "nothing behind its path"),
        ("LECTERN_OCR_COMMAND", "tesseract 'page", "quote"),
        ("LECTERN_OCR_COMMAND", "''", "program"),
        ("LECTERN_PDF_ENGINE", "poppler", "auto, pdfium"),
        ("LECTERN_OCR", "yes", "auto, on, off"),
        ("LECTERN_OCR_LANGUAGES", "eng,deu", "eng+deu"),
        ("LECTERN_OCR_LANGUAGES", "--psm", "eng+deu"),
        ("HF_HUB_OFFLINE", "perhaps", "1"),
        ("LECTERN_MCP_SERVERS", "/usr/bin/mcp-files", "name=command"),
        ("LECTERN_MCP_SERVERS", "files='mcp-files", "quote"),
        ("LECTERN_SOURCE_FOLDERS", "/srv/a,documents", "/srv/documents"),
        ("LECTERN_SOURCE_FOLDERS", "/srv/../etc", "/srv/documents"),
        ("LECTERN_SOURCE_RUNS", "0", "between 1"),
        ("LECTERN_LOG", "verbose", "warn, info"),
        ("LECTERN_LOG", "foo=bar=baz", "lectern=debug"),
        ("LECTERN_PARSER_TIMEOUT", "99999999999999d", "at most"),
        ("LECTERN_VIDEO_CLIENT", "ANDROID", "ANDROID/20.10.38"),
        ("LECTERN_VIDEO_CLIENT", "ANDROID/20 10", "ANDROID/20.10.38"),
    ] {
        let error = load(&[(name, value)]).unwrap_err();
        assert_eq!(error.setting, name);
        assert!(error.problem.contains(hint), "{error}");
        assert!(!error.problem.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_key_that_no_header_can_carry_is_refused_without_being_shown() {
    for (name, besides) in [
        ("OPENAI_API_KEY", None),
        ("AZURE_OPENAI_API_KEY", None),
        ("LECTERN_EMBEDDING_API_KEY", None),
        ("LECTERN_RERANK_API_KEY", None),
        ("QDRANT_API_KEY", Some(("QDRANT_URL", "http://qdrant:6334"))),
    ] {
        for key in ["hunter2\nsecond", "hunter2-é"] {
            let pairs: Vec<_> = [(name, key)].into_iter().chain(besides).collect();
            let error = load(&pairs).unwrap_err();
            assert_eq!(error.setting, name);
            assert!(error.problem.contains("printable ASCII"), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
    assert!(load(&[("OPENAI_API_KEY", "sk-hunter2 ~!")]).is_ok());
}

#[test]
fn a_server_for_embeddings_needs_its_address_and_the_name_of_a_model() {
    let mut pairs = vec![("LECTERN_EMBEDDER", "openai-compatible")];
    for (name, value) in [
        ("LECTERN_EMBEDDING_URL", "https://models.example.com/v1"),
        ("LECTERN_EMBEDDING_MODEL", "text-embedding-3-small"),
    ] {
        assert_eq!(load(&pairs).unwrap_err().setting, name);
        pairs.push((name, value));
    }
    assert_eq!(load(&pairs).unwrap().embedding.model, "text-embedding-3-small");
    assert_eq!(load(&[]).unwrap().embedding.model, DEFAULT_MODEL);
}

#[test]
fn a_wrong_secret_is_refused_without_being_shown() {
    let error = load(&[("LECTERN_SECRET_KEY", "tooshort")]).unwrap_err();
    assert!(!error.to_string().contains("tooshort"), "{error}");
    for (name, url) in [
        ("DATABASE_URL", "mysql://root:hunter2@db/x"),
        ("REDIS_URL", "http://:hunter2@redis:6379"),
        ("LECTERN_VIDEO_PROXY", "socks5://me:hunter2@proxy:1080"),
    ] {
        let error = load(&[(name, url)]).unwrap_err();
        assert_eq!(error.setting, name);
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn a_wrong_address_is_refused_without_what_may_be_a_secret_in_it() {
    let addresses = [
        "AWS_ENDPOINT_URL",
        "AZURE_OPENAI_ENDPOINT",
        "DATABASE_URL",
        "LECTERN_BLOBS",
        "LECTERN_CORS_ORIGINS",
        "LECTERN_EGRESS_ALLOW",
        "LECTERN_EMBEDDING_URL",
        "LECTERN_IMAGE_HOSTS",
        "LECTERN_MODEL_HUB",
        "LECTERN_OIDC_ISSUER",
        "LECTERN_PUBLIC_URL",
        "LECTERN_RERANK_URL",
        "LECTERN_TRUSTED_PROXIES",
        "LECTERN_VIDEO_PROXY",
        "LECTERN_VIDEO_SITE",
        "OLLAMA_HOST",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "QDRANT_URL",
        "REDIS_URL",
    ];
    for name in addresses {
        for address in [
            "ftp://models.example.com/v1?key=hunter2",
            "ftp://models.example.com/v1#hunter2",
            "ftp://me:hunter2@models.example.com",
            "ftp://me:hunter2@models.example.com/?key=hunter2",
        ] {
            let error = load(&[("LECTERN_BLOBS", "s3://documents"), (name, address)]).unwrap_err();
            assert_eq!(error.setting, name, "{address}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
    let error = load(&[("LECTERN_EMBEDDING_URL", "https://models.example.com/v1?key=hunter2")]).unwrap_err();
    assert!(error.problem.contains("without a query"), "{error}");
    assert!(error.problem.ends_with("(it is \"https://models.example.com/v1?…\")"), "{error}");
}

#[test]
fn a_wrong_command_is_refused_without_its_arguments() {
    for (name, command, hint) in [
        ("LECTERN_OCR_COMMAND", "/opt/read --key hunter2 'page", "character 25"),
        ("LECTERN_OCR_COMMAND", "'' --key hunter2", "name of a program"),
        ("LECTERN_OCR_COMMAND", "KEY=hunter2 /opt/read {input}", "not with a variable"),
        ("LECTERN_MCP_SERVERS", "clock=mcp-clock; files=mcp-files --key 'hunter2", "files"),
        ("LECTERN_MCP_SERVERS", "files=mcp-files --key hunter2; mcp-clock --key=hunter2", "number 2"),
        ("LECTERN_MCP_SERVERS", "files=mcp-files --key hunter2; files=mcp-clock", "files twice"),
        ("LECTERN_MCP_SERVERS", "files=KEY=hunter2 mcp-files", "not with a variable"),
    ] {
        let error = load(&[(name, command)]).unwrap_err();
        assert_eq!(error.setting, name);
        assert!(error.problem.contains(hint), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn the_environment_wins_over_the_file_and_a_misspelt_name_in_the_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lectern.toml");
    std::fs::write(&path, "LECTERN_JWT_TTL = \"5m\"\nLECTERN_JOB_MAX_ATTEMPTS = 7\n").unwrap();
    let source = SettingsSource::from_pairs(&[("LECTERN_JWT_TTL", "10m")]).with_file(&path).unwrap();
    let settings = Settings::load(&source).unwrap();
    assert_eq!((settings.jwt_ttl, settings.jobs.max_attempts), (Duration::from_mins(10), 7));
    std::fs::write(&path, "LECTERN_JWT_TLL = \"5m\"\n").unwrap();
    let error = SettingsSource::from_pairs(&[]).with_file(&path).unwrap_err();
    assert!(error.to_string().contains("LECTERN_JWT_TLL"), "{error}");
}

#[test]
fn of_a_file_that_is_no_toml_the_line_is_named_and_not_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lectern.toml");
    for text in ["# settings\nHF_TOKEN = hunter2\n", "HF_TOKEN = \"a\"\nHF_TOKEN = \"hunter2\"\n"] {
        std::fs::write(&path, text).unwrap();
        let error = SettingsSource::from_pairs(&[]).with_file(&path).unwrap_err();
        assert!(error.to_string().contains("lectern.toml: line 2: "), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn an_address_of_a_database_that_is_none_is_refused_without_its_password() {
    for url in ["postgres://ada:hunter2#x@db/lectern", "postgres://ada:hunter2@db:port/lectern"] {
        let error = load(&[("DATABASE_URL", url)]).unwrap_err();
        assert_eq!(error.setting, "DATABASE_URL", "{error}");
        assert!(error.problem.contains("%23") && !error.problem.contains("hunter2"), "{error}");
    }
}

#[test]
fn settings_without_an_effect_beside_the_others_are_named() {
    let useless = [
        ("LECTERN_OIDC_ROLES", "*=asker"),
        ("LECTERN_QDRANT_TIMEOUT", "5s"),
        ("LECTERN_MAX_COST", "0.05"),
        ("QDRANT_API_KEY_FILE", "/nowhere/key"),
        ("LECTERN_JWT_TTL", "10m"),
        ("LECTERN_CORS_ORIGINS", ""),
        ("AWS_ACCESS_KEY_ID", "for another program"),
    ];
    let source = SettingsSource::from_pairs(&useless);
    Settings::load(&source).unwrap();
    assert_eq!(
        source.ineffective(),
        ["LECTERN_MAX_COST", "LECTERN_OIDC_ROLES", "LECTERN_QDRANT_TIMEOUT", "QDRANT_API_KEY_FILE"]
    );
    let useful = [
        ("QDRANT_URL", "http://qdrant:6334"),
        ("LECTERN_QDRANT_TIMEOUT", "5s"),
        ("LECTERN_MAX_COST", "0.05"),
        ("LECTERN_PRICES", "openai/m=0.40:1.60"),
    ];
    let source = SettingsSource::from_pairs(&useful);
    Settings::load(&source).unwrap();
    assert_eq!(source.ineffective(), Vec::<&str>::new());
}

#[test]
fn blobs_can_lie_in_a_bucket_of_any_s3_store() {
    let settings = load(&[
        ("LECTERN_BLOBS", "s3://documents/lectern/"),
        ("AWS_ENDPOINT_URL", "http://minio:9000"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
    ])
    .unwrap();
    let BlobLocation::S3(s3) = &settings.blobs else { panic!("{:?}", settings.blobs) };
    assert_eq!((s3.bucket.as_str(), s3.prefix.as_str()), ("documents", "lectern"));
    assert!(s3.path_style, "a store of one's own rarely has a name for each bucket");
    assert!(!format!("{settings:?}").contains("hunter2"));
    let error = load(&[("LECTERN_BLOBS", "s3://documents"), ("AWS_ACCESS_KEY_ID", "key")]).unwrap_err();
    assert_eq!(error.setting, "AWS_SECRET_ACCESS_KEY");
}

#[test]
fn the_proxy_of_the_video_site_may_have_a_password_which_is_never_shown() {
    let settings = load(&[("LECTERN_VIDEO_PROXY", "http://me:hunter2@proxy:3128")]).unwrap();
    assert!(settings.video.proxy.is_some());
    assert!(!format!("{settings:?}").contains("hunter2"));
}

#[test]
fn a_recogniser_is_a_command_of_words_and_gets_little_of_the_environment() {
    let settings = load(&[
        ("LECTERN_OCR_COMMAND", "tesseract {input} stdout -l 'eng+deu'"),
        ("PATH", "/usr/bin"),
        ("OPENAI_API_KEY", "hunter2"),
    ])
    .unwrap();
    let ocr = settings.pdf.ocr.unwrap();
    let words = ["tesseract", "{input}", "stdout", "-l", "eng+deu"].map(str::to_owned).to_vec();
    assert_eq!(ocr.program, OcrProgram::Command(words));
    assert_eq!(ocr.environment, [("PATH".to_owned(), "/usr/bin".to_owned())]);
    assert_eq!(ocr.timeout, Duration::from_mins(1));
    assert!(!ocr.network);
    for (name, value) in [("LECTERN_OCR_TIMEOUT", "soon"), ("LECTERN_OCR_NETWORK", "perhaps")] {
        assert_eq!(load(&[(name, value)]).unwrap_err().setting, name);
    }
}

#[test]
fn scans_are_read_by_tesseract_unless_something_else_is_said() {
    let program = |pairs: &[(&str, &str)]| load(pairs).unwrap().pdf.ocr.map(|ocr| ocr.program);
    let tesseract = |is_required, languages: Option<&[&str]>| {
        let languages = languages.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        Some(OcrProgram::Tesseract { is_required, languages })
    };
    assert_eq!(program(&[]), tesseract(false, None));
    let german = [("LECTERN_OCR", "on"), ("LECTERN_OCR_LANGUAGES", "deu+script/Fraktur")];
    assert_eq!(program(&german), tesseract(true, Some(&["deu", "script/Fraktur"])));
    assert_eq!(program(&[("LECTERN_OCR", "off"), ("LECTERN_OCR_COMMAND", "read")]), None);
}

#[test]
fn a_recogniser_must_not_read_what_the_service_keeps_nor_where_its_secrets_are() {
    let folder = tempfile::tempdir().unwrap();
    let (file, key) = (folder.path().join("lectern.toml"), folder.path().join("key"));
    std::fs::write(&key, "k".repeat(40)).unwrap();
    std::fs::write(&file, "LECTERN_OCR_COMMAND = \"tesseract\"\nLECTERN_OCR_NETWORK = \"on\"").unwrap();
    let source = SettingsSource::from_pairs(&[
        ("LECTERN_DATA_DIR", "/srv/lectern"),
        ("LECTERN_BLOBS", "file:///srv/files"),
        ("LECTERN_SECRET_KEY_FILE", key.to_str().unwrap()),
    ]);
    let ocr = Settings::load(&source.with_file(&file).unwrap()).unwrap().pdf.ocr.unwrap();
    let expected = [PathBuf::from("/srv/lectern"), PathBuf::from("/srv/files"), file, key];
    assert_eq!(ocr.hidden, expected);
    assert!(ocr.network);
}

#[test]
fn a_secret_can_be_given_as_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    std::fs::write(&path, format!("{}\n", "k".repeat(40))).unwrap();
    let path = path.to_string_lossy();
    assert!(load(&[("LECTERN_SECRET_KEY_FILE", &path)]).unwrap().secret_key.is_some());
    assert!(load(&[("LECTERN_SECRET_KEY_FILE", "/nowhere/key")]).is_err());
}
