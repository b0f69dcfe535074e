//! TLS is rustls everywhere. More than one of its cryptographic back ends is compiled in, since libraries choose for
//! themselves, so it must be told which one to use wherever a library leaves that open.

use std::sync::LazyLock;

use rustls_platform_verifier::ConfigVerifierExt as _;

/// The settings of every HTTP client's connections: any server is trusted that the system trusts. The system's authorities are more
/// than a hundred files, which are read once, and not for each client.
static CLIENT: LazyLock<Result<rustls::ClientConfig, rustls::Error>> = LazyLock::new(|| {
    install();
    rustls::ClientConfig::with_platform_verifier()
});

/// The TLS of an HTTP client.
///
/// # Errors
/// When the system has no authorities.
pub(crate) fn client_config() -> Result<rustls::ClientConfig, rustls::Error> {
    CLIENT.clone()
}

/// Reads the system's authorities, unless that was done before: who asks for a client first would have to wait for it otherwise. It blocks.
pub fn prepare() {
    // What is wrong with them is told whoever wants a client.
    let _read = LazyLock::force(&CLIENT);
}

/// Chooses the cryptography of TLS connections for the whole process. Call it before the first one; later calls change
/// nothing.
pub fn install() {
    // Refused when it was chosen before, which is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
