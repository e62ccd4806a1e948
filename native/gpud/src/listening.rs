//! Where the data plane is reached.

use crate::config::{Config, is_loopback};
use crate::control::channel::Reachable;
use crate::identity::write_private;
use crate::token::to_base64url;
use sluice_transport::tls::Identity;
use sluice_transport::{Address, Listener};
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

/// The port, if none was asked for; on a host that has the broker too, the first free one of these.
const PORTS: Range<u16> = 3010..3110;

/// Opens the data plane's address; TLS gets a certificate that is kept in the state directory.
pub fn open(config: &Config, broker: Option<&str>) -> io::Result<(Listener, Reachable)> {
    let chosen = config.listen.clone().or_else(|| elsewhere(broker));
    let identity = match &chosen {
        Some(Address::Tls(_)) => Some(Arc::new(certificate(config)?)),
        _ => None,
    };
    let fingerprint = identity.as_ref().map(|identity| to_base64url(&identity.fingerprint));
    let listener = match (&chosen, config.listen_descriptor) {
        (Some(address), Some(descriptor)) => Listener::inherit(descriptor, address, identity)?,
        (Some(address), None) => Listener::bind(address, identity).map_err(|error| unusable(address, &error))?,
        (None, _) => first_free(PORTS)?,
    };
    let bound = listener.address()?;
    let advertised = match (&bound, &config.advertise) {
        (Address::Tls(_), Some(advertise)) => Address::Tls(advertise.clone()),
        (Address::Tcp(_), Some(advertise)) => Address::Tcp(advertise.clone()),
        (Address::Tls(host), None) => Address::Tls(reachable_host(host, broker)),
        _ => bound,
    };
    Ok((listener, Reachable { data_address: advertised.to_string(), tls_fingerprint: fingerprint }))
}

/// Opens the socket for processes of this host. Who may connect is decided by their session tokens, as everywhere.
pub fn nearby(folder: &Path, server_id: &str) -> io::Result<Listener> {
    let address = Address::Unix(folder.join(format!("{server_id}.sock")));
    let Address::Unix(path) = &address else { unreachable!("just made") };
    let opened = std::fs::create_dir_all(folder).and_then(|()| {
        let listener = Listener::bind(&address, None)?;
        // Workspaces run as users of their own.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
        Ok(listener)
    });
    opened.map_err(|error| {
        let text = format!("cannot listen at {address}: {error}; name a folder with a shorter path by --sockets");
        io::Error::new(error.kind(), text)
    })
}

/// All addresses of this host with TLS, when the broker is on another one.
fn elsewhere(broker: Option<&str>) -> Option<Address> {
    let authority = authority(broker?)?;
    let local = is_loopback(&with_port(authority));
    (!local).then(|| Address::Tls(format!("0.0.0.0:{}", PORTS.start)))
}

fn first_free(ports: Range<u16>) -> io::Result<Listener> {
    let mut refused = io::Error::other("no port to try");
    for port in ports {
        let address = Address::Tcp(format!("127.0.0.1:{port}"));
        match Listener::bind(&address, None) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => refused = unusable(&address, &error),
            outcome => return outcome.map_err(|error| unusable(&address, &error)),
        }
    }
    Err(refused)
}

fn unusable(address: &Address, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen at {address}: {error}; choose another address with --listen"))
}

/// `HOST` or `HOST:PORT` of a URL.
fn authority(url: &str) -> Option<&str> {
    url.split("://").nth(1)?.split('/').next()
}

fn with_port(authority: &str) -> String {
    let bare = authority.rsplit_once(':').is_none_or(|(_, port)| port.contains(']'));
    if bare { format!("{authority}:443") } else { authority.to_owned() }
}

fn certificate(config: &Config) -> io::Result<Identity> {
    let path = config.state.join("tls.pem");
    if let Ok(pem) = std::fs::read_to_string(&path) {
        return Identity::from_pem(&pem);
    }
    let (identity, pem) = Identity::generate("gpud")?;
    write_private(&path, pem.as_bytes())?;
    Ok(identity)
}

/// The address under which this host is seen on the way to the broker, when gpud listens on all of them.
fn reachable_host(bound: &str, broker: Option<&str>) -> String {
    let Some((host, port)) = bound.rsplit_once(':') else { return bound.to_owned() };
    let unspecified = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified());
    let target = broker.and_then(authority).map(with_port);
    match (unspecified, target.and_then(|target| local_address(&target))) {
        (true, Some(IpAddr::V6(ip))) => format!("[{ip}]:{port}"),
        (true, Some(ip)) => format!("{ip}:{port}"),
        _ => bound.to_owned(),
    }
}

fn local_address(target: &str) -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_on_another_host_gets_tls_on_all_addresses() {
        for local in ["http://127.0.0.1:3001", "http://localhost", "https://[::1]", "http://[::1]:3001/pool"] {
            assert_eq!(elsewhere(Some(local)), None, "{local}");
        }
        for other in ["https://sluice.example", "http://10.0.0.7:3001/pool", "https://[2001:db8::1]:3001"] {
            assert_eq!(elsewhere(Some(other)), Some(Address::Tls("0.0.0.0:3010".to_owned())), "{other}");
        }
        assert_eq!(elsewhere(None), None);
    }

    #[test]
    fn a_taken_port_is_passed_over() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("port");
        let port = taken.local_addr().expect("address").port();
        let error = first_free(port..port + 1).err().expect("taken");
        assert!(error.to_string().contains(&format!("127.0.0.1:{port}")) && error.to_string().contains("--listen"));
        let listener = first_free(port..port.saturating_add(50)).expect("one of fifty");
        assert_ne!(listener.address().expect("address"), Address::Tcp(format!("127.0.0.1:{port}")));
    }
}
