//! Calls of MPI without the lifetimes that the crate `mpi` requires: the owner of a message's memory outlives the
//! message.

use mpi::ffi;
use net::NetError;

/// The longest message, bytes. A message counts as lost after [`Limits::silence`](net::Limits), so it has to be
/// short.
pub const MAX_MESSAGE: usize = 4 << 20;

/// A group of processes that send to each other.
#[derive(Clone, Copy)]
pub struct Communicator(ffi::MPI_Comm);

// SAFETY: a handle; MPI was started for calls from many threads (`World::join`).
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

/// A message under way. Its memory may be freed only after [`Request::is_over`] returned true.
pub struct Request(ffi::MPI_Request);

// SAFETY: a handle; MPI was started for calls from many threads (`World::join`).
unsafe impl Send for Request {}

/// Converts a return code of MPI.
fn check(call: &'static str, code: i32) -> Result<(), NetError> {
    match code {
        0 => Ok(()),
        code => Err(NetError::Transport(format!("MPI: {call} failed with code {code}"))),
    }
}

impl Communicator {
    /// A copy of the world's communicator: its messages are separate from all others, and its errors are returned
    /// instead of ending the process.
    pub fn of_world() -> Result<Communicator, NetError> {
        // SAFETY: MPI was started; the handles are its constants, and `copy` is written before it is used.
        unsafe {
            let mut copy = ffi::RSMPI_COMM_NULL;
            check("MPI_Comm_dup", ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &raw mut copy))?;
            check("MPI_Comm_set_errhandler", ffi::MPI_Comm_set_errhandler(copy, ffi::RSMPI_ERRORS_RETURN))?;
            Ok(Communicator(copy))
        }
    }

    /// Begins to send a message.
    ///
    /// # Safety
    /// `bytes` are neither moved nor freed until the request is over.
    pub unsafe fn send(self, bytes: &[u8], to: i32, tag: i32) -> Result<Request, NetError> {
        // SAFETY: the memory is readable, and stays so as the caller promises.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (at, n) = (bytes.as_ptr().cast(), bytes.len() as i32);
            check("MPI_Isend", ffi::MPI_Isend(at, n, ffi::RSMPI_UINT8_T, to, tag, self.0, &raw mut request))?;
            Ok(Request(request))
        }
    }

    /// Begins to receive a message with exactly the length of `bytes`.
    ///
    /// # Safety
    /// `bytes` are neither moved, freed nor accessed until the request is over.
    pub unsafe fn receive(self, bytes: &mut [u8], from: i32, tag: i32) -> Result<Request, NetError> {
        // SAFETY: the memory is exclusive, and stays so as the caller promises.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (at, n) = (bytes.as_mut_ptr().cast(), bytes.len() as i32);
            check("MPI_Irecv", ffi::MPI_Irecv(at, n, ffi::RSMPI_UINT8_T, from, tag, self.0, &raw mut request))?;
            Ok(Request(request))
        }
    }

    /// Begins a barrier of all processes.
    pub fn barrier(self) -> Result<Request, NetError> {
        // SAFETY: the only pointer is to a local variable.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            check("MPI_Ibarrier", ffi::MPI_Ibarrier(self.0, &raw mut request))?;
            Ok(Request(request))
        }
    }

    /// Ends all processes of the world, including this one.
    pub fn abort(self) {
        // SAFETY: the call has no pointers, and does not return.
        unsafe { ffi::MPI_Abort(self.0, 1) };
    }
}

impl Request {
    /// Whether the request is over. MPI makes progress only during such calls.
    pub fn is_over(&mut self) -> Result<bool, NetError> {
        let mut flag = 0;
        // SAFETY: the request is active or null, and the status may be ignored.
        let code = unsafe { ffi::MPI_Test(&raw mut self.0, &raw mut flag, ffi::RSMPI_STATUS_IGNORE) };
        check("MPI_Test", code)?;
        Ok(flag != 0)
    }

    /// Cancels a receive whose message has not begun. The request still has to be tested until it is over.
    pub fn cancel(&mut self) {
        // SAFETY: the request is active.
        let _ = unsafe { ffi::MPI_Cancel(&raw mut self.0) };
    }
}
