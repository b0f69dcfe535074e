//! Small scripts in the place of a real recogniser.

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use lectern_parse::confine::ConfinementLayer;
use tempfile::TempDir;

use super::*;

/// A script that is run as `script ARGUMENTS…`, with the usual places for programs.
struct OcrScript {
    folder: TempDir,
}

impl OcrScript {
    fn new(body: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recognise");
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn ocr(&self, arguments: &[&str]) -> OcrCommand {
        self.patient(arguments, Duration::from_secs(30))
    }

    fn patient(&self, arguments: &[&str], timeout: Duration) -> OcrCommand {
        let mut command = vec![self.path("recognise")];
        command.extend(arguments.iter().map(|word| (*word).to_owned()));
        OcrCommand::new(OcrSettings { command, timeout, ..settings() })
    }
}

fn settings() -> OcrSettings {
    let (command, environment) = (Vec::new(), environment());
    OcrSettings { command, timeout: Duration::from_secs(30), environment, hidden: Vec::new(), network: false }
}

fn environment() -> Vec<(String, String)> {
    vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]
}

async fn read(ocr: &OcrCommand, image: &str) -> Result<String, OcrError> {
    ocr.read(image.as_bytes().to_vec()).await
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
    let error = read(&script.patient(&[&noted], Duration::from_secs(2)), "").await.unwrap_err();
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
async fn a_program_is_found_as_a_shell_would_find_it() {
    let named = |name: &str| {
        OcrCommand::new(OcrSettings {
            command: vec![name.to_owned()],
            timeout: Duration::from_secs(1),
            ..settings()
        })
    };
    assert!(named("sh").program().is_some_and(|path| path.is_absolute()));
    assert_eq!(named("no-such-recogniser").program(), None);
    assert_eq!(named("/etc/passwd").program(), None);
    let error = read(&named("no-such-recogniser"), "").await.unwrap_err();
    assert!(matches!(error, OcrError::Start(_)));
}

#[tokio::test]
async fn recognised_text_takes_the_place_of_less_and_is_counted() {
    let script = OcrScript::new("cat");
    let ocr = script.ocr(&[]);
    let mut recognition = PageRecognition::new(Some(&ocr));
    recognition.image(1, b"a page that was scanned".to_vec()).await;
    assert_eq!(recognition.text("1".to_owned()), "a page that was scanned");
    assert_eq!(recognition.text("a page of text".to_owned()), "a page of text");
    recognition.image(3, b"l1ttle".to_vec()).await;
    assert_eq!(recognition.text("little, but written".to_owned()), "little, but written");
    let warnings = recognition.warnings();
    assert_eq!(warnings.len(), 1);
    assert_eq!((warnings[0].code.as_str(), warnings[0].count), ("ocr_pages", 1));
}

#[tokio::test]
async fn a_command_that_keeps_failing_is_not_asked_for_ever() {
    let script = OcrScript::new(r#"echo asked >> "$1"; exit 1"#);
    let noted = script.path("noted");
    let ocr = script.ocr(&[&noted]);
    let mut recognition = PageRecognition::new(Some(&ocr));
    for page in 1..=20 {
        recognition.image(page, Vec::new()).await;
        assert_eq!(recognition.text(String::new()), "");
    }
    assert_eq!(fs::read_to_string(noted).unwrap().lines().count(), 5);
    let warnings = recognition.warnings();
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
    let mut ocr = script.ocr(&words);
    assert_eq!(
        read(&ocr, "").await.unwrap(),
        "what is in open\nwhat is in secret\nwhat is in secret",
        "nothing is hidden yet"
    );
    ocr.settings.hidden = vec![secret.parent().unwrap().to_owned()];
    assert_eq!(read(&ocr, "").await.unwrap(), "what is in open\nrefused\nrefused");
    ocr.settings.hidden = vec![secret, folder.path().join("not there")];
    assert_eq!(read(&ocr, "").await.unwrap(), "what is in open\nrefused\nrefused");
}

#[tokio::test]
async fn a_commands_own_folder_may_lie_in_what_is_hidden_from_it() {
    let command = ["/bin/cat", "{input}"].map(str::to_owned).to_vec();
    let ocr = OcrCommand::new(OcrSettings { command, hidden: vec![std::env::temp_dir()], ..settings() });
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
    let mut ocr = script.ocr(&[]);
    assert_eq!(read(&ocr, "").await.unwrap(), "refused");
    ocr.settings.network = true;
    assert_eq!(read(&ocr, "").await.unwrap(), "connected");
}
