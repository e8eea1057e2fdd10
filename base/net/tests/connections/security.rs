//! Who may join between hosts: certificates of the job's authority, and nobody else.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use net::{Address, Authority, Connection, IssuedCertificate, Limits, NetError, Security, certify};

use crate::peers::{Client, echo, identity, stranger};

/// Of those who may lose the processor for a while. Strangers who say nothing are heard for so many seconds.
fn limits(hello_s: u64) -> Limits {
    Limits { hello: Duration::from_secs(hello_s), silence: Duration::from_secs(30), ..Limits::default() }
}

fn hosts() -> Vec<String> {
    vec!["localhost".into(), "127.0.0.1".into()]
}

/// What a process reads that has these files.
fn security(authority: &str, own: &IssuedCertificate) -> Security {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (ca, cert, key) = (file("ca.pem", authority), file("own.pem", &own.certificate), file("own.key", &own.key));
    Security::from_files(&ca, &cert, &key).unwrap()
}

/// Connects, and has one frame sent back: some refusals only come with what is read first.
fn joins(to: &Address, job: &str, security: Option<&Security>) -> Result<(), NetError> {
    let connection = Connection::open(to, &identity(job, "client"), "echo", &limits(20), security)?;
    let client = Client::start(connection)?;
    client.send(3, &[], &[])?;
    assert_eq!(client.receive()?.0, 3);
    Ok(())
}

#[test]
fn members_of_the_job_talk_much_in_both_directions() {
    let authority = Authority::new("job").unwrap();
    let [a, b] = [(); 2].map(|()| security(&authority.certificate(), &authority.issue(&hosts()).unwrap()));
    let listener = echo("127.0.0.1:0", limits(5), Some(a));
    let connection = Connection::open(listener.address(), &identity("job", "me"), "echo", &limits(20), Some(&b));
    let client = Client::start(connection.unwrap()).unwrap();
    // Far more than the sockets hold, on its way in both directions at once.
    let body = |i: u8| (0..(3 << 20) + usize::from(i)).map(|b| (b * 31) as u8 ^ i).collect::<Vec<u8>>();
    for i in 0..20 {
        client.send(i, b"h", &body(i)).unwrap();
    }
    for i in 0..20 {
        let (kind, _, got) = client.receive().unwrap();
        assert!(kind == i && got == body(i), "{i}");
    }
    assert_eq!(listener.n_refused(), 0);
}

#[test]
fn strangers_are_refused() {
    let (authority, other) = (Authority::new("job").unwrap(), Authority::new("job").unwrap());
    let (ca, other_ca) = (authority.certificate(), other.certificate());
    let own = || authority.issue(&hosts()).unwrap();
    let listener = echo("127.0.0.1:0", limits(5), Some(security(&ca, &own())));
    let to = listener.address();
    joins(to, "job", Some(&security(&ca, &own()))).unwrap();
    let refusals = [
        ("another job", joins(to, "other", Some(&security(&ca, &own())))),
        ("another authority's certificate", joins(to, "job", Some(&security(&ca, &other.issue(&hosts()).unwrap())))),
        ("who trusts another authority", joins(to, "job", Some(&security(&other_ca, &own())))),
        ("expired", joins(to, "job", Some(&security(&ca, &authority.issue_expired(&hosts()).unwrap())))),
        ("plain", joins(to, "job", None)),
    ];
    for (who, refused) in refusals {
        assert!(
            matches!(refused, Err(NetError::Refused(_) | NetError::Closed | NetError::Protocol(_))),
            "{who}: {refused:?}"
        );
    }
    // Neither a certificate, nor TLS, nor anything.
    let root = rustls_client_without_certificate(&ca, to);
    assert!(root.is_err(), "{root:?}");
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0xff, 0xff], &[0; 3000], b""] {
        let mut stream = stranger(to);
        let _ = stream.write_all(garbage);
        let mut answer = Vec::new();
        // Ends, within the time of an opening; an alert may come first.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() < 200, "{answer:?}");
    }
    joins(to, "job", Some(&security(&ca, &own()))).unwrap();
}

#[test]
fn who_answers_has_to_be_the_host_that_was_meant() {
    let authority = Authority::new("job").unwrap();
    let ca = authority.certificate();
    let elsewhere = authority.issue(&["elsewhere.example".into()]).unwrap();
    let listener = echo("127.0.0.1:0", limits(5), Some(security(&ca, &elsewhere)));
    let refused = joins(listener.address(), "job", Some(&security(&ca, &authority.issue(&hosts()).unwrap())));
    assert!(matches!(&refused, Err(NetError::Refused(why)) if why.contains("certificate")), "{refused:?}");
    // Nor is one who does not encrypt taken for a member.
    let plain = echo("127.0.0.1:0", limits(5), None);
    let refused = joins(plain.address(), "job", Some(&security(&ca, &authority.issue(&hosts()).unwrap())));
    assert!(refused.is_err());
}

/// A client that trusts the authority and shows nothing.
fn rustls_client_without_certificate(ca: &str, to: &Address) -> std::io::Result<usize> {
    use rustls::pki_types::pem::PemObject;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let config =
        rustls::ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = "127.0.0.1".try_into().unwrap();
    let session = rustls::ClientConnection::new(config.into(), name).unwrap();
    let mut stream = rustls::StreamOwned::new(session, stranger(to));
    stream.write_all(b"STEPSNET")?;
    let n = stream.read(&mut [0; 10])?;
    if n == 0 { Err(std::io::ErrorKind::UnexpectedEof.into()) } else { Ok(n) }
}

#[test]
fn files_are_made_for_each_host_and_never_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("certificates");
    let files = certify(&folder, "job", &["127.0.0.1".into(), "node-2".into()]).unwrap();
    assert_eq!(files.len(), 5);
    let of = |host: &str| {
        let file = |end: &str| folder.join(format!("{host}.{end}"));
        Security::from_files(&folder.join("ca.pem"), &file("pem"), &file("key")).unwrap()
    };
    let listener = echo("127.0.0.1:0", limits(5), Some(of("127.0.0.1")));
    joins(listener.address(), "job", Some(&of("node-2"))).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.join("node-2.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let before = std::fs::read(folder.join("ca.pem")).unwrap();
    assert!(certify(&folder, "job", &["127.0.0.1".into()]).is_err());
    assert_eq!(std::fs::read(folder.join("ca.pem")).unwrap(), before);
    let wrong = Security::from_files(&folder.join("ca.pem"), &folder.join("node-2.key"), Path::new("nothing"));
    assert!(wrong.unwrap_err().to_string().contains("nothing"));
    let wrong = Security::from_files(&folder.join("ca.pem"), &folder.join("node-2.pem"), &folder.join("127.0.0.1.key"));
    assert!(wrong.is_err(), "a key of another certificate");
}
