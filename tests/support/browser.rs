//! A real browser: Chromium without a window, steered by its driver, with a profile of its own.
//!
//! What acts on an element waits until the element is there and can be acted on. Every wait ends after
//! [`PATIENCE`], and says what it waited for and what the page showed.

use std::{
    fmt::Write as _,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{Arc, Once},
    time::{Duration, Instant},
};

use fantoccini::{
    Client, ClientBuilder, Locator,
    actions::{InputSource as _, KeyAction, KeyActions},
    error::{CmdError, ErrorStatus},
    wd::{Capabilities, WebDriverCompatibleCommand},
};
use hyper_util::client::legacy::connect::HttpConnector;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use url::{ParseError, Url};

pub use fantoccini::key::Key;

use super::{
    process::{Log, POLL, Process, dying_with_this_thread},
    within_deadline,
};

/// How long a page may take to become what a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What axe looks for: the levels A and AA of the Web Content Accessibility Guidelines up to 2.2, and good
/// practice.
const RULES: [&str; 6] = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/// Keys that are held while others are pressed.
const MODIFIERS: [Key; 4] = [Key::Shift, Key::Control, Key::Alt, Key::Meta];

/// One browser, as one person has it: its cookies and its storage are shared with no other. It ends when it is
/// dropped.
pub struct Browser {
    client: Client,
    driver: Process,
    log: Arc<Mutex<Log>>,
    folder: TempDir,
}

impl Browser {
    /// Starts a browser with an empty profile; none where the test command names no browser, which is said
    /// once.
    pub async fn start() -> Option<Self> {
        static MISSING: Once = Once::new();
        let (Some(browser), Some(driver)) = (named("TEST_CHROMIUM"), named("TEST_CHROMEDRIVER")) else {
            let text = "TEST_CHROMIUM and TEST_CHROMEDRIVER are not set: the tests in a browser did NOT run";
            MISSING.call_once(|| say_loudly(text));
            return None;
        };
        let folder = tempfile::Builder::new().prefix("browser-").tempdir().expect("a temporary directory");
        let launcher = write_launcher(folder.path(), &browser);

        let mut command = dying_with_this_thread(&driver);
        // What the browser keeps outside its profile goes as well when the folder does.
        command.arg("--port=0").env("HOME", folder.path()).env("TMPDIR", folder.path());
        let log = Arc::<Mutex<Log>>::default();
        let mut driver = Process::spawn(command, &log);
        let port = port_of(&mut driver, &log).await;

        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let mut builder = ClientBuilder::new(connector);
        builder.capabilities(capabilities(&launcher, &folder.path().join("profile")));
        let address = format!("http://127.0.0.1:{port}");
        let client =
            within_deadline("a browser to start", builder.connect(&address)).await.unwrap_or_else(|error| {
                panic!("no browser starts: {error}\n{}", log.lock().tail());
            });
        Some(Self { client, driver, log, folder })
    }

    /// Opens an address, absolute or relative to the page that is open, and waits until it has loaded.
    pub async fn goto(&self, url: &str) {
        self.done(&format!("open {url}"), self.client.goto(url)).await;
    }

    /// The address of the page that is open.
    pub async fn url(&self) -> String {
        self.done("read the address", self.client.current_url()).await.into()
    }

    /// The page as it is now, as HTML.
    pub async fn html(&self) -> String {
        self.done("read the page", self.client.source()).await
    }

    /// The text that the first element of a selector shows: nothing when it is hidden.
    pub async fn text(&self, css: &str) -> String {
        let text = async || self.client.find(Locator::Css(css)).await?.text().await.map(Some);
        self.eventually(&format!("the text of {css}"), text).await
    }

    /// What the field holds.
    pub async fn value(&self, css: &str) -> String {
        let value = async || self.client.find(Locator::Css(css)).await?.prop("value").await;
        self.eventually(&format!("the value of {css}"), value).await
    }

    /// An attribute of the first element of a selector, or `None` when the element does not have it.
    pub async fn attribute(&self, css: &str, name: &str) -> Option<String> {
        let attribute = async || self.client.find(Locator::Css(css)).await?.attr(name).await.map(Some);
        self.eventually(&format!("the attribute {name} of {css}"), attribute).await
    }

    /// Whether there is such an element now, visible or not.
    pub async fn exists(&self, css: &str) -> bool {
        let found = self.done(&format!("look for {css}"), self.client.find_all(Locator::Css(css))).await;
        !found.is_empty()
    }

    /// Waits until there is such an element, visible or not.
    pub async fn wait_for(&self, css: &str) {
        let found = async || self.client.find(Locator::Css(css)).await.map(Some);
        self.eventually(css, found).await;
    }

