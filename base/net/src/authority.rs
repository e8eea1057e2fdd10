//! Certificates for a job that has none: creates a certificate authority, and one certificate for each host.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::SecurityError;

/// Signs certificates of one job.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, as PEM.
pub struct IssuedCertificate {
    /// The certificate, which the other end of a connection receives.
    pub certificate: String,
    /// The private key, which stays on its host.
    pub key: String,
}

impl Authority {
    /// A new authority. Its key is never written to a file, so a host that is added later needs new certificates for
    /// all.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(job: &str) -> Result<Authority, SecurityError> {
        let key = KeyPair::generate().map_err(|e| certificate_error(&e))?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("stepscope job {job}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key).map_err(|e| certificate_error(&e))?;
        Ok(Authority { certificate, issuer: Issuer::new(params, key) })
    }

    /// The authority's certificate, which all processes of the job need, as PEM.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.certificate.pem()
    }

    /// Issues a certificate for a process that listens at these host names and IP addresses.
    ///
    /// # Errors
    /// A name is not a valid host name.
    pub fn issue(&self, hosts: &[String]) -> Result<IssuedCertificate, SecurityError> {
        let params = CertificateParams::new(hosts.to_vec()).map_err(|e| certificate_error(&e))?;
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<IssuedCertificate, SecurityError> {
        let key = KeyPair::generate().map_err(|e| certificate_error(&e))?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).map_err(|e| certificate_error(&e))?;
        Ok(IssuedCertificate { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// As [`issue`](Self::issue), but the certificate has expired: for tests that it is refused.
    ///
    /// # Errors
    /// As [`issue`](Self::issue).
    pub fn issue_expired(&self, hosts: &[String]) -> Result<IssuedCertificate, SecurityError> {
        let mut params = CertificateParams::new(hosts.to_vec()).map_err(|e| certificate_error(&e))?;
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        self.sign(params)
    }
}

fn certificate_error(error: &rcgen::Error) -> SecurityError {
    SecurityError::Invalid(error.to_string())
}

/// Makes a folder with `ca.pem`, and for each host `HOST.pem` and `HOST.key`; only its owner may read a key. Returns
/// the paths of the files.
///
/// # Errors
/// A host's name is not valid; a file exists (it is not overwritten), or cannot be written.
pub fn certify(folder: &Path, job: &str, hosts: &[String]) -> Result<Vec<PathBuf>, SecurityError> {
    let authority = Authority::new(job)?;
    let mut files = vec![(folder.join("ca.pem"), authority.certificate(), 0o644)];
    for host in hosts {
        // Processes of the same host connect by its loopback addresses.
        let mut names = vec![host.clone()];
        names.extend(
            ["localhost", "127.0.0.1", "::1"].iter().filter(|name| *name != host).map(|name| (*name).to_owned()),
        );
        let IssuedCertificate { certificate, key } = authority.issue(&names)?;
        let name = host.replace([':', '/'], "_");
        files.push((folder.join(format!("{name}.pem")), certificate, 0o644));
        files.push((folder.join(format!("{name}.key")), key, 0o600));
    }
    let file_error =
        |path: &Path, error: io::Error| SecurityError::File { path: path.to_owned(), reason: error.to_string() };
    fs::create_dir_all(folder).map_err(|error| file_error(folder, error))?;
    if let Some((path, ..)) = files.iter().find(|(path, ..)| path.exists()) {
        return Err(file_error(path, io::ErrorKind::AlreadyExists.into()));
    }
    for (path, text, mode) in &files {
        write_new(path, text, *mode).map_err(|error| file_error(path, error))?;
    }
    Ok(files.into_iter().map(|(path, ..)| path).collect())
}

fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)?.write_all(text.as_bytes())
}
