//! Small scripts in the place of a real recogniser.

#[cfg(target_os = "linux")]
mod given_up;

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use lectern_parse::confine::{self, AccessGrant, ConfinementLayer};
use lectern_shared::config::OcrSettings;
use rustix::process::Pid;
use tempfile::TempDir;
use tokio::time::timeout;

use super::{program::prepare, *};

/// What a folder of programs is asked for, when it stands for the whole PATH.
const TOOLS: &str = "/usr/local/bin:/usr/bin:/bin";

/// A script that is run as `script ARGUMENTS…`, with the usual places for programs.
struct OcrScript {
    folder: TempDir,
}

impl OcrScript {
    fn new(body: &str) -> Self {
        Self::called("recognise", body)
    }

    fn called(name: &str, body: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn ocr(&self, arguments: &[&str]) -> Recogniser {
        self.within(arguments, &settings())
    }

    fn within(&self, arguments: &[&str], settings: &OcrSettings) -> Recogniser {
        let mut words = vec![self.path("recognise")];
        words.extend(arguments.iter().map(|word| (*word).to_owned()));
        command(words, settings)
    }

    /// What is chosen where this script is all that the PATH holds besides the tools of a shell.
    async fn chosen(
        &self,
        is_required: bool,
        languages: Option<&[&str]>,
    ) -> Result<Option<Recogniser>, OcrStartError> {
        let languages = languages.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let path = format!("{}:{TOOLS}", self.folder.path().display());
        let settings = OcrSettings {
            program: OcrProgram::Tesseract { is_required, languages },
            environment: vec![("PATH".to_owned(), path)],
            ..settings()
        };
        Recogniser::choose(&PdfSettings { ocr: Some(settings), ..PdfSettings::default() }).await
    }
}

fn command(words: Vec<String>, settings: &OcrSettings) -> Recogniser {
    Recogniser(OcrEngine::Command(ConfinedProgram::find(words, settings).unwrap()))
}

fn settings() -> OcrSettings {
    OcrSettings {
        program: OcrProgram::Command(Vec::new()),
        timeout: Duration::from_secs(30),
        environment: vec![("PATH".to_owned(), TOOLS.to_owned())],
        hidden: Vec::new(),
        network: false,
        memory_bytes: 1 << 30,
    }
}

async fn read(ocr: &Recogniser, image: &str) -> Result<String, OcrError> {
    Ok(ocr.read(image.as_bytes().to_vec(), 300.0, None).await?.text)
}

#[test]
fn what_nobody_asks_for_is_refused_to_nobody() {
    let may_be_refused = |program| {
        let ocr = Some(OcrSettings { program, ..settings() });
        Recogniser::may_be_refused(&PdfSettings { ocr, ..PdfSettings::default() })
    };
    assert!(!Recogniser::may_be_refused(&PdfSettings::default()), "none is wanted");
    assert!(!may_be_refused(OcrProgram::Tesseract { is_required: false, languages: None }));
    assert!(may_be_refused(OcrProgram::Tesseract { is_required: true, languages: None }));
    let languages = Some(vec!["deu".to_owned()]);
    assert!(may_be_refused(OcrProgram::Tesseract { is_required: false, languages }));
    assert!(may_be_refused(OcrProgram::Command(vec!["recognise".to_owned()])));
}

#[tokio::test]
async fn the_image_comes_by_standard_input_and_its_text_by_standard_output() {
    let script = OcrScript::new("cat");
    assert_eq!(
        read(&script.ocr(&[]), "what the \u{fb01}le says \r\n\u{c}").await.unwrap(),
        "what the file says"
    );
}

#[tokio::test]
async fn a_command_that_names_the_input_gets_a_file_that_is_gone_afterwards() {
    let script = OcrScript::new(r#"cat "$2"; printf ' of %s' "$2" >&1; printf %s "$2" > "$3""#);
    let noted = script.path("noted");
    let ocr = script.ocr(&["--image", "{input}", &noted]);
    let said = read(&ocr, "an image").await.unwrap();
    let file = fs::read_to_string(noted).unwrap();
    assert_eq!(said, format!("an image of {file}"));
    assert_eq!(Path::new(&file).extension(), Some("png".as_ref()));
    assert!(!Path::new(&file).exists());
}

#[tokio::test]
async fn nothing_of_the_services_environment_is_passed_on_but_what_is_named() {
    let script = OcrScript::new("env");
    let said = read(&script.ocr(&[]), "").await.unwrap();
    let mut names: Vec<_> = said.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["OMP_THREAD_LIMIT", "PATH", "TMPDIR"]);
}

#[tokio::test]
async fn a_command_that_fails_is_told_from_a_blank_page() {
    let error = read(&OcrScript::new("echo half a page; exit 3").ocr(&[]), "").await.unwrap_err();
    assert!(matches!(error, OcrError::Failed(status) if status.code() == Some(3)));
    assert_eq!(read(&OcrScript::new("exit 0").ocr(&[]), "").await.unwrap(), "");
}

#[tokio::test]
async fn a_command_that_reads_nothing_and_complains_a_lot_is_no_trouble() {
    let script = OcrScript::new("exec <&-; head -c 1000000 /dev/zero >&2; echo done");
    assert_eq!(read(&script.ocr(&[]), &"x".repeat(1 << 20)).await.unwrap(), "done");
}

#[tokio::test]
async fn a_command_that_says_too_much_is_cut_short() {
    let error = read(&OcrScript::new("yes text").ocr(&[]), "").await.unwrap_err();
    assert!(matches!(error, OcrError::TooMuch));
}

#[tokio::test]
async fn a_command_that_takes_too_long_ends_with_everything_that_it_started() {
    let script = OcrScript::new(r#"sleep 1000 & printf %s "$!" > "$1"; wait"#);
    let noted = script.path("noted");
    let error =
        read(&script.within(&[&noted], &OcrSettings { timeout: Duration::from_secs(2), ..settings() }), "")
            .await
            .unwrap_err();
    assert!(matches!(error, OcrError::TooSlow));
    let id: i32 = fs::read_to_string(noted).unwrap().parse().unwrap();
    let grandchild = Pid::from_raw(id).unwrap();
    // Killed at once; how soon somebody takes notice of it is the system's affair.
    for _ in 0..1_000 {
        let state = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        if rustix::process::test_kill_process(grandchild).is_err() || state.contains(") Z ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("what the command started is still running");
}

#[tokio::test]
async fn a_command_is_found_as_a_shell_would_find_it_or_stops_the_start() {
    let chosen = async |name: &str| {
        let program = OcrProgram::Command(vec![name.to_owned()]);
        let ocr = Some(OcrSettings { program, ..settings() });
        Recogniser::choose(&PdfSettings { ocr, ..PdfSettings::default() }).await
    };
    assert_eq!(chosen("sh").await.unwrap().unwrap().name(), "command");
    for name in ["no-such-recogniser", "/etc/passwd"] {
        let error = chosen(name).await.unwrap_err().to_string();
        assert!(error.contains("LECTERN_OCR_COMMAND") && error.contains(name), "{error}");
    }
}

/// Says what tesseract says of an installation, and reads one word of a page with its own arguments.
const TESSERACT: &str = r#"[ "$1" = --list-langs ] && printf 'List of available languages (3):\nchi_sim\ndeu\neng\nosd\n' && exit
[ "$(cat)" = "a page" ] || exit 1
printf 'level\n5\t1\t1\t1\t1\t1\t300\t600\t300\t150\t91.5\t%s\n' "$(echo "$@" | tr ' ' /)""#;

#[tokio::test]
async fn tesseract_is_asked_for_the_languages_of_the_document_and_of_the_operator() {
    let script = OcrScript::called("tesseract", TESSERACT);
    let ocr = script.chosen(false, Some(&["eng", "chi_sim"])).await.unwrap().unwrap();
    assert_eq!(ocr.name(), "tesseract");
    for (language, models) in [
        (None, "eng+chi_sim"),
        (Some("de-AT"), "deu+eng+chi_sim"),
        (Some("zh"), "chi_sim+eng"),
        (Some("fr"), "eng+chi_sim"),
    ] {
        let page = ocr.read(b"a page".to_vec(), 300.0, language).await.unwrap();
        let expected = format!("stdin/stdout/-l/{models}/--psm/1/-c/tessedit_create_tsv=1/--dpi/300");
        assert_eq!(page.text, expected);
        assert_eq!(page.words[0].confidence, 91);
        assert!((page.words[0].place.left - 72.0).abs() < 0.01, "{:?}", page.words);
    }
}

#[tokio::test]
async fn a_missing_language_stops_the_start_when_it_was_asked_for_and_says_what_there_is() {
    let script = OcrScript::called("tesseract", TESSERACT);
    let error = script.chosen(false, Some(&["eng", "fra"])).await.unwrap_err().to_string();
    assert!(error.contains("lacks fra") && error.contains("chi_sim, deu, eng, osd"), "{error}");
    let broken = OcrScript::called("tesseract", "exit 1");
    assert!(broken.chosen(false, None).await.unwrap().is_none());
    let error = broken.chosen(true, None).await.unwrap_err();
    assert!(matches!(error, OcrStartError::UnusableTesseract(_)), "{error}");
}

#[tokio::test]
async fn without_tesseract_the_service_starts_unless_it_was_asked_for() {
    let nowhere = |is_required| {
        let program = OcrProgram::Tesseract { is_required, languages: None };
        let environment = vec![("PATH".to_owned(), "/nonexistent".to_owned())];
        PdfSettings {
            ocr: Some(OcrSettings { program, environment, ..settings() }),
            ..PdfSettings::default()
        }
    };
    assert!(Recogniser::choose(&nowhere(false)).await.unwrap().is_none());
    let error = Recogniser::choose(&nowhere(true)).await.unwrap_err();
    assert!(matches!(error, OcrStartError::NoTesseract), "{error}");
    assert!(Recogniser::choose(&PdfSettings::default()).await.unwrap().is_none());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn tesseract_has_no_more_address_space_than_the_setting_says() {
    let body = r#"[ "$1" = --list-langs ] && echo eng && exit
cat > /dev/null; printf 'level\n5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t90\t%s\n' "$(ulimit -v)""#;
    let script = OcrScript::called("tesseract", body);
    let ocr = script.chosen(true, None).await.unwrap().unwrap();
    // In units of 1024 bytes.
    assert_eq!(read(&ocr, "").await.unwrap(), "1048576");
}

#[tokio::test]
async fn recognised_text_takes_the_place_of_less_and_is_counted() {
    let script = OcrScript::new("cat");
    let ocr = script.ocr(&[]);
    let mut recognition = PageRecognition::new(Some(&ocr));
    recognition.image(1, b"a page that was scanned".to_vec(), 300.0).await;
    assert_eq!(recognition.page("1".to_owned(), true).0, "a page that was scanned");
    assert_eq!(recognition.page("a page of text".to_owned(), false).0, "a page of text");
    recognition.image(3, b"l1ttle".to_vec(), 300.0).await;
    assert_eq!(recognition.page("little, but written".to_owned(), true).0, "little, but written");
    recognition.image(4, Vec::new(), 300.0).await;
    assert_eq!(recognition.page(String::new(), true).0, "");
    let warnings: Vec<_> =
        recognition.warnings(4).into_iter().map(|warning| (warning.code, warning.count)).collect();
    assert_eq!(warnings, [("ocr_pages".to_owned(), 1), ("pages_without_text".to_owned(), 1)]);
}

#[test]
fn without_a_recogniser_scans_are_counted_and_it_is_said_what_to_do() {
    let mut recognition = PageRecognition::new(None);
    for (text, is_scan) in [("a page of text", false), ("", true), ("Scan 3", true), ("", false)] {
        assert_eq!(recognition.page(text.to_owned(), is_scan).0, text);
    }
    let warnings = recognition.warnings(4);
    assert_eq!((warnings[0].code.as_str(), warnings[0].count), ("pages_without_text", 2));
    assert!(warnings[0].message.starts_with("2 of 4 pages have no text"), "{}", warnings[0].message);
    assert!(warnings[0].message.contains("LECTERN_OCR"), "{}", warnings[0].message);
}

#[tokio::test]
async fn a_command_that_keeps_failing_is_not_asked_for_ever() {
    let script = OcrScript::new(r#"echo asked >> "$1"; exit 1"#);
    let noted = script.path("noted");
    let ocr = script.ocr(&[&noted]);
    let mut recognition = PageRecognition::new(Some(&ocr));
    for page in 1..=20 {
        recognition.image(page, Vec::new(), 300.0).await;
        assert_eq!(recognition.page(String::new(), true).0, "");
    }
    assert_eq!(fs::read_to_string(noted).unwrap().lines().count(), 5);
    let warnings = recognition.warnings(20);
    assert_eq!(warnings.len(), 1);
    assert_eq!((warnings[0].code.as_str(), warnings[0].count), ("ocr_failed", 20));
}

/// Whether the system has this wall; where it has not, that is said.
fn has(wall: ConfinementLayer) -> bool {
    let grant = AccessGrant { hidden: Vec::new(), folder: std::env::temp_dir(), network: true };
    let missing = std::thread::spawn(move || confine::confine_thread(&grant)).join().unwrap().unwrap();
    if missing.contains(&wall) {
        let text =
            format!("\n!!! the kernel lacks {wall}: what it keeps from OCR commands was NOT tried !!!\n\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    !missing.contains(&wall)
}

#[tokio::test]
async fn a_command_reads_everything_but_what_is_hidden_from_it() {
    if !has(ConfinementLayer::Landlock) {
        return;
    }
    let script = OcrScript::new(r#"for file; do cat "$file" || echo refused; done"#);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = folder.path().join(name).join("file");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("what is in {name}\n")).unwrap();
        path
    };
    let (secret, open) = (file("secret"), file("open"));
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(secret.parent().unwrap(), &link).unwrap();
    let linked = link.join("file");
    let words = [&open, &secret, &linked].map(|path| path.to_str().unwrap());
    let without = |hidden| script.within(&words, &OcrSettings { hidden, ..settings() });
    assert_eq!(
        read(&without(Vec::new()), "").await.unwrap(),
        "what is in open\nwhat is in secret\nwhat is in secret",
        "nothing is hidden yet"
    );
    let (above, beside) = (secret.parent().unwrap().to_owned(), folder.path().join("not there"));
    for hidden in [vec![above], vec![secret.clone(), beside]] {
        assert_eq!(read(&without(hidden), "").await.unwrap(), "what is in open\nrefused\nrefused");
    }
}

#[tokio::test]
async fn a_commands_own_folder_may_lie_in_what_is_hidden_from_it() {
    let words = ["/bin/cat", "{input}"].map(str::to_owned).to_vec();
    let ocr = command(words, &OcrSettings { hidden: vec![std::env::temp_dir()], ..settings() });
    assert_eq!(read(&ocr, "an image").await.unwrap(), "an image");
}

#[tokio::test]
async fn a_command_neither_reads_nor_replaces_the_images_of_other_pages() {
    if !has(ConfinementLayer::Landlock) {
        return;
    }
    let script = OcrScript::new(r#"cat "$1"; cat "$2" || echo refused; echo forged > "$2" || echo refused"#);
    let (_folder, another, _) = prepare(b"another's page".to_vec(), true).unwrap();
    let ocr = script.ocr(&["{input}", another.to_str().unwrap()]);
    assert_eq!(read(&ocr, "its own page\n").await.unwrap(), "its own page\nrefused\nrefused");
    assert_eq!(fs::read_to_string(&another).unwrap(), "another's page");
}

#[tokio::test]
async fn a_command_keeps_the_images_that_come_while_it_runs_from_others_too() {
    if !has(ConfinementLayer::Landlock) {
        return;
    }
    // It says that it runs, waits to be told of another page, and tries that.
    let script = OcrScript::new(
        r#"echo > "$1"; while [ ! -s "$2" ]; do sleep 0.01; done; cat "$(cat "$2")" || echo refused"#,
    );
    let (runs, told) = (script.path("runs"), script.path("told"));
    let ocr = script.ocr(&[&runs, &told]);
    let later = async {
        while !Path::new(&runs).exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (folder, another, _) = prepare(b"another's page".to_vec(), true).unwrap();
        let name = script.path("name");
        fs::write(&name, another.to_str().unwrap()).unwrap();
        fs::rename(name, &told).unwrap();
        folder
    };
    let both = async { tokio::join!(read(&ocr, ""), later) };
    let (said, _folder) = timeout(Duration::from_mins(1), both).await.unwrap();
    assert_eq!(said.unwrap(), "refused");
}

#[test]
fn no_other_account_can_enter_the_folder_of_a_page() {
    let (folder, _, _) = prepare(b"a page".to_vec(), true).unwrap();
    let mode = folder.path().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn what_a_command_writes_for_itself_lies_in_its_own_folder_and_is_gone_afterwards() {
    let script = OcrScript::new(r#"made=$(mktemp) && [ "$(dirname "$made")" = "$TMPDIR" ] && echo "$made""#);
    let made = read(&script.ocr(&[]), "").await.unwrap();
    assert!(made.starts_with('/'), "{made}");
    assert!(!Path::new(&made).exists());
}

#[tokio::test]
async fn a_command_cannot_read_the_environment_of_the_service() {
    if !has(ConfinementLayer::Landlock) {
        return;
    }
    let script = OcrScript::new("cat /proc/$PPID/environ > /dev/null && echo read || echo refused");
    assert_eq!(read(&script.ocr(&[]), "").await.unwrap(), "refused");
}

#[tokio::test]
async fn a_command_has_no_network_unless_the_operator_says_so() {
    if !has(ConfinementLayer::Seccomp) {
        return;
    }
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect =
        format!("exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected || echo refused'");
    let script = OcrScript::new(&connect);
    assert_eq!(read(&script.ocr(&[]), "").await.unwrap(), "refused");
    let connected = script.within(&[], &OcrSettings { network: true, ..settings() });
    assert_eq!(read(&connected, "").await.unwrap(), "connected");
}
