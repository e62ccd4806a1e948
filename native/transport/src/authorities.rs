//! The certificate authorities that this host trusts, for connections to the broker.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};

/// Where distributions keep them.
const SYSTEM: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The authorities of the file that `SSL_CERT_FILE` names, as OpenSSL and Python read it, else the system's.  Empty
/// when there is none that can be read: then nobody is trusted.
pub fn trusted_authorities() -> Vec<CertificateDer<'static>> {
    let named = std::env::var_os("SSL_CERT_FILE").filter(|name| !name.is_empty()).map(PathBuf::from);
    read_authorities(named.as_deref())
}

/// The same for requests over HTTPS.
pub fn https_config() -> ureq::tls::TlsConfig {
    let authorities = trusted_authorities();
    let roots = authorities.iter().map(|authority| ureq::tls::Certificate::from_der(authority).to_owned());
    ureq::tls::TlsConfig::builder().root_certs(roots.into()).build()
}

fn read_authorities(named: Option<&Path>) -> Vec<CertificateDer<'static>> {
    let places = named.map_or_else(|| SYSTEM.iter().map(Path::new).collect(), |file| vec![file]);
    for place in places {
        if let Ok(certificates) = CertificateDer::pem_file_iter(place) {
            return certificates.flatten().collect();
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_takes_the_place_of_the_systems() {
        let made = rcgen::generate_simple_self_signed(vec!["broker.test".to_owned()]).expect("a certificate");
        let file = std::env::temp_dir().join(format!("sluice-authorities-{}.pem", std::process::id()));
        std::fs::write(&file, made.cert.pem()).expect("a file");
        let read = read_authorities(Some(&file));
        std::fs::remove_file(&file).expect("the file");
        assert_eq!(read, [made.cert.der().clone()]);
        assert!(read_authorities(Some(&file)).is_empty(), "a file that is not there must not bring the system's back");
    }
}
