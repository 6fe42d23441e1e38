//! Whose certificate is trusted: that of an authority we trust, or one that the given file holds itself.
//!
//! webpki alone takes no certificate of an authority for a server's own, which is what
//! `openssl req -x509` makes, and lets any certificate that it is told to trust vouch for others. Refuses
//! to look past a name or a date that does not fit.

use std::{path::Path, sync::Arc, time::Duration};

use super::OptionNames;
use anyhow::{Context, Result, ensure};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};

/// TLS that trusts the certificates in `ca`, or those that this system trusts; `prefix` is what the option for them
/// begins with.
///
/// # Errors
/// When there are no certificates to trust.
pub fn config(ca: Option<&Path>, prefix: &str) -> Result<Arc<ClientConfig>> {
    let (mut roots, mut own) = (RootCertStore::empty(), Vec::new());
    match ca {
        Some(file) => {
            let shown = file.display();
            let unread = || format!("cannot read {shown}");
            let found = CertificateDer::pem_file_iter(file).with_context(unread)?;
            own = found.collect::<Result<Vec<_>, _>>().with_context(unread)?;
            ensure!(!own.is_empty(), "{shown} contains no certificate: give a PEM file");
            for certificate in own.iter().filter(|certificate| may_vouch(certificate)) {
                roots.add(certificate.clone()).with_context(unread)?;
            }
        }
        None => {
            // What is broken among a system's many is none of ours.
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            ensure!(
                !roots.is_empty(),
                "this system has no trusted certificates: install ca-certificates, or give {prefix}ca"
            );
        }
    }
    let provider = ring::default_provider();
    let algorithms = provider.signature_verification_algorithms;
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .context("cannot set up TLS")?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { roots, own, algorithms }))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Whether a certificate may vouch for others: only one that says `CA:TRUE`, or whose version has no words
/// for it.
fn may_vouch(certificate: &CertificateDer<'_>) -> bool {
    let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else { return true };
    let judge = |time| {
        let usage = webpki::KeyUsage::server_auth();
        certificate.verify_for_usage(&[], &[], &[], time, usage, None, None).err()
    };
    // webpki looks at the dates first, which are not the question here.
    let judged = match judge(UnixTime::since_unix_epoch(Duration::ZERO)) {
        Some(webpki::Error::CertNotValidYet { not_before, .. }) => judge(not_before),
        judged => judged,
    };
    judged == Some(webpki::Error::CaUsedAsEndEntity)
}

/// Judges as webpki does, but for the server's certificate that is in `own` byte for byte: whoever named
/// it trusts it, whoever signed it.
#[derive(Debug)]
struct Verifier {
    roots: RootCertStore,
    own: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let judged = verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        );
        match judged {
            // webpki has looked at the dates by then.
            Err(error) if is_of_its_signer(&error) && self.own.contains(end_entity) => {}
            judged => judged?,
        }
        verify_server_name(&certificate, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Whether all that speaks against a certificate is who signed it, and for what.
fn is_of_its_signer(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        Error::InvalidCertificate(why) => is_an_authoritys(why),
        _ => false,
    }
}

/// Whether the certificate is an authority's, which webpki takes for no server's.
fn is_an_authoritys(why: &CertificateError) -> bool {
    is(why, &webpki::Error::CaUsedAsEndEntity)
}

/// Whether it is this one of webpki's, for which rustls has no name.
fn is(why: &CertificateError, known: &webpki::Error) -> bool {
    let CertificateError::Other(why) = why else { return false };
    why.0.downcast_ref() == Some(known)
}

/// Why a certificate is not trusted, in words.
pub fn words(why: &CertificateError) -> String {
    match why {
        why if is_an_authoritys(why) => "it is an authority's, and not one that was named".into(),
        why if is(why, &webpki::Error::UnsupportedCertVersion) => {
            "it is X.509 version 1 or 2, not 3".into()
        }
        why => why.to_string(),
    }
}

/// What cures a certificate that can hold no name, or does not.
const ANOTHER: &str = "give the server another certificate, with its name as subjectAltName (openssl \
                       req -x509 -addext subjectAltName=DNS:NAME)";

/// What cures that a certificate is not trusted for the reason `why`.
pub fn cure(why: &CertificateError, options: &OptionNames) -> String {
    let OptionNames { url, prefix, .. } = options;
    use CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext,
        NotValidYet, NotValidYetContext, UnknownIssuer,
    };
    match why {
        // The second is an authority's of the right name with another key.
        UnknownIssuer | BadSignature => {
            format!("give its authority's certificate, or the certificate itself, with {prefix}ca")
        }
        NotValidForNameContext { presented, .. } if presented.is_empty() => ANOTHER.into(),
        NotValidForName | NotValidForNameContext { .. } => format!(
            "use a name in {url} that the certificate has as subjectAltName, or give the server \
             another certificate"
        ),
        Expired | ExpiredContext { .. } => {
            "renew it on the server, or set this node's clock".into()
        }
        NotValidYet | NotValidYetContext { .. } => "set this node's clock, or the server's".into(),
        why if is_an_authoritys(why) => format!("give this certificate itself with {prefix}ca"),
        why if is(why, &webpki::Error::UnsupportedCertVersion) => ANOTHER.into(),
        _ => "give the server another certificate".into(),
    }
}

#[cfg(test)]
mod tests {
    use rustls::OtherError;

    use super::*;
    use crate::server::PUSH;

    #[test]
    fn what_rustls_has_no_name_for_has_words_and_a_cure() {
        for (why, told, cured) in [
            (webpki::Error::UnsupportedCertVersion, "version 1", "-addext subjectAltName="),
            (webpki::Error::CaUsedAsEndEntity, "an authority's", "with --ca"),
        ] {
            let why = CertificateError::Other(OtherError(Arc::new(why)));
            let words = words(&why);
            assert!(words.contains(told) && !words.contains("Error"), "{words}");
            assert!(cure(&why, &PUSH).contains(cured), "{words}");
        }
    }
}
