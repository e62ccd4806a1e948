//! What the kernel denies to a sandboxed worker: a socket that it was handed belongs to the host's network, whatever
//! network the worker itself is in, and could be connected anew to anything that the host reaches.

use std::io;

/// System calls that make connections, and the one that makes calls unseen.
const DENIED: [libc::c_long; 4] = [libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_io_uring_setup];

/// `AUDIT_ARCH_*` of this program; a call in another architecture's way has other numbers.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// Numbers from here on are the x32 way's; there are none in other architectures.
const X32: u32 = 0x4000_0000;

/// Places in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE_PLACE: u32 = 4;

const INSTRUCTIONS: usize = DENIED.len() + 6;

const fn step(code: u32, value: u32, if_true: u8, if_false: u8) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: if_true, jf: if_false, k: value }
}

/// Loads architecture and number, compares, and jumps forward to the last instruction (denied) or the one before it.
static FILTER: [libc::sock_filter; INSTRUCTIONS] = {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let mut filter = [step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0); INSTRUCTIONS];
    let last = INSTRUCTIONS - 1;
    filter[0] = step(LOAD, ARCHITECTURE_PLACE, 0, 0);
    filter[1] = step(EQUAL, ARCHITECTURE, 0, (last - 2) as u8);
    filter[2] = step(LOAD, NUMBER, 0, 0);
    filter[3] = step(AT_LEAST, X32, (last - 4) as u8, 0);
    let mut index = 0;
    while index < DENIED.len() {
        let place = 4 + index;
        filter[place] = step(EQUAL, DENIED[index] as u32, (last - place - 1) as u8, 0);
        index += 1;
    }
    filter[last - 1] = step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    filter
};

/// Denies it to this thread, and to what it starts, for good. Needs `PR_SET_NO_NEW_PRIVS`. Makes one system call, so that
/// it can be called between fork and exec.
pub fn deny_connections() -> io::Result<()> {
    let program = libc::sock_fprog { len: INSTRUCTIONS as u16, filter: FILTER.as_ptr().cast_mut() };
    // SAFETY: the program outlives the call, which only reads it.
    let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_connection_goes_on_and_leads_nowhere_else() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let address = listener.local_addr().expect("has an address");
        let mut near = TcpStream::connect(address).expect("connects");
        let (mut far, _) = listener.accept().expect("accepts");
        // The filter is the thread's.
        let denied = std::thread::spawn(move || {
            // SAFETY: takes numbers.
            assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
            deny_connections().expect("the kernel has filters");
            near.write_all(b"x").expect("goes on");
            let nowhere = libc::sockaddr { sa_family: libc::AF_UNSPEC as u16, sa_data: [0; 14] };
            let length = size_of::<libc::sockaddr>() as u32;
            // SAFETY: an address of the length given.
            let again = unsafe { libc::connect(near.as_raw_fd(), &raw const nowhere, length) };
            let kinds = [TcpStream::connect(address).err(), TcpListener::bind("127.0.0.1:0").err()];
            (again, kinds.map(|error| error.map(|error| error.kind())))
        });
        let (again, kinds) = denied.join().expect("no panic");
        assert_eq!((again, kinds), (-1, [Some(io::ErrorKind::PermissionDenied); 2]));
        far.read_exact(&mut [0]).expect("arrives");
    }
}
