//! A socket option of Linux for which no crate that we use has a function.
//!
//! The bare loop of the measurements (`benches/peers/programs`) is compiled with this file too, so that
//! it accepts connections as the gateway does.

use std::io;
use std::os::fd::AsRawFd;

/// How long the kernel waits for the first bytes of a connection, in seconds. It rounds this up to
/// the time after which it sends its part of the handshake again, which is one second at first.
const FIRST_BYTES_SECONDS: libc::c_int = 1;

/// Makes the kernel wait for the first bytes of each connection that this socket will accept
/// (`TCP_DEFER_ACCEPT`, tcp(7)).
///
/// # Errors
///
/// When the system does not have the option, or this is not a TCP socket.
#[expect(unsafe_code, reason = "a function of the C library")]
pub(super) fn defer_accept(listener: &impl AsRawFd) -> io::Result<()> {
    let seconds = FIRST_BYTES_SECONDS;
    let length = size_of_val(&seconds).try_into();
    let length: libc::socklen_t = length.map_err(io::Error::other)?;
    // SAFETY: the pointer leads to `seconds`, which has this length, and the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            length,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
