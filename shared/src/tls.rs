//! TLS is rustls everywhere. More than one of its cryptographic back ends is compiled in, since libraries choose for
//! themselves, so it must be told which one to use wherever a library leaves that open.

/// Chooses the cryptography of TLS connections for the whole process. Call it before the first one; later calls change
/// nothing.
pub fn install() {
    // Refused when it was chosen before, which is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
