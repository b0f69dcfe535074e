//! A job that is given up while a program is being started for it.

use std::sync::mpsc;

use futures::poll;
use tokio::{runtime, task::spawn_blocking};

use super::*;

/// Whether a script is being run. A process that has ended has no words any more.
fn runs(script: &str) -> bool {
    let words = |process: fs::DirEntry| fs::read(process.path().join("cmdline")).unwrap_or_default();
    let mut processes = fs::read_dir("/proc").unwrap().flatten().map(words);
    processes.any(|words| String::from_utf8_lossy(&words).contains(script))
}

#[test]
fn a_program_whose_job_is_given_up_while_it_is_started_is_not_waited_for_and_ends() {
    let script = OcrScript::new("sleep 1000 & wait");
    let (ocr, path) = (script.ocr(&[]), script.path("recognise"));
    // What blocks is done by one thread, in its order.
    let runtime =
        runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let all_before = || spawn_blocking(|| ());
        let mut reading = Box::pin(ocr.read(b"a page".to_vec(), 300.0, None));
        assert!(poll!(reading.as_mut()).is_pending(), "its folder is made");
        all_before().await.unwrap();
        let (open, opened) = mpsc::channel();
        let gate = spawn_blocking(move || opened.recv_timeout(Duration::from_mins(1)).is_ok());
        assert!(poll!(reading.as_mut()).is_pending(), "it is started when the gate opens");
        assert!(!runs(&path));
        drop(reading);
        // Nobody listens where giving it up took until the gate was open.
        let _unheard = open.send(());
        assert!(gate.await.unwrap(), "giving it up waited for its start");
        all_before().await.unwrap();
        for _ in 0..1_000 {
            if !runs(&path) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the program is still running");
    });
}
