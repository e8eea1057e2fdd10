//! Calls of MPI that the crate `mpi` has with lifetimes only: messages whose memory is held by what lives as long as
//! they do.

use mpi::ffi;

use crate::NetError;

/// Bytes of a message, at most: one that makes no progress for [`Limits::silence`](crate::Limits) counts as lost.
pub const MESSAGE: usize = 4 << 20;

/// A group of processes that send to each other.
#[derive(Clone, Copy)]
pub struct Communicator(ffi::MPI_Comm);

// SAFETY: a handle; MPI was started for calls from many threads (`World::join`).
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

/// A message under way. It has to be asked until it is over before its memory goes.
pub struct Request(ffi::MPI_Request);

// SAFETY: a handle; MPI was started for calls from many threads (`World::join`).
unsafe impl Send for Request {}

/// An error of MPI as this crate's.
fn check(call: &'static str, code: i32) -> Result<(), NetError> {
    match code {
        0 => Ok(()),
        code => Err(NetError::Mpi { call, code }),
    }
}

impl Communicator {
    /// A copy of the world, whose messages meet no others, and whose errors come back instead of ending the process.
    pub fn of_world() -> Result<Communicator, NetError> {
        // SAFETY: MPI was started; the handles are its constants, and `copy` is written before it is used.
        unsafe {
            let mut copy = ffi::RSMPI_COMM_NULL;
            check("MPI_Comm_dup", ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &raw mut copy))?;
            check("MPI_Comm_set_errhandler", ffi::MPI_Comm_set_errhandler(copy, ffi::RSMPI_ERRORS_RETURN))?;
            Ok(Communicator(copy))
        }
    }

    /// Begins to send.
    ///
    /// # Safety
    /// `bytes` stay where they are until the request is over.
    pub unsafe fn send(self, bytes: &[u8], to: i32, tag: i32) -> Result<Request, NetError> {
        // SAFETY: the memory is readable, and stays so as the caller promises.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (at, n) = (bytes.as_ptr().cast(), bytes.len() as i32);
            check("MPI_Isend", ffi::MPI_Isend(at, n, ffi::RSMPI_UINT8_T, to, tag, self.0, &raw mut request))?;
            Ok(Request(request))
        }
    }

    /// Begins to receive a message of just so many bytes.
    ///
    /// # Safety
    /// `bytes` stay where they are, and are not touched, until the request is over.
    pub unsafe fn receive(self, bytes: &mut [u8], from: i32, tag: i32) -> Result<Request, NetError> {
        // SAFETY: the memory is exclusive, and stays so as the caller promises.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (at, n) = (bytes.as_mut_ptr().cast(), bytes.len() as i32);
            check("MPI_Irecv", ffi::MPI_Irecv(at, n, ffi::RSMPI_UINT8_T, from, tag, self.0, &raw mut request))?;
            Ok(Request(request))
        }
    }

    /// Begins to wait for all processes.
    pub fn barrier(self) -> Result<Request, NetError> {
        // SAFETY: no memory is given.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            check("MPI_Ibarrier", ffi::MPI_Ibarrier(self.0, &raw mut request))?;
            Ok(Request(request))
        }
    }

    /// Ends all processes of the world, this one too.
    pub fn abort(self) {
        // SAFETY: no memory is given; it does not come back.
        unsafe { ffi::MPI_Abort(self.0, 1) };
    }
}

impl Request {
    /// Whether it is over. Every such question lets MPI work.
    pub fn is_over(&mut self) -> Result<bool, NetError> {
        let mut flag = 0;
        // SAFETY: the request is one, or over; nobody wants the status.
        let code = unsafe { ffi::MPI_Test(&raw mut self.0, &raw mut flag, ffi::RSMPI_STATUS_IGNORE) };
        check("MPI_Test", code)?;
        Ok(flag != 0)
    }

    /// Asks for the end of a receive to which nothing came yet. It has to be asked until it is over all the same.
    pub fn cancel(&mut self) {
        // SAFETY: the request is one that is not over.
        let _ = unsafe { ffi::MPI_Cancel(&raw mut self.0) };
    }
}
