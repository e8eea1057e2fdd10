//! Events without duration, of the calling thread.

use std::ffi::{c_char, c_int};

use crate::errors;
use crate::sites::{self, stepscope_site_t};

/// Something happened now.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_instant(site: stepscope_site_t) {
    errors::status(|| {
        events::instant(sites::id(site), 0);
        Ok(())
    });
}

/// As `stepscope_instant`, with a text of at most 1,024 bytes; the rest is cut.
///
/// # Safety
/// `text` is null, or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_log(site: stepscope_site_t, text: *const c_char) -> c_int {
    errors::status(|| {
        // SAFETY: as the caller promises.
        events::log(sites::id(site), unsafe { errors::text(text, "text") }?);
        Ok(())
    })
}

/// A counter's value, which holds from now on.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_counter(site: stepscope_site_t, value: f64) {
    errors::status(|| {
        events::counter(sites::id(site), value);
        Ok(())
    });
}

/// An id for a flow, from 1 to 4,294,967,295. Ids repeat only after so many.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_next_flow_id() -> u32 {
    errors::value(1, || Ok(events::next_flow_id()))
}

/// An arrow leaves the open slice; `stepscope_flow_in` with the same site and id is its head, on any thread.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_flow_out(site: stepscope_site_t, id: u32) {
    errors::status(|| {
        events::flow_out(sites::id(site), id);
        Ok(())
    });
}

/// An arrow ends in the open slice.
#[unsafe(no_mangle)]
pub extern "C" fn stepscope_flow_in(site: stepscope_site_t, id: u32) {
    errors::status(|| {
        events::flow_in(sites::id(site), id);
        Ok(())
    });
}
