//! TLS, with an authority of the test's own.

use std::{fs, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};

use super::{
    server::Server,
    spool::{Spool, names, once, os, points},
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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![own.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    (Server::start_tls(config), authority)
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