    /// Waits until an expression of JavaScript is true. One that fails is not true yet: the page may be another
    /// meanwhile.
    pub async fn wait_until(&self, what: &str, expression: &str) {
        let script = format!(
            "try {{ return [Boolean({expression}), ''] }} catch (error) {{ return [false, String(error)] }}"
        );
        let started = Instant::now();
        loop {
            let found = within_deadline(what, self.client.execute(&script, Vec::new())).await;
            if found.as_ref().is_ok_and(|found| found[0] == true) {
                return;
            }
            if started.elapsed() > PATIENCE {
                let why = match &found {
                    Ok(found) => found[1].as_str().unwrap_or_default().to_owned(),
                    Err(error) => error.to_string(),
                };
                let state = self.state().await;
                panic!("waited for {what} ({expression}): {why}\n{state}");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Clicks the first element of a selector that is visible and not disabled.
    pub async fn click(&self, css: &str) {
        self.click_first(&format!("a click on {css}"), Locator::Css(css)).await;
    }

    /// Clicks the first such element (`button`, `a`, `*` for any) with this very text, white space aside.
    pub async fn click_text(&self, tag: &str, text: &str) {
        let path = format!("//{tag}[normalize-space(.)={}]", quoted_for_xpath(text));
        self.click_first(&format!("a click on the {tag} {text:?}"), Locator::XPath(&path)).await;
    }

    /// Empties a field and types a text into it. A line break is the key Enter.
    pub async fn fill(&self, css: &str, text: &str) {
        let fill = async || {
            let field = self.client.find(Locator::Css(css)).await?;
            field.clear().await?;
            field.send_keys(text).await.map(Some)
        };
        self.eventually(&format!("to type into {css}"), fill).await;
    }

    /// Chooses the option of a `select` that has this value.
    pub async fn select(&self, css: &str, value: &str) {
        let select =
            async || self.client.find(Locator::Css(css)).await?.select_by_value(value).await.map(Some);
        self.eventually(&format!("to choose {value} of {css}"), select).await;
    }

    /// Presses keys, one after another, on what has the focus. Those of [`Key`] that are held, such as
    /// [`Key::Shift`], are released at the end: `Key::Shift + &Key::Tab`.
    pub async fn press(&self, keys: &str) {
        let mut keyboard = KeyActions::new("keyboard".to_owned());
        let mut held = Vec::new();
        for value in keys.chars() {
            keyboard = keyboard.then(KeyAction::Down { value });
            if MODIFIERS.iter().any(|modifier| char::from(*modifier) == value) {
                held.push(value);
            } else {
                keyboard = keyboard.then(KeyAction::Up { value });
            }
        }
        while let Some(value) = held.pop() {
            keyboard = keyboard.then(KeyAction::Up { value });
        }
        self.done("press keys", self.client.perform_actions(keyboard)).await;
    }

    /// Chooses a file for a file input, which may be hidden.
    pub async fn upload(&self, css: &str, path: &Path) {
        let path = path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let path = path.to_str().expect("a path in Unicode");
        let upload = async || self.client.find(Locator::Css(css)).await?.send_keys(path).await.map(Some);
        self.eventually(&format!("to choose a file for {css}"), upload).await;
    }

    /// Runs the body of a function in the page, whatever its Content-Security-Policy, and returns what it
    /// returns; of a promise, what that resolves to. The arguments are in `arguments`.
    pub async fn script(&self, body: &str, arguments: Vec<Value>) -> Value {
        self.done("run a script", self.client.execute(body, arguments)).await
    }

    /// Makes the area that shows pages so large, in CSS pixels. It may be narrower than a window can be.
    pub async fn set_size(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size).await;
    }

    /// Says to pages whether the person prefers a dark colour scheme, or a light one.
    pub async fn prefers_dark(&self, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", &features).await;
    }

    /// Turns JavaScript off for the pages that are opened from now on. [`Self::script`] goes on working, as far
    /// as it needs no timers and no events.
    pub async fn scripts_off(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": true })).await;
    }

    /// Writes what the page shows to a file, as a PNG.
    pub async fn screenshot(&self, path: &Path) {
        let png = self.done("take a screenshot", self.client.screenshot()).await;
        std::fs::write(path, png).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// What came to the console since it was last asked for, a line for each entry: its level, its source and
    /// its text. Exceptions that nobody caught are among them, answers that are errors, and what the
    /// Content-Security-Policy forbade.
    pub async fn console(&self) -> Vec<String> {
        let command = Vendor { path: "se/log", body: json!({ "type": "browser" }) };
        let entries = self.done("read the console", self.client.issue_cmd(command)).await;
        let field = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let line = |entry: &Value| {
            format!("{} {}: {}", field(entry, "level"), field(entry, "source"), field(entry, "message"))
        };
        entries.as_array().expect("a list of entries").iter().map(line).collect()
    }

    /// What axe finds wrong with the accessibility of the page as it is shown now, a line for each rule that is
    /// broken. Nothing where the test command names no axe, which is said once.
    pub async fn axe(&self) -> Vec<String> {
        static MISSING: Once = Once::new();
        let Some(path) = named("TEST_AXE") else {
            MISSING.call_once(|| say_loudly("TEST_AXE is not set: pages were NOT checked for accessibility"));
            return Vec::new();
        };
        let mut script = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        script.push_str(
            "\n;return window.axe.run(document, arguments[0]).then((results) => results.violations);",
        );
        let options = json!({
            "runOnly": { "type": "tag", "values": RULES },
            "resultTypes": ["violations"],
            // It would fetch style sheets and media again, which the page's policy may forbid.
            "preload": false,
        });
        let violations = self.done("run axe", self.client.execute(&script, vec![options])).await;
        violations.as_array().expect("a list of violations").iter().map(violation).collect()
    }

    /// Ends the browser, and waits until it has.
    pub async fn close(self) {
        self.done("close", self.client.clone().close()).await;
    }

    async fn click_first(&self, what: &str, locator: Locator<'_>) {
        let click = async || {
            for element in self.client.find_all(locator).await? {
                if element.is_displayed().await? && element.is_enabled().await? {
                    return element.click().await.map(Some);
                }
            }
            Ok(None)
        };
        self.eventually(what, click).await;
    }

    /// Repeats an attempt until it has an outcome, as long as the page may still become one that allows it.
    async fn eventually<T>(&self, what: &str, attempt: impl AsyncFn() -> Result<Option<T>, CmdError>) -> T {
        let started = Instant::now();
        loop {
            let (why, lasting) = match within_deadline(what, attempt()).await {
                Ok(Some(value)) => return value,
                Ok(None) => ("it never could be done".to_owned(), false),
                Err(error) => (error.to_string(), !may_pass(&error)),
            };
            if lasting || started.elapsed() > PATIENCE {
                let state = self.state().await;
                panic!("waited for {what}: {why}\n{state}");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// What a single command of the driver returns; its failure ends the test.
    async fn done<T>(&self, what: &str, command: impl Future<Output = Result<T, CmdError>>) -> T {
        let outcome = within_deadline(&format!("the browser to {what}"), command).await;
        outcome.unwrap_or_else(|error| {
            panic!("the browser does not {what}: {error}\n{}", self.log.lock().tail());
        })
    }

    /// Goes into a frame, the one that an expression of JavaScript gives: what follows is about the page in it.
    pub async fn enter_frame(&self, expression: &str) {
        self.wait_until("the frame", expression).await;
        let frame = self.script(&format!("return {expression}"), Vec::new()).await;
        let command = Vendor { path: "frame", body: json!({ "id": frame }) };
        self.done("enter the frame", self.client.issue_cmd(command)).await;
    }

    /// Goes back to the page that all frames are in.
    pub async fn leave_frame(&self) {
        let command = Vendor { path: "frame", body: json!({ "id": null }) };
        self.done("leave the frame", self.client.issue_cmd(command)).await;
    }

    /// Sends a command of Chromium's own protocol for developers' tools.
    async fn devtools(&self, name: &str, parameters: &Value) {
        let body = json!({ "cmd": name, "params": parameters });
        let command = Vendor { path: "goog/cdp/execute", body };
        self.done(&format!("obey {name}"), self.client.issue_cmd(command)).await;
    }

    /// The address and the text of the page, for the message of a test that fails.
    async fn state(&self) -> String {
        const SCRIPT: &str = "return `${location}\\n${document.body?.innerText.slice(0, 2000)}`";
        match within_deadline("the state of the page", self.client.execute(SCRIPT, Vec::new())).await {
            Ok(state) => format!("the page is {}", state.as_str().unwrap_or_default()),
            Err(error) => format!("the page cannot be read: {error}"),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        const LAST_WRITES: Duration = Duration::from_secs(1);
        self.driver.kill();
        // The browser's processes end by themselves after it, and until then one may put a file where one was
        // removed.
        let killed = Instant::now();
        while std::fs::remove_dir_all(self.folder.path()).is_err()
            && self.folder.path().exists()
            && killed.elapsed() < LAST_WRITES
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A command of a session that the client has no function for, or that the standard leaves to the makers of browsers.
#[derive(Debug)]
struct Vendor {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Vendor {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _url: &Url) -> (hyper::Method, Option<String>) {
        (hyper::Method::POST, Some(self.body.to_string()))
    }
}

/// The value of a variable that the test command sets, if it did.
fn named(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|value| !value.is_empty())
}

/// Not by `eprintln!`, which is shown of failed tests only.
fn say_loudly(text: &str) {
    let _ = std::io::stderr().write_all(format!("\n!!! {text} !!!\n\n").as_bytes());
}

/// Writes the program that the driver starts as the browser: it becomes the browser in such a way that this
/// ends with the driver. A driver that is killed would otherwise leave it behind.
fn write_launcher(folder: &Path, browser: &str) -> String {
    let command = dying_with_this_thread(browser);
    let mut script = "#!/bin/sh\nexec".to_owned();
    for word in std::iter::once(command.get_program()).chain(command.get_args()) {
        let word = word.to_str().expect("a path in Unicode");
        write!(script, " '{}'", word.replace('\'', r"'\''")).expect("a string takes any text");
    }
    script.push_str(" \"$@\"\n");
    let path = folder.join("launcher");
    std::fs::write(&path, script).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("its owner");
    path.into_os_string().into_string().expect("a path in Unicode")
}

/// The port that the driver says it listens on.
async fn port_of(driver: &mut Process, log: &Mutex<Log>) -> u16 {
    let said = async {
        loop {
            let port = port_in(&log.lock().text);
            if let Some(port) = port {
                return port;
            }
            if let Some(status) = driver.ended() {
                panic!("the driver of the browser ended with {status}:\n{}", log.lock().tail());
            }
            tokio::time::sleep(POLL).await;
        }
    };
    within_deadline("the driver of the browser to listen", said).await
}

fn port_in(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("started successfully on port ")?;
    rest.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

/// What is asked of the driver for a session.
fn capabilities(program: &str, profile: &Path) -> Capabilities {
    let profile = format!("--user-data-dir={}", profile.display());
    let asked = json!({
        "browserName": "chrome",
        "goog:chromeOptions": {
            "binary": program,
            "args": [
                "--headless=new",
                // Its sandbox needs privileges that containers do not have; it sees only the service under test.
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                // A page that is gone back to is loaded again, as where there is no memory to keep it as it was.
                "--disable-features=BackForwardCache",
                "--no-first-run",
                "--lang=en-US",
                "--window-size=1280,900",
                profile,
            ],
        },
        "goog:loggingPrefs": { "browser": "ALL" },
        "timeouts": { "script": DRIVER_PATIENCE_MS, "pageLoad": DRIVER_PATIENCE_MS, "implicit": 0 },
    });
    serde_json::from_value(asked).expect("an object")
}

/// How long the driver lets a page load or a script run, in milliseconds. A click lasts until the page that it leads to has loaded, with
/// its pictures: that it is slow is no fault, and a driver that gives up stops the page, too.
const DRIVER_PATIENCE_MS: u64 = 3 * PATIENCE.as_secs() * 1000;

/// Whether an error may be gone a moment later, when the page has become another.
fn may_pass(error: &CmdError) -> bool {
    error.is_no_such_element()
        || error.is_stale_element_reference()
        || error.is_element_not_interactable()
        || error.is_invalid_element_state()
        || error.is_move_target_out_of_bounds()
        // Something else lies over the element, perhaps for a moment.
        || matches!(error, CmdError::Standard(told) if told.error == ErrorStatus::ElementClickIntercepted)
}

/// A text as `XPath` 1.0 writes it, which knows no escapes.
fn quoted_for_xpath(text: &str) -> String {
    if !text.contains('\'') {
        format!("'{text}'")
    } else if !text.contains('"') {
        format!("\"{text}\"")
    } else {
        panic!("a text with both kinds of quotes cannot be looked for: {text}")
    }
}

/// One rule that is broken, as a line: the rule, how bad that is, where it is broken first, and what would mend
/// it.
fn violation(found: &Value) -> String {
    const PLACES: usize = 3;
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let nodes = found["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let place = |node: &Value| {
        // One selector, after one for each frame that it lies in.
        let selectors = node["target"].as_array().map(Vec::as_slice).unwrap_or_default();
        selectors.iter().map(word).collect::<Vec<_>>().join(" in ")
    };
    let places: Vec<_> = nodes.iter().take(PLACES).map(place).collect();
    let summary = nodes.first().and_then(|node| node["failureSummary"].as_str()).unwrap_or_default();
    let summary = summary.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} ({}) at {}: {summary}", word(&found["id"]), word(&found["impact"]), places.join(", "))
}
