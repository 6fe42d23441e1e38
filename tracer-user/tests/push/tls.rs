//! TLS, with an authority of the test's own.

use std::{fs, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer},
    sign::{CertifiedKey, SingleCertAndKey},
};

use super::{
    server::Server,
    spool::{Ended, Spool, names, once, os, points},
};

/// A server for `localhost`, and its authority's certificate.
fn server() -> (Server, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority of a test");
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let own = own.signed_by(&key, &issuer).unwrap();
    (serve(own.der().clone(), &key), authority)
}

/// A server that shows `certificate`, whose key is `key`.
fn serve(certificate: CertificateDer<'static>, key: &KeyPair) -> Server {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    Server::start_tls(config)
}

#[test]
fn a_server_whose_authority_is_named_is_trusted() {
    let ((server, authority), spool) = (server(), Spool::new(3, 10));
    let file = spool.path().join("ca.pem");
    fs::write(&file, authority).unwrap();
    let ended = spool.push(&server.tls_url("localhost"), &["--ca", os(&file)]);
    assert_eq!(ended.status, 0, "{}", ended.words);
    assert_eq!(once(&server.stored()), points(0..3, 10));
    assert_eq!(names(&spool.outbox()).len(), 0);
}

#[test]
fn a_server_that_nobody_vouches_for_gets_nothing() {
    let ((server, _), spool) = (server(), Spool::new(1, 1));
    let (_, other) = self::server();
    let file = spool.path().join("ca.pem");
    fs::write(&file, other).unwrap();
    // Another authority's, that of another host, and none that this system trusts.
    let ended = spool.push(&server.tls_url("localhost"), &["--ca", os(&file)]);
    assert_eq!(ended.status, 2, "{}", ended.words);
    for part in ["certificate is not trusted", "--ca", "all files stay"] {
        assert!(ended.words.contains(part), "{}", ended.words);
    }
    assert_eq!((server.requests().len(), names(&spool.outbox()).len()), (0, 1));
}

#[test]
fn a_certificate_of_another_name_is_refused() {
    let ((server, authority), spool) = (server(), Spool::new(1, 1));
    let file = spool.path().join("ca.pem");
    fs::write(&file, authority).unwrap();
    let ended = spool.push(&server.tls_url("127.0.0.1"), &["--ca", os(&file)]);
    assert_eq!(ended.status, 2, "{}", ended.words);
    assert!(ended.words.contains("certificate is not trusted"), "{}", ended.words);
    assert_eq!((server.requests().len(), names(&spool.outbox()).len()), (0, 1));
}

#[test]
fn a_server_without_tls_is_tried_again() {
    let (spool, plain) = (Spool::new(1, 1), Server::start(|_, _| super::server::Act::Take));
    let (_, authority) = server();
    let file = spool.path().join("ca.pem");
    fs::write(&file, authority).unwrap();
    let url = plain.url().replace("http:", "https:");
    let ended = spool.push(&url, &["--ca", os(&file), "--retries", "1", "--timeout", "5s"]);
    assert_eq!(ended.status, 1, "{}", ended.words);
    assert_eq!((plain.requests().len(), names(&spool.outbox()).len()), (0, 1));
}

/// What `openssl req -x509` makes: a certificate for `localhost` that says it is an authority's, and that
/// its own key signed. `change` is made before.
fn self_signed(change: impl FnOnce(&mut CertificateParams)) -> (CertificateDer<'static>, KeyPair) {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().der().clone(), key)
}

