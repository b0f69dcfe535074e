//! Being asked to end.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Counts how often somebody asks this program to end: by Ctrl-C, or by SIGTERM.
pub(crate) fn requested() -> std::io::Result<watch::Receiver<u64>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (sender, receiver) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            sender.send_modify(|times| *times += 1);
        }
    });
    Ok(receiver)
}

/// Waits until it was asked for so often.
pub(crate) async fn wait(mut requested: watch::Receiver<u64>, times: u64) {
    // The sender stays as long as the program.
    if requested.wait_for(|asked| *asked >= times).await.is_err() {
        std::future::pending::<()>().await;
    }
}
