//! Names of slices, instants, counters and flows.

use std::ffi::c_char;

use events::SiteId;

use crate::errors;

/// The id of a category and a name; 0 stands for names that are not known.
pub type stepscope_site_t = u32;

/// A site of events. A number that is no id is written as it is, and shown as unknown.
#[inline]
pub(crate) fn id(site: stepscope_site_t) -> SiteId {
    SiteId::from_bits(site)
}

/// The id of a category and a name, both UTF-8; the same two always have the same id in a process. It takes a lock: look
/// it up once, as `STEPSCOPE_SITE` does. Returns 0 where the name cannot be used, or the process has 1,048,576 already;
/// events with this id are recorded as "(further sites)".
///
/// # Safety
/// `category` and `name` are null, or end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stepscope_site(category: *const c_char, name: *const c_char) -> stepscope_site_t {
    errors::value(0, || {
        // SAFETY: as the caller promises.
        let (category, name) = unsafe { (errors::text(category, "category")?, errors::text(name, "name")?) };
        Ok(events::site(category, name).get())
    })
}