/// Pushes a spool of one file to a server with `shown`'s certificate, `--ca` naming `trusted`.
fn push_to(
    shown: &(CertificateDer<'static>, KeyPair),
    trusted: &CertificateDer<'static>,
    host: &str,
) -> (Ended, Server) {
    let (server, spool) = (serve(shown.0.clone(), &shown.1), Spool::new(1, 3));
    let file = spool.path().join("ca.pem");
    fs::write(&file, pem(trusted)).unwrap();
    let ended = spool.push(&server.tls_url(host), &["--ca", os(&file)]);
    let left = names(&spool.outbox()).len();
    assert_eq!(left, usize::from(ended.status != 0), "{}", ended.words);
    (ended, server)
}

fn pem(certificate: &CertificateDer<'_>) -> String {
    let text = BASE64_STANDARD.encode(certificate);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

#[test]
fn a_server_is_trusted_whose_own_certificate_is_named() {
    let authoritys = self_signed(|_| ());
    let no_authoritys = self_signed(|params| params.is_ca = IsCa::ExplicitNoCa);
    for shown in [&authoritys, &no_authoritys] {
        let (ended, server) = push_to(shown, &shown.0, "localhost");
        assert_eq!(ended.status, 0, "{}", ended.words);
        assert_eq!(once(&server.stored()), points(0..1, 3));
    }
}

#[test]
fn naming_a_certificate_excuses_neither_name_nor_date() {
    let unchanged = self_signed(|_| ());
    let old = self_signed(|params| params.not_after = date_time_ymd(2020, 1, 1));
    let young = self_signed(|params| params.not_before = date_time_ymd(4000, 1, 1));
    let nameless = self_signed(|params| params.subject_alt_names.clear());
    for (shown, host, why, cure) in [
        (&unchanged, "127.0.0.1", "not valid for name", "--url"),
        (&old, "localhost", "expired", "renew it"),
        (&young, "localhost", "not valid yet", "clock"),
        (&nameless, "localhost", "not valid for any names", "-addext subjectAltName="),
    ] {
        let (ended, server) = push_to(shown, &shown.0, host);
        assert_eq!((ended.status, server.requests().len()), (2, 0), "{}", ended.words);
        assert!(ended.words.contains(why) && ended.words.contains(cure), "{}", ended.words);
    }
}

#[test]
fn a_certificate_that_only_looks_like_the_named_one_is_refused() {
    let (shown, named) = (self_signed(|_| ()), self_signed(|_| ()));
    let (ended, server) = push_to(&shown, &named.0, "localhost");
    assert_eq!((ended.status, server.requests().len()), (2, 0), "{}", ended.words);
    assert!(ended.words.contains("give this certificate itself with --ca"), "{}", ended.words);
}

#[test]
fn only_an_authority_vouches_for_others() {
    for (is_ca, status) in
        [(IsCa::Ca(BasicConstraints::Unconstrained), 0), (IsCa::ExplicitNoCa, 2), (IsCa::NoCa, 2)]
    {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = is_ca;
        params.distinguished_name.push(DnType::CommonName, "signer of a test");
        let key = KeyPair::generate().unwrap();
        let named = params.self_signed(&key).unwrap().der().clone();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let shown = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let shown = shown.signed_by(&key, &issuer).unwrap().der().clone();
        let (ended, server) = push_to(&(shown, key), &named, "localhost");
        assert_eq!(ended.status, status, "{is_ca:?}: {}", ended.words);
        assert_eq!(server.requests().is_empty(), status != 0, "{is_ca:?}");
    }
}

#[test]
fn a_dry_run_reads_the_certificates_too() {
    let spool = Spool::new(1, 1);
    let file = spool.path().join("ca.pem");
    fs::write(&file, "no certificate").unwrap();
    for option in [&["--dry-run"][..], &[]] {
        let arguments = [&["--ca", os(&file)], option].concat();
        let ended = spool.push("https://localhost:1", &arguments);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{option:?}");
        assert!(ended.words.contains("contains no certificate"), "{}", ended.words);
    }
}

#[test]
fn a_certificate_without_its_key_is_refused() {
    let (named, other) = (self_signed(|_| ()), self_signed(|_| ()));
    let provider = rustls::crypto::ring::default_provider();
    let key = PrivateKeyDer::try_from(other.1.serialize_der()).unwrap();
    let key = provider.key_provider.load_private_key(key).unwrap();
    // rustls would not let a server have them; a thief does not ask.
    let stolen = Arc::new(SingleCertAndKey::from(CertifiedKey::new(vec![named.0.clone()], key)));
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(stolen);
    let (server, spool) = (Server::start_tls(config), Spool::new(1, 1));
    let file = spool.path().join("ca.pem");
    fs::write(&file, pem(&named.0)).unwrap();
    let ended = spool.push(&server.tls_url("localhost"), &["--ca", os(&file)]);
    assert_eq!((ended.status, server.requests().len()), (2, 0), "{}", ended.words);
}
